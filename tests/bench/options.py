"""The options of `scripts/bench`, and what `--help` tells of each bench.

Must not: measure. Called by `program`.
"""

import argparse
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.bench import calls, pages, rows
from tests.bench.stock import MOST_HOLDINGS

ALL = "all"

_MOST_MINUTES = 120.0
_FEWEST_HOLDINGS = 100
_SOAK_MINUTES, _SOAK_RATE = 10.0, 150.0
_CALL_SECONDS, _CONNECTIONS = 3.0, 8
_LOADS = 50

_WHOLE = re.compile(r"[0-9]+|[0-9]{1,3}(,[0-9]{3})+")
_NUMBER = re.compile(rf"({_WHOLE.pattern})(\.[0-9]+)?")

_TELLS = (
    "Measure gateways in labs of their own (real Redis, BIND, Pebble) on loopback; print a table "
    "and one JSON line, and say on standard error how it goes."
)
_ENDS = (
    "soak, calls and page have no reference beside them: they show what one gateway does. The "
    "others measure a reference in the same run, and in turns, wherever it says 'beside'; year is "
    "held against limits instead. Durations are those of the full size. Exit status: 1 when there "
    "are faults (wrong answers, lost certificates, what could not be run or kept), 2 after a "
    "mistake in the options, 130 after ^C and 143 after SIGTERM, else 0. A goal that was not "
    "reached is no fault: the table says 'no'."
)
_SOAK = (
    "Call one gateway with a mixed load for minutes, over many holdings, and judge errors, memory, "
    "descriptors and threads; without a reference beside it."
)
_CALLS = (
    "Call one gateway with each kind of call alone, as fast as it answers, and show what each "
    "costs; then the parts they are made of, Redis and BIND; without a reference beside it."
)
_PAGE = (
    "Load each of the operator's pages one by one, in a lab with a hundred hostnames and in one "
    "with many, and show how long each takes; without a reference beside it."
)


def read_options(arguments: Sequence[str]) -> argparse.Namespace:
    """What is told; `bench` is the name of one. Ends the program after a mistake."""
    parser = argparse.ArgumentParser(prog="scripts/bench", description=_TELLS, epilog=_ENDS)
    parser.set_defaults(write=False)
    benches = parser.add_subparsers(dest="bench", metavar="BENCH", required=True)
    _add_soak(benches.add_parser("soak", help="a mixed load on one gateway", description=_SOAK))
    _add_calls(benches.add_parser("calls", help="each kind of call alone", description=_CALLS))
    _add_page(benches.add_parser("page", help="each of the operator's pages", description=_PAGE))
    for name, row in rows.ROWS.items():
        one = benches.add_parser(name, help=f"{row.tells}; {row.lasts}")
        _add_row(one, f"Measure {row.tells}. It takes {row.lasts}.", f"{row.rounds}")
        one.add_argument(
            f"--{row.counted}",
            dest="size",
            metavar="NUMBER",
            type=whole(row.least, row.most),
            help=f"{row.size:,} unless told, {row.least} with --smoke",
        )
    order = f"{', '.join(rows.ROWS)}"
    every = benches.add_parser(ALL, help="those from starts to year, one after the other; 2 hours")
    _add_row(every, f"Measure, in this order: {order}. It takes 2 hours.", "as each has them")
    every.add_argument(
        "--without", choices=rows.ROWS, action="append", help="all but this one (repeatable)"
    )
    options = parser.parse_args(arguments)
    if options.write and options.smoke:
        parser.error("--write: the figures of a --smoke say nothing")
    return options


def _add_soak(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--minutes",
        type=number(0.01, _MOST_MINUTES),
        default=_SOAK_MINUTES,
        metavar="MINUTES",
        help=f"how long the load lasts, once all is stocked; {_SOAK_MINUTES:g} unless told",
    )
    parser.add_argument(
        "--rate",
        type=number(1, 10_000),
        default=_SOAK_RATE,
        metavar="NUMBER",
        help=f"errands a second, of one call or a few; {_SOAK_RATE:g} unless told",
    )
    _add_holdings(parser, 100_000)


def _add_calls(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--seconds",
        type=number(0.1, 60),
        default=_CALL_SECONDS,
        metavar="SECONDS",
        help=f"how long each kind is called; {_CALL_SECONDS:g} unless told",
    )
    parser.add_argument(
        "--connections",
        type=whole(2, 64),
        default=_CONNECTIONS,
        metavar="NUMBER",
        help=f"from two processes together; {_CONNECTIONS} unless told",
    )
    parser.add_argument(
        "--kind",
        choices=calls.KINDS,
        action="append",
        metavar="KIND",
        help=f"this one only (repeatable); one of: {', '.join(calls.KINDS)}",
    )
    _add_holdings(parser, 1_000)


def _add_page(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--loads",
        type=whole(1, pages.MOST_LOADS),
        default=_LOADS,
        metavar="NUMBER",
        help=f"how often each page is loaded; {_LOADS} unless told",
    )
    _add_holdings(parser, 100_000)


def _add_holdings(parser: argparse.ArgumentParser, usual: int) -> None:
    parser.add_argument(
        "--holdings",
        type=whole(_FEWEST_HOLDINGS, MOST_HOLDINGS),
        default=usual,
        metavar="NUMBER",
        help=f"hostnames with a record and a certificate; {usual:,} unless told",
    )


def _add_row(parser: argparse.ArgumentParser, description: str, rounds: str) -> None:
    parser.description = description
    parser.add_argument(
        "--smoke", action="store_true", help="only proves that it works: its figures say nothing"
    )
    parser.add_argument(
        "--rounds",
        type=whole(1, 100),
        metavar="NUMBER",
        help=f"{rounds} unless told, 1 with --smoke",
    )
    keeping = parser.add_mutually_exclusive_group()
    keeping.add_argument(
        "--plots",
        type=Path,
        metavar="FOLDER",
        help="keeps its report (JSON) and its curves (SVG) there, if it has any",
    )
    keeping.add_argument(
        "--write", action="store_true", help="keeps them in docs/measured, for docs/performance.md"
    )


def whole(least: int, most: int) -> Callable[[str], int]:
    """Reads a whole number within bounds, with or without commas between its thousands."""

    def read(text: str) -> int:
        value = int(text.replace(",", "")) if _WHOLE.fullmatch(text) else None
        if value is None or not least <= value <= most:
            raise argparse.ArgumentTypeError(
                f"must be a whole number from {least:,} to {most:,}, not {text!r}"
            )
        return value

    return read


def number(least: float, most: float) -> Callable[[str], float]:
    """Reads a number within bounds, with or without commas between its thousands."""

    def read(text: str) -> float:
        value = float(text.replace(",", "")) if _NUMBER.fullmatch(text) else None
        if value is None or not least <= value <= most:
            raise argparse.ArgumentTypeError(
                f"must be a number from {least:,g} to {most:,g}, not {text!r}"
            )
        return value

    return read
