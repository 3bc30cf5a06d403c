"""The kinds of work that are measured beside a reference: each a bench of its own.

Responsible for their names, their sizes and the form of their report. Called by `__main__`.
"""

import os
import time
import traceback
from collections.abc import Callable, Container
from dataclasses import dataclass
from typing import Any

from tests.bench import (
    cluster,
    growth,
    issuance,
    issuing,
    ready,
    renewals,
    starts,
    syncs,
    waiting,
    year,
)
from tests.bench.paces import Pace, tell
from tests.bench.reporting import machine_now
from tests.bench.stock import MOST_HOLDINGS
from tests.bench.watching import other_benches


@dataclass(frozen=True, kw_only=True)
class Row:
    """One bench: what it tells in `--help`, and how much it does unless told otherwise.

    `measure` answers `rows` (see `comparing`), `notes`, `faults`, and `curves` if it has any.
    `counted` says what its size is a number of; the `least` it works with is what a smoke has.
    `lasts`: about how long, at the usual size and rounds.
    """

    tells: str
    measure: Callable[[Pace], dict[str, Any]]
    counted: str
    size: int
    least: int
    most: int
    rounds: int = 5
    lasts: str


ROWS = {
    "starts": Row(
        tells="an import, the help and a client's command, beside python -c pass",
        measure=starts.measure,
        counted="starts",
        size=5,
        least=1,
        most=100,
        lasts="12 seconds",
    ),
    "ready": Row(
        tells="getting a certificate that is ready, beside a minimal Starlette endpoint",
        measure=ready.measure,
        counted="holdings",
        size=1_000,
        least=20,
        most=100_000,
        lasts="3 minutes",
    ),
    "syncs": Row(
        tells="publishing records, beside a dnspython loop and nsupdate at the same BIND",
        measure=syncs.measure,
        counted="holdings",
        size=1_000,
        least=20,
        most=100_000,
        lasts="2 minutes",
    ),
    "issuance": Row(
        tells="one certificate from the first question on, beside lego and certbot",
        measure=issuance.measure,
        counted="hostnames",
        size=5,
        least=1,
        most=100,
        lasts="a minute",
    ),
    "issuing": Row(
        tells="many certificates at once, beside a bare script on acme and lego",
        measure=issuing.measure,
        counted="hostnames",
        size=1_000,
        least=4,
        most=10_000,
        lasts="3 minutes",
    ),
    "cluster": Row(
        tells="a Redis Cluster of 3 and of 6 nodes: what each is asked, beside one Redis",
        measure=cluster.measure,
        counted="hostnames",
        size=300,
        least=8,
        most=10_000,
        lasts="3 minutes",
    ),
    "waiting": Row(
        tells="issuances that wait for a slow CA: memory and threads, beside ten",
        measure=waiting.measure,
        counted="issuances",
        size=10_000,
        least=30,
        most=100_000,
        rounds=3,
        lasts="a minute",
    ),
    "renewals": Row(
        tells="certificates that come due all at once: what callers notice, beside before",
        measure=renewals.measure,
        counted="holdings",
        size=100_000,
        least=40,
        most=MOST_HOLDINGS,
        rounds=3,
        lasts="10 minutes",
    ),
    "growth": Row(
        tells="each call, the start and the memory with many holdings, beside a hundred",
        measure=growth.measure,
        counted="holdings",
        size=MOST_HOLDINGS,
        least=growth.FEW + 1,
        most=MOST_HOLDINGS,
        lasts="25 minutes",
    ),
    "year": Row(
        tells="a simulated year of certificates of 45 days, against Let's Encrypt's limits",
        measure=year.measure,
        counted="certificates",
        size=1_000_000,
        least=100,
        most=2_000_000,
        rounds=1,
        lasts="an hour of a core",
    ),
}
"""In the order in which all are run: what is soon over comes first."""


def run_all(
    rounds: int | None,
    *,
    is_smoke: bool,
    left_out: Container[str],
    keep: Callable[[dict[str, Any]], list[str]],
) -> dict[str, Any]:
    """Run all benches in their order, each as usual, but for those that are left out.

    `keep` is given each report as soon as it is there, and answers what was not kept of it. One
    that cannot be run or kept is a fault, whatever came in its way: the others are not lost by it.
    """
    reports, faults = [], []
    for name in ROWS:
        if name in left_out:
            continue
        tell(f"-- {name}")
        try:
            report = run(name, rounds, None, is_smoke=is_smoke)
            reports.append(report)
            found = [*report["faults"], *keep(report)]
        except Exception as fault:  # noqa: BLE001
            traceback.print_exc()
            found = [repr(fault)]
        faults += [f"{name}: {fault}" for fault in found]
    return {"bench": "all", "isSmoke": is_smoke, "reports": reports, "faults": faults}


def run(name: str, rounds: int | None, size: int | None, *, is_smoke: bool) -> dict[str, Any]:
    """Run one bench; its report. Raises: LabFault."""
    row = ROWS[name]
    usual = Pace(1, row.least, True) if is_smoke else Pace(row.rounds, row.size, False)
    pace = Pace(rounds or usual.rounds, size or usual.size, is_smoke)
    before = machine_now()
    notes = [] if is_smoke else _notes_before(before["loadAverage"])
    began = time.monotonic()
    seen = row.measure(pace)
    return {
        "bench": name,
        "seconds": round(time.monotonic() - began),
        "machine": machine_now(),
        "loadAverageBefore": before["loadAverage"],
        "isSmoke": is_smoke,
        "rounds": pace.rounds,
        row.counted: pace.size,
        **seen,
        "notes": [*notes, *seen["notes"]],
    }


def _notes_before(load: float) -> list[str]:
    """What else seems to be at work on the machine; of a load average the bench before may be."""
    notes = []
    cores = os.cpu_count() or 1
    if load > cores / 2:
        notes.append(f"the machine was not idle before: load average {load}, of {cores} cores")
    if others := other_benches():
        pids = ", ".join(map(str, others))
        notes.append(f"another bench ran when this one began: process {pids}")
    return notes
