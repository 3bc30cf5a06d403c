"""The kinds of work that are measured beside a reference: each a bench of its own.

Responsible for their names, their sizes and the form of their report. Called by `__main__`.
"""

from collections.abc import Callable
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
from tests.lab.process import LabFault


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
    "growth": Row(
        "each call, the start and the memory with many holdings, beside a hundred",
        *(growth.measure, "holdings", MOST_HOLDINGS, 30, MOST_HOLDINGS),
    ),
    "waiting": Row(
        "issuances that wait for a slow CA: memory and threads, beside ten",
        *(waiting.measure, "issuances", 10_000, 30, 100_000, 3),
    ),
    "renewals": Row(
        "certificates that come due all at once: what callers notice, beside before",
        *(renewals.measure, "holdings", 100_000, 40, MOST_HOLDINGS, 3),
    ),
    "cluster": Row(
        "a Redis Cluster of 3 and of 6 nodes: what each is asked, beside one Redis",
        *(cluster.measure, "hostnames", 500, 8, 10_000),
    ),
    "starts": Row(
        "an import, the help and a client's command, beside python -c pass",
        *(starts.measure, "starts", 5, 1, 100),
    ),
    "year": Row(
        "a simulated year of certificates of 45 days, against Let's Encrypt's limits",
        *(year.measure, "certificates", 1_000_000, 100, 2_000_000, 1),
    ),
}


def run_all(rounds: int | None, *, is_smoke: bool) -> dict[str, Any]:
    """Run all benches in their order, each as usual; one that cannot be run is a fault."""
    reports, faults = [], []
    for name in ROWS:
        tell(f"-- {name}")
        try:
            report = run(name, rounds, None, is_smoke=is_smoke)
        except LabFault as fault:
            faults.append(f"{name}: {fault}")
            continue
        reports.append(report)
        faults += [f"{name}: {fault}" for fault in report["faults"]]
    return {"bench": "all", "isSmoke": is_smoke, "reports": reports, "faults": faults}


def run(name: str, rounds: int | None, size: int | None, *, is_smoke: bool) -> dict[str, Any]:
    """Run one bench; its report. Raises: LabFault."""
    row = ROWS[name]
    usual = Pace(1, row.smoke_size, True) if is_smoke else Pace(row.rounds, row.size, False)
    pace = Pace(rounds or usual.rounds, size or usual.size, is_smoke)
    before = machine_now()
    seen = row.measure(pace)
    return {
        "bench": name,
        "machine": machine_now(),
        "loadAverageBefore": before["loadAverage"],
        "isSmoke": is_smoke,
        "rounds": pace.rounds,
        row.counted: pace.size,
        **seen,
    }
