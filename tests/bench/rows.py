"""The kinds of work that are measured beside a reference: each a bench of its own.

Responsible for their names, their sizes and the form of their report. Called by `__main__`.
"""

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


@dataclass(frozen=True)
class Row:
    """One bench: what it tells in `--help`, and how much it does unless told otherwise.

    `measure` answers `rows` (see `comparing`), `notes`, `faults`, and `curves` if it has any.
    `counted` says what its size is a number of.
    """

    tells: str
    measure: Callable[[Pace], dict[str, Any]]
    counted: str
    size: int
    smoke_size: int
    most: int
    rounds: int = 5


ROWS = {
    "starts": Row(
        "an import, the help and a client's command, beside python -c pass",
        *(starts.measure, "starts", 5, 1, 100),
    ),
    "ready": Row(
        "getting a certificate that is ready, beside a minimal Starlette endpoint",
        *(ready.measure, "holdings", 1_000, 20, 100_000),
    ),
    "syncs": Row(
        "publishing records, beside a dnspython loop and nsupdate at the same BIND",
        *(syncs.measure, "holdings", 1_000, 20, 100_000),
    ),
    "issuance": Row(
        "one certificate from the first question on, beside lego and certbot",
        *(issuance.measure, "hostnames", 5, 1, 100),
    ),
    "issuing": Row(
        "many certificates at once, beside a bare script on acme and lego",
        *(issuing.measure, "hostnames", 1_000, 4, 10_000),
    ),
    "cluster": Row(
        "a Redis Cluster of 3 and of 6 nodes: what each is asked, beside one Redis",
        *(cluster.measure, "hostnames", 300, 8, 10_000),
    ),
    "waiting": Row(
        "issuances that wait for a slow CA: memory and threads, beside ten",
        *(waiting.measure, "issuances", 10_000, 30, 100_000, 3),
    ),
    "renewals": Row(
        "certificates that come due all at once: what callers notice, beside before",
        *(renewals.measure, "holdings", 100_000, 40, MOST_HOLDINGS, 3),
    ),
    "growth": Row(
        "each call, the start and the memory with many holdings, beside a hundred",
        *(growth.measure, "holdings", MOST_HOLDINGS, 30, MOST_HOLDINGS),
    ),
    "year": Row(
        "a simulated year of certificates of 45 days, against Let's Encrypt's limits",
        *(year.measure, "certificates", 1_000_000, 100, 2_000_000, 1),
    ),
}
"""In the order in which all are run: what is soon over comes first."""


def run_all(
    rounds: int | None,
    *,
    is_smoke: bool,
    left_out: Container[str],
    keep: Callable[[dict[str, Any]], None],
) -> dict[str, Any]:
    """Run all benches in their order, each as usual, but for those that are left out.

    `keep` is given each report as soon as it is there. One that cannot be run is a fault, whatever
    came in its way: the others are not lost by it.
    """
    reports, faults = [], []
    for name in ROWS:
        if name in left_out:
            continue
        tell(f"-- {name}")
        try:
            report = run(name, rounds, None, is_smoke=is_smoke)
        except Exception as fault:  # noqa: BLE001
            traceback.print_exc()
            faults.append(f"{name}: {fault!r}")
            continue
        keep(report)
        reports.append(report)
        faults += [f"{name}: {fault}" for fault in report["faults"]]
    return {"bench": "all", "isSmoke": is_smoke, "reports": reports, "faults": faults}


def run(name: str, rounds: int | None, size: int | None, *, is_smoke: bool) -> dict[str, Any]:
    """Run one bench; its report. Raises: LabFault."""
    row = ROWS[name]
    usual = Pace(1, row.smoke_size, True) if is_smoke else Pace(row.rounds, row.size, False)
    pace = Pace(rounds or usual.rounds, size or usual.size, is_smoke)
    before = machine_now()
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
    }
