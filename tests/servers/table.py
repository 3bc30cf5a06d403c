"""The table of servers and behaviours in `docs/dns-servers.md`: as it is there, and as seen.

Responsible for: reading the page's table, which is what the tests of this package expect, and
drawing the one of what they saw. Must not: know a server. Called by: `conftest`, `test_documented`.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "dns-servers.md"

COLUMNS = {"bind": "BIND", "knot": "Knot DNS", "powerdns": "PowerDNS"}

_HEADING = "\n## Server \N{MULTIPLICATION SIGN} behaviour\n"
_ROW = re.compile(r"^\| (.+) \|$")


def documented() -> dict[str, dict[str, str]]:
    """Each behaviour of the page's table, and what it says of each kind of server."""
    _, _, section = PAGE.read_text().partition(_HEADING)
    header, *rows = [row for row in _rows(section) if not set("".join(row)) <= set("-: ")]
    if header != ["behaviour", *COLUMNS.values()]:
        raise ValueError(f"{PAGE} has another table than expected: {header}")
    return {behaviour: dict(zip(COLUMNS, cells, strict=True)) for behaviour, *cells in rows}


def drawn(seen: Mapping[str, Mapping[str, str]]) -> str:
    """The same table of what was seen, for a terminal."""
    header = ["DNS servers", *COLUMNS.values()]
    rows = [
        [behaviour, *(outcomes.get(kind, "(not run)") for kind in COLUMNS)]
        for behaviour, outcomes in seen.items()
    ]
    widths = [max(len(row[column]) for row in (header, *rows)) for column in range(len(header))]
    return "\n".join(_line(row, widths) for row in (header, ["-" * w for w in widths], *rows))


def _rows(section: str) -> Iterator[list[str]]:
    for line in section.splitlines():
        if found := _ROW.match(line):
            yield [cell.strip() for cell in found[1].split(" | ")]


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
    return "  ".join(padded).rstrip()
