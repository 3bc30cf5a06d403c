"""Writes what was measured beside the references into `docs/performance.md`, with its curves.

Responsible for the part of the page between two marks, made anew of all the reports that are kept
beside it; what people have written around it stays. Called by `__main__`.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
SPENT_HEAD = (
    "What the processor time went to, by program: ms for one, and how many cores were in use"
)
_NOTE = "<!-- written by `scripts/bench … --write`; what is changed here by hand is lost -->"


def rewrite(page: Path, kept: Path, names: Sequence[str]) -> None:
    """Put the reports of these benches, as far as they are in the folder `kept`, into the page.

    Raises: ValueError when the page lacks a mark.
    """
    before, after = _around(page)
    files = (kept / f"{name}.json" for name in names)
    reports = [json.loads(file.read_text()) for file in files if file.exists()]
    place = kept.relative_to(page.parent)
    lines = [BEGIN, _NOTE, "", *_table(reports), *_spent(reports)]
    lines += [*_curves(reports, place), *_conditions(reports)]
    measured = "\n".join([*lines, END])
    page.write_text(f"{before}{measured}{after}")


def require_place(page: Path) -> None:
    """Raises: ValueError when the page lacks a mark."""
    _around(page)


def _around(page: Path) -> tuple[str, str]:
    """What stands before the marks and behind them."""
    before, begun, rest = page.read_text().partition(BEGIN)
    _, ended, after = rest.partition(END)
    if not (begun and ended):
        raise ValueError(f"{page} has no place for figures: {BEGIN} and {END}")
    return before, after


def _table(reports: Sequence[dict[str, Any]]) -> Iterator[str]:
    yield "| work | gateway | reference | ratio | goal | reached |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for report in reports:
        for row in report["rows"]:
            if not row.get("isDetail"):
                yield _line(row)
    yield ""


def _line(row: dict[str, Any]) -> str:
    unit = f", {row['unit']}" if row["unit"] else ""
    reference = "" if row["against"] is None else f"{figure(row['reference'])}, {row['against']}"
    reached = {None: "", True: "yes", False: "**no**"}[row["reached"]]
    cells = (
        *(f"{row['work']}{unit}", figure(row["product"]), reference),
        *(figure(row["ratio"]), row["goal"] or "", reached),
    )
    return f"| {' | '.join(cells)} |"


def spent_rows(*reports: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    """A head, and a line for each kind of work whose processor time is known; nothing without."""
    spent = [each for report in reports for each in report.get("spent", ())]
    if not spent:
        return
    programs = list(spent[0]["ms"])
    yield ("work", *programs, "all", "cores in use")
    for each in spent:
        used = [each["ms"][program] for program in programs]
        yield (each["work"], *(f"{ms:.2g}" for ms in (*used, sum(used))), str(each["cores"]))


def _spent(reports: Sequence[dict[str, Any]]) -> Iterator[str]:
    """What bounds the work: where nearly all cores are in use, all parts of it together."""
    rows = list(spent_rows(*reports))
    if not rows:
        return
    yield from (f"{SPENT_HEAD}:", "")
    for number, cells in enumerate(rows):
        yield f"| {' | '.join(cells)} |"
        if number == 0:
            yield f"|{' --- |' * len(cells)}"
    yield ""


def _curves(reports: Sequence[dict[str, Any]], place: Path) -> Iterator[str]:
    for report in reports:
        for curve in report.get("curves", ()):
            title = f"{curve['title']}, {curve['unit']}"
            yield f"![{title}]({place}/{report['bench']}-{curve['name']}.svg)"
            yield ""


def _conditions(reports: Sequence[dict[str, Any]]) -> Iterator[str]:
    """How each was measured. The load average counts what the bench before it left, too."""
    yield "| bench | on | rounds | minutes | load average before | machine | to be said |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for report in reports:
        machine = report["machine"]
        shown = (
            f"{machine['cpus']} cores, {machine['processor']}, Linux {machine['kernel']},"
            f" Python {machine['python']}"
        )
        cells = (
            *(report["bench"], machine["date"], str(report["rounds"])),
            *(f"{report['seconds'] / 60:.1f}", str(report["loadAverageBefore"]), shown),
            "; ".join([*report["notes"], *report["faults"]]),
        )
        yield f"| {' | '.join(cells)} |"
    yield ""


def figure(value: float | None) -> str:
    """For people: four digits that count, at the most."""
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"
