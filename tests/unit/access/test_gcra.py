"""The rate: as many as it says, never more, and a wait that is true to the microsecond."""

from hypothesis import given, strategies as st

from gateway.access.gcra import MINUTE_US, SECOND_US, Rate, in_ms

RATES = st.builds(
    Rate, st.integers(1, 5_000), st.sampled_from([SECOND_US, MINUTE_US, 60 * MINUTE_US])
)
NOW = 1_800_000_000 * SECOND_US
MOMENTS = st.integers(0, 2 * NOW)


@given(rate=RATES)
def test_fresh_rate_grants_all_its_calls_at_once_and_then_none(rate: Rate) -> None:
    stored = granted = 0
    while not rate.wait_us(stored, NOW):
        stored = rate.after_one(stored, NOW)
        granted += 1
    assert granted == rate.count


@given(rate=RATES, stored=MOMENTS)
def test_whoever_waits_as_told_is_granted_one_and_a_moment_earlier_none(
    rate: Rate, stored: int
) -> None:
    wait_us = rate.wait_us(stored, NOW)
    kept = rate.whole_at(stored, NOW)
    assert rate.wait_us(kept, NOW + wait_us) == 0
    assert wait_us == 0 or rate.wait_us(kept, NOW + wait_us - 1) == 1


@given(rate=RATES, pauses=st.lists(st.integers(0, SECOND_US), max_size=200))
def test_never_more_are_granted_than_all_at_once_and_what_came_back_since(
    rate: Rate, pauses: list[int]
) -> None:
    stored, now, granted = 0, NOW, 0
    for pause in pauses:
        now += pause
        if not rate.wait_us(stored, now):
            stored = rate.after_one(stored, now)
            granted += 1
    assert granted <= rate.count + (now - NOW) // rate.interval_us


@given(rate=RATES, stored=MOMENTS)
def test_no_wait_is_longer_than_a_call_takes_to_come_back(rate: Rate, stored: int) -> None:
    # Whatever lies in Redis: a clock that was wrong, a rate that was higher, somebody's hand.
    assert 0 <= rate.wait_us(stored, NOW) <= rate.interval_us


@given(rate=RATES, spare=st.integers(0, 6_000))
def test_spare_calls_are_left_to_others_but_one_is_always_usable(rate: Rate, spare: int) -> None:
    stored = granted = 0
    while not rate.wait_us(stored, NOW, spare):
        stored = rate.after_one(stored, NOW)
        granted += 1
    assert granted == max(1, rate.count - spare)


@given(rate=RATES, taken=st.integers(0, 200), pause=st.integers(0, 120 * SECOND_US))
def test_what_is_used_are_the_calls_that_were_taken_and_have_not_come_back(
    rate: Rate, taken: int, pause: int
) -> None:
    stored = 0
    for _ in range(taken):
        stored = rate.after_one(stored, NOW)
    assert rate.used(stored, NOW) == min(taken, rate.count)
    came_back = pause // rate.interval_us
    assert rate.used(stored, NOW + pause) == max(0, min(taken, rate.count) - came_back)


@given(rate=RATES, stored=MOMENTS)
def test_whatever_lies_in_redis_no_more_is_used_than_there_is(rate: Rate, stored: int) -> None:
    assert 0 <= rate.used(stored, NOW) <= rate.count


def test_wait_is_told_in_whole_milliseconds_that_are_never_too_short() -> None:
    assert [in_ms(each) for each in (0, 1, 1_000, 1_001)] == [0, 1, 1, 2]
