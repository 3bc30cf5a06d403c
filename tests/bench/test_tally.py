"""What callers have seen goes from process to process and adds up."""

import pickle

import pytest

from tests.bench.tally import SHOWN_FAILURES, Tally, latency_of


def test_a_tally_is_the_same_in_another_process() -> None:
    tally = Tally(reissues=[1.5])
    tally.note("context", 0.25, None)
    tally.note("context", 0.5, "unauthorized")
    passed: Tally = pickle.loads(pickle.dumps(tally))  # noqa: S301 (its own)
    assert passed == tally


def test_tallies_add_up_with_the_first_failures_only() -> None:
    whole = Tally()
    for number in range(SHOWN_FAILURES + 5):
        part = Tally()
        part.note("context", number, f"no answer {number}")
        whole.add(part)
    assert (whole.calls, whole.all_failed) == (SHOWN_FAILURES + 5, SHOWN_FAILURES + 5)
    assert len(whole.failures) == SHOWN_FAILURES


@pytest.mark.parametrize(("seconds", "p50", "p99"), [([0.002], 2, 2), ([0.001, 0.003], 2, 2.98)])
def test_latencies_are_in_milliseconds(seconds: list[float], p50: float, p99: float) -> None:
    latency = latency_of(seconds)
    assert [latency.p50, latency.p99] == pytest.approx([p50, p99])
