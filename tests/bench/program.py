"""One run of the bench: the table and the JSON line on standard output, and the exit status.

Responsible for what comes in which order: where reports are to be kept is looked at before anything
is measured, and a table is shown before it is kept. How it goes is told on standard error.
Must not: measure; each kind of bench has its module. Called by `__main__`.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.bench import calls, pages, rows, soak
from tests.bench.keeping import Keeping, Unkeepable
from tests.bench.options import ALL, read_options
from tests.bench.reporting import calls_table, compared_table, pages_table, soak_table
from tests.lab.process import LabFault

_FAULTY, _MISTAKEN = 1, 2


def run(arguments: Sequence[str], kept: list[Path]) -> int:
    """Run the bench that is told; the exit status. `kept` gets every file that was written."""
    options = read_options(arguments)
    keeping = Keeping(getattr(options, "plots", None), kept, is_written=options.write)
    try:
        keeping.prepare()
    except Unkeepable as fault:
        sys.stderr.write(f"bench: {fault}\n")
        return _MISTAKEN
    try:
        if options.bench == ALL:
            return _run_all(options, keeping)
        report, table = _run_one(options)
    except LabFault as fault:
        sys.stderr.write(f"bench: {fault}\n")
        return _FAULTY
    _show(f"{table}\n{json.dumps(report)}")
    faults = list(report["faults"])
    if options.bench in rows.ROWS:
        faults += keeping.keep(report)
    return _FAULTY if faults else 0


def _run_one(options: argparse.Namespace) -> tuple[dict[str, Any], str]:
    """The report of one bench, and its table."""
    if options.bench == "soak":
        report = soak.soak(soak.Options(options.minutes, options.holdings, options.rate))
        return report, soak_table(report)
    if options.bench == "page":
        report = pages.measure(pages.Options(options.holdings, options.loads))
        return report, pages_table(report)
    if options.bench == "calls":
        report = calls.measure(
            calls.Options(
                # In their order: what replaces records comes after what expects them.
                [kind for kind in calls.KINDS if kind in (options.kind or calls.KINDS)],
                options.seconds,
                options.connections,
                options.holdings,
            )
        )
        return report, calls_table(report)
    report = rows.run(options.bench, options.rounds, options.size, is_smoke=options.smoke)
    return report, compared_table(report)


def _run_all(options: argparse.Namespace, keeping: Keeping) -> int:
    def keep(report: dict[str, Any]) -> list[str]:
        _show(f"{compared_table(report)}\n")
        return keeping.keep(report)

    report = rows.run_all(
        options.rounds, is_smoke=options.smoke, left_out=options.without or (), keep=keep
    )
    # Their tables were shown one by one.
    _show(f"\n{json.dumps(report)}")
    return _FAULTY if report["faults"] else 0


def _show(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
