"""What callers are told to wait for a certificate."""

from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from gateway.certificates.machine import request
from gateway.certificates.moves import Moment
from gateway.certificates.pace import FIRST_GUESS_MS, LONGEST_MS, SHORTEST_MS, Pace
from gateway.certificates.states import Issuance, State
from gateway.contract.names import Hostname

BEGUN_MS = 1_000_000
HOSTNAME = Hostname("relay.example.test")


def issuance(ordered_after_ms: int | None, begun_at_ms: int = BEGUN_MS) -> Issuance:
    """One that was requested, and has an order since then or none yet."""
    requested = replace(request("one", Moment(BEGUN_MS, 0)), begun_at_ms=begun_at_ms)
    if ordered_after_ms is None:
        return requested
    passed_ms = {**requested.passed_ms, State.ORDERED.value: BEGUN_MS + ordered_after_ms}
    return replace(requested, state=State.ORDERED, passed_ms=passed_ms)


def taught(*took_ms: int, waited_ms: int = 0) -> Pace:
    """A pace that has seen as many issuances as it remembers, each after such a wait for a turn."""
    pace = Pace()
    for each_ms in took_ms:
        pace.issued(issuance(waited_ms), BEGUN_MS + waited_ms + each_ms)
    return pace


def test_pace_learns_from_finished_issuances() -> None:
    assert Pace().whole_ms(HOSTNAME) == FIRST_GUESS_MS
    assert taught(*[400] * 50).whole_ms(HOSTNAME) == 400


def test_one_slow_issuance_says_nothing_of_the_next() -> None:
    assert taught(400, 400, 400, 120_000).whole_ms(HOSTNAME) == 400


def test_one_that_comes_by_itself_is_not_told_what_a_thousand_at_once_have_waited() -> None:
    assert taught(*[400] * 50, waited_ms=30_000).whole_ms(HOSTNAME) == 400


def test_one_behind_others_is_told_to_wait_for_their_turns_as_well() -> None:
    pace = taught(*[400] * 50)
    pace.watch(lambda _: 2.5)
    assert pace.whole_ms(HOSTNAME) == 400 + 1_000


@pytest.mark.parametrize(
    ("turns", "ordered_after_ms", "now_after_ms", "told_ms"),
    [
        (None, None, 100, 400),  # somewhere else, and its turn is near for all that is known
        (None, None, 20_000, 2_500),  # late for its turn there
        (0, None, 20_000, 400),  # its turn has come
        (2.5, None, 20_000, 1_400),  # its turn comes soon
        (50, None, 20_000, 2_500),  # most of those that wait have come later
        (None, 20_000, 20_100, 300),  # at work, whatever it has waited
        (0, 20_000, 24_000, 500),  # late at work
    ],
)
def test_one_under_way_is_told_what_is_left(
    turns: float | None, ordered_after_ms: int | None, now_after_ms: int, told_ms: int
) -> None:
    pace = taught(*[400] * 50)
    pace.watch(lambda _: turns)
    assert (
        pace.remaining_ms(HOSTNAME, issuance(ordered_after_ms), BEGUN_MS + now_after_ms) == told_ms
    )


def test_time_that_was_lost_to_an_outage_is_no_work() -> None:
    pace = taught(*[400] * 50)
    resumed = issuance(ordered_after_ms=100, begun_at_ms=BEGUN_MS + 3_600_000)
    assert pace.remaining_ms(HOSTNAME, resumed, BEGUN_MS + 3_600_100) == 300
    pace.issued(resumed, BEGUN_MS + 3_600_000 + 400)
    assert pace.whole_ms(HOSTNAME) == 400


@given(
    st.integers(min_value=0, max_value=10**9),
    st.none() | st.integers(min_value=0, max_value=10**9),
    st.none() | st.floats(min_value=0, max_value=10**6),
)
def test_estimate_stays_within_its_bounds(
    elapsed_ms: int, ordered_after_ms: int | None, turns: float | None
) -> None:
    pace = Pace()
    pace.watch(lambda _: turns)
    remaining_ms = pace.remaining_ms(HOSTNAME, issuance(ordered_after_ms), BEGUN_MS + elapsed_ms)
    for told_ms in (remaining_ms, pace.whole_ms(HOSTNAME)):
        assert SHORTEST_MS <= told_ms <= LONGEST_MS
