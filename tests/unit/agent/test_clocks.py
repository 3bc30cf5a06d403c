"""The clocks that an agent goes by."""

import time

from gateway.agent.clocks import machine_steady_ms, moment


def test_steady_clock_is_the_one_that_goes_on_while_the_machine_sleeps() -> None:
    before = time.clock_gettime(time.CLOCK_BOOTTIME) * 1000
    assert before - 1 <= machine_steady_ms() <= time.clock_gettime(time.CLOCK_BOOTTIME) * 1000


def test_moment_is_utc_to_the_second() -> None:
    assert moment(1_795_000_000_999) == "2026-11-18 11:06:40 UTC"
