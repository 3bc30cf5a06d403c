"""A year of a million certificates of 45 days, against Let's Encrypt's limits.

Responsible for the scenario and for what is to be shown: nothing expires, no limit is crossed, and
how busy the busiest hour is. A simulation (`simulation`) by the product's own rules, without a lab;
it takes about an hour of a core at its full size. Called by `rows`.
"""

import asyncio
import gc
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from gateway.certificates.budget import HOUR_MS, Budget
from tests.bench.comparing import alone, at_most
from tests.bench.paces import Pace, tell
from tests.bench.simulation import DAY_MS, Outcome, Scenario, Simulation

_DAYS = 365
_NEW_A_DAY = 2_000
"""Of the 2,400 that an account may order a day."""

_IMPORTED, _SMOKE_IMPORTED = 200, 60


def scenario_of(certificates: int, *, is_smoke: bool) -> Scenario:
    """A year that begins with so many certificates; fewer have fewer new names."""
    return Scenario(
        certificates,
        _DAYS,
        new_a_day=min(_NEW_A_DAY, max(1, certificates // 500)),
        imported=_SMOKE_IMPORTED if is_smoke else _IMPORTED,
    )


def measure(pace: Pace) -> dict[str, Any]:
    """`pace.rounds` years, each with other chances, of `pace.size` certificates."""
    scenario = scenario_of(pace.size, is_smoke=pace.is_smoke)
    outcomes = []
    for seed in range(pace.rounds):
        tell(f"year {seed + 1} of {pace.rounds}: {pace.size:,} certificates")
        outcomes.append(_passed(scenario, seed))
    return {
        "rows": _rows(outcomes),
        "notes": [],
        "curves": [_by_day(outcomes[0])],
        "faults": faults_of(outcomes),
    }


def faults_of(outcomes: Sequence[Outcome]) -> list[str]:
    """What must not come to pass in any year, each in a sentence."""
    expired = sum(outcome.expired for outcome in outcomes)
    faults = [f"{expired:,} certificates expired"] if expired else []
    refused: Counter[str] = Counter()
    for outcome in outcomes:
        refused.update(outcome.referee.refused)
    for name, count in refused.items():
        faults.append(f"{count:,} orders were beyond the CA's limit: {name}")
    return faults


def _passed(scenario: Scenario, seed: int) -> Outcome:
    # Millions of small objects live for long, and none in a cycle: looking for cycles among them
    # again and again would take as long as the rest.
    gc.disable()
    try:
        return asyncio.run(Simulation(scenario, seed, Budget()).run())
    finally:
        gc.enable()


def _rows(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    def values(of: Callable[[Outcome], float]) -> list[float]:
        return [of(outcome) for outcome in outcomes]

    hours = _DAYS * 24
    return [
        alone("certificates that expired", "", values(lambda one: one.expired), at_most(0)),
        alone(
            "orders beyond a limit",
            "",
            values(lambda one: sum(one.referee.refused.values())),
            at_most(0),
        ),
        alone("issued in the year", "", values(lambda one: one.issued_in_hour.total())),
        alone("issued in the busiest hour", "", values(_busiest)),
        alone(
            "the busiest hour to the mean",
            "",
            values(lambda one: _busiest(one) * hours / one.issued_in_hour.total()),
        ),
        alone("least left of one renewed", "days", values(lambda one: one.least_left_ms / DAY_MS)),
        alone(
            "longest wait of a new name",
            "hours",
            values(lambda one: max(one.new_waits_ms, default=0) / HOUR_MS),
        ),
        alone(
            "longest wait of an imported name",
            "days",
            values(lambda one: max(one.import_waits_ms, default=0) / DAY_MS),
        ),
        alone("names without one at the end", "", values(lambda one: one.still_waiting)),
        alone(
            "looks at orders held back, for each name that is not renewed",
            "",
            values(lambda one: one.held / (len(one.new_waits_ms) + len(one.import_waits_ms))),
        ),
    ]


def _busiest(outcome: Outcome) -> int:
    return max(outcome.issued_in_hour.values())


def _by_day(outcome: Outcome) -> dict[str, Any]:
    days = [0.0] * _DAYS
    for hour, issued in outcome.issued_in_hour.items():
        days[min(hour // 24, _DAYS - 1)] += issued
    return {
        "name": "days",
        "title": "Issued in a day",
        "along": "day",
        "is_linear": True,
        "places": list(range(1, _DAYS + 1)),
        "unit": "certificates",
        "lines": {"issued": days},
    }
