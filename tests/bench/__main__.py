"""The program behind `scripts/bench`.

Responsible for: the options, the table and the JSON line on standard output, and the exit status: 0
when there is nothing to object to. How it goes is told on standard error.
Must not: measure; each kind of bench has its module.
Called by: `scripts/bench`.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from tests.bench import calls, document, pages, plots, rows, soak
from tests.bench.paces import tell
from tests.bench.reporting import calls_table, compared_table, pages_table, soak_table
from tests.bench.stock import MOST_HOLDINGS
from tests.lab.ending import AskedToEnd, end_on_signals
from tests.lab.process import LabFault

_MOST_MINUTES = 120.0
_FEWEST_HOLDINGS = 100
_ALL = "all"
_DOCS = Path(__file__).parents[2] / "docs"


def main() -> int:
    """Run one bench; return the exit status."""
    options = _read_options()
    end_on_signals()
    try:
        if options.bench == "soak":
            report = soak.soak(soak.Options(options.minutes, options.holdings, options.rate))
            table = soak_table(report)
        elif options.bench == "page":
            report = pages.measure(pages.Options(options.holdings, options.loads))
            table = pages_table(report)
        elif options.bench == _ALL:
            # Their tables were shown one by one.
            report, table = _run_all(options), ""
        elif options.bench in rows.ROWS:
            report = rows.run(options.bench, options.rounds, options.size, is_smoke=options.smoke)
            _keep(report, options)
            table = compared_table(report)
        else:
            report = calls.measure(
                calls.Options(
                    # In their order: what replaces records comes after what expects them.
                    [kind for kind in calls.KINDS if kind in (options.kind or calls.KINDS)],
                    options.seconds,
                    options.connections,
                    options.holdings,
                )
            )
            table = calls_table(report)
    except AskedToEnd:
        return 1
    except LabFault as fault:
        sys.stderr.write(f"bench: {fault}\n")
        return 1
    sys.stdout.write(f"{table}\n{json.dumps(report)}\n")
    return 1 if report["faults"] else 0


def _run_all(options: argparse.Namespace) -> dict[str, Any]:
    def keep(report: dict[str, Any]) -> None:
        sys.stdout.write(f"{compared_table(report)}\n\n")
        sys.stdout.flush()
        _keep(report, options)

    return rows.run_all(
        options.rounds, is_smoke=options.smoke, left_out=options.without or (), keep=keep
    )


def _keep(report: dict[str, Any], options: argparse.Namespace) -> None:
    """Write a row's report down and draw its curves, if they are to be kept anywhere."""
    folder: Path | None = _DOCS / "measured" if options.write else options.plots
    if folder is None:
        return
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{report['bench']}.json").write_text(f"{json.dumps(report)}\n")
    for curve in report.get("curves", ()):
        file = folder / f"{report['bench']}-{curve['name']}.svg"
        file.write_text(plots.draw(curve))
        tell(f"drawn: {file}")
    if options.write:
        document.rewrite(_DOCS / "performance.md", folder, tuple(rows.ROWS))


def _read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="scripts/bench",
        description="Measure gateways in labs of their own (real Redis, BIND, Pebble), on "
        "loopback; print a table and one JSON line; fail when there is something to object to.",
    )
    benches = parser.add_subparsers(dest="bench", required=True)
    soaking = benches.add_parser("soak", help="a mixed load for minutes, over many holdings")
    soaking.add_argument("--minutes", type=_between(0.01, _MOST_MINUTES), default=10.0)
    soaking.add_argument("--rate", type=_between(1, 10_000), default=150.0, help="calls a second")
    alone = benches.add_parser("calls", help="each kind of call alone, and its parts")
    alone.add_argument("--seconds", type=_between(0.1, 60), default=3.0, help="of each kind")
    alone.add_argument("--connections", type=_whole(2, 64), default=8)
    alone.add_argument(
        "--kind", choices=calls.KINDS, action="append", help="this one only (repeatable)"
    )
    page = benches.add_parser("page", help="the operator's page, with few hostnames and with many")
    page.add_argument(
        "--loads", type=_whole(1, pages.MOST_LOADS), default=50, help="of each page, one by one"
    )
    for bench, holdings in ((soaking, 100_000), (alone, 1_000), (page, 100_000)):
        bench.add_argument(
            "--holdings", type=_whole(_FEWEST_HOLDINGS, MOST_HOLDINGS), default=holdings
        )
    for name, row in rows.ROWS.items():
        one = benches.add_parser(name, help=row.tells)
        _add_row(one, row.tells, f"{row.rounds}")
        one.add_argument(
            f"--{row.counted}",
            dest="size",
            # A smoke has as few as it works with.
            type=_whole(row.smoke_size, row.most),
            help=f"{row.size:,} unless told",
        )
    every = benches.add_parser(_ALL, help="all of those that have a reference, one after the other")
    _add_row(every, f"in this order: {', '.join(rows.ROWS)}", "as each has them")
    every.add_argument(
        "--without", choices=rows.ROWS, action="append", help="all but this one (repeatable)"
    )
    options = parser.parse_args()
    if getattr(options, "write", False) and options.smoke:
        parser.error("--write: the figures of a --smoke say nothing")
    return options


def _add_row(parser: argparse.ArgumentParser, tells: str, rounds: str) -> None:
    parser.description = f"Measure {tells}."
    parser.add_argument("--smoke", action="store_true", help="only to see that it works")
    parser.add_argument("--rounds", type=_whole(1, 100), help=f"{rounds} unless told")
    keeping = parser.add_mutually_exclusive_group()
    keeping.add_argument(
        "--plots", type=Path, metavar="FOLDER", help="keeps its report and its curves (SVG) there"
    )
    keeping.add_argument(
        "--write", action="store_true", help="keeps them in docs/measured, for docs/performance.md"
    )


class _between:  # noqa: N801 (read as a function)
    def __init__(self, least: float, most: float) -> None:
        self._bounds = (least, most)

    def __call__(self, text: str) -> float:
        value = float(text)
        if not self._bounds[0] <= value <= self._bounds[1]:
            raise argparse.ArgumentTypeError("from {:g} to {:g}".format(*self._bounds))
        return value


class _whole(_between):  # noqa: N801 (read as a function)
    def __call__(self, text: str) -> int:
        return int(super().__call__(str(int(text))))


if __name__ == "__main__":
    sys.exit(main())
