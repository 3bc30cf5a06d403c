"""The clocks that an agent goes by."""

import time

import pytest

from gateway.agent.clocks import DAY_MS, machine_steady_ms, moment, within_calendars


def test_steady_clock_is_the_one_that_goes_on_while_the_machine_sleeps() -> None:
    before = time.clock_gettime(time.CLOCK_BOOTTIME) * 1000
    assert before - 1 <= machine_steady_ms() <= time.clock_gettime(time.CLOCK_BOOTTIME) * 1000


def test_moment_is_utc_to_the_second() -> None:
    assert moment(1_795_000_000_999) == "2026-11-18 11:06:40 UTC"


@pytest.mark.parametrize(
    ("now_ms", "day"),
    [
        (-1, "1970-01-01"),
        (1_795_000_000_999, "2026-11-18"),
        (253_402_300_800_000, "9999-12-01"),
        (2**80, "9999-12-01"),
    ],
)
def test_clock_beyond_all_calendars_can_be_told_and_counted_on_from(now_ms: int, day: str) -> None:
    told_ms = within_calendars(now_ms)
    assert moment(told_ms).startswith(day)
    assert moment(told_ms + DAY_MS)
