"""How far apart clocks may be; the servers of the lab share ours."""

import pytest

from gateway.cli.finding import State
from gateway.cli.findings import clock_finding, redis_clock_finding


@pytest.mark.parametrize(
    ("skew_seconds", "state"),
    [
        (0.0, State.OK),
        (-29.0, State.OK),
        (30.0, State.WARNING),
        (-299.0, State.WARNING),
        (300.0, State.FAILED),
        (-86400.0, State.FAILED),
    ],
)
def test_clock_is_judged_by_its_distance(skew_seconds: float, state: State) -> None:
    finding = clock_finding("example.test", skew_seconds)
    assert (finding.part, finding.state) == ("clock example.test", state)
    assert bool(finding.remedy) is (state is not State.OK)


def test_clock_finding_says_who_is_ahead() -> None:
    ahead, behind = clock_finding("a.test", 100.0), clock_finding("a.test", -100.0)
    assert ahead.finding == "The server's clock is 100 s ahead of this one."
    assert behind.finding == "The server's clock is 100 s behind this one."


@pytest.mark.parametrize(
    ("ahead_seconds", "state"),
    [(0.0, State.OK), (-4.9, State.OK), (5.1, State.WARNING), (-86400.0, State.WARNING)],
)
def test_redis_clock_is_judged_by_its_distance(ahead_seconds: float, state: State) -> None:
    finding = redis_clock_finding(ahead_seconds)
    assert (finding.part, finding.state) == ("clock redis", state)
    assert bool(finding.remedy) is (state is not State.OK)


def test_redis_clock_finding_says_who_is_ahead() -> None:
    assert "100 s ahead of this one" in redis_clock_finding(100.0).finding
    assert "100 s behind this one" in redis_clock_finding(-100.0).finding
