"""Leases: when one has lapsed, who is let go on, and for how long others are left alone."""

import asyncio
import contextvars

import pytest

from gateway.certificates import leases
from gateway.certificates.leases import (
    GRACE_AFTER_JUMP_MS,
    GRACE_MS,
    LEASE_MS,
    LONGEST_AHEAD_MS,
    Grace,
    LeaseLost,
    LeaseOver,
)
from gateway.store.clock import SharedClock
from gateway.store.connection import Store
from gateway.store.documents import Lease

NOW_MS = 1_800_000_000_000


def lease(until_ms: int) -> Lease:
    return Lease("another", 1, until_ms)


@pytest.mark.parametrize(
    ("until_ms", "has_lapsed"),
    [
        (NOW_MS - 1, True),
        (NOW_MS, True),
        (NOW_MS + 1, False),
        (NOW_MS + LEASE_MS, False),
        (NOW_MS + LONGEST_AHEAD_MS, False),
        (NOW_MS + LONGEST_AHEAD_MS + 1, True),
    ],
)
def test_lease_has_lapsed_when_over_or_further_off_than_one_can_be(
    until_ms: int, has_lapsed: bool
) -> None:
    assert leases.has_lapsed(lease(until_ms), NOW_MS) is has_lapsed


def test_check_without_a_lease_lets_anything_pass() -> None:
    leases.check()


def refuse() -> None:
    raise LeaseOver("it is over")


def test_lease_that_is_over_is_a_lease_lost() -> None:
    with leases.guarded_by(refuse), pytest.raises(LeaseLost):
        leases.check()
    leases.check()


async def test_guard_goes_along_into_tasks_and_threads() -> None:
    with leases.guarded_by(refuse):
        task = asyncio.create_task(asyncio.to_thread(leases.check))
    with pytest.raises(LeaseOver):
        await task


def test_guard_goes_along_in_a_copied_context_and_not_beyond_the_block() -> None:
    with leases.guarded_by(refuse):
        inside = contextvars.copy_context()
    with pytest.raises(LeaseOver):
        inside.run(leases.check)
    contextvars.copy_context().run(leases.check)


class Time:
    """A counter of this process, and how far the shared clock is ahead of it."""

    def __init__(self) -> None:
        self.steady = 5_000
        self.ahead = NOW_MS


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def grace(time: Time) -> Grace:
    # Not asked for its time: the clock goes by what it is given.
    clock = SharedClock(
        Store("redis://127.0.0.1:1"), lambda: time.steady + time.ahead, lambda: time.steady
    )
    return Grace(clock)


def test_nothing_is_taken_over_before_the_first_contact(time: Time, grace: Grace) -> None:
    time.steady += 100 * GRACE_MS
    assert not grace.is_over()


def after_the_start(time: Time, grace: Grace) -> None:
    grace.note_contact()
    time.steady += GRACE_MS
    assert grace.is_over()


def test_lapsed_leases_are_left_alone_for_a_while_after_the_start(time: Time, grace: Grace) -> None:
    grace.note_contact()
    time.steady += GRACE_MS - 1
    assert not grace.is_over()
    time.steady += 1
    assert grace.is_over()


def test_further_contacts_do_not_prolong_the_grace(time: Time, grace: Grace) -> None:
    grace.note_contact()
    time.steady += GRACE_MS - 1
    grace.note_contact()
    time.steady += 1
    assert grace.is_over()


def test_grace_begins_with_the_end_of_an_outage(time: Time, grace: Grace) -> None:
    after_the_start(time, grace)
    grace.note_outage()
    time.steady += 100 * GRACE_MS
    assert not grace.is_over()
    grace.note_contact()
    assert not grace.is_over()
    time.steady += GRACE_MS
    assert grace.is_over()


@pytest.mark.parametrize("jump_ms", [3_600_000, -3_600_000])
def test_owners_are_given_time_to_notice_that_redis_clock_was_set(
    time: Time, grace: Grace, jump_ms: int
) -> None:
    after_the_start(time, grace)
    time.ahead += jump_ms
    assert not grace.is_over()
    time.steady += GRACE_AFTER_JUMP_MS
    assert grace.is_over()


def test_errors_of_measuring_are_no_jump(time: Time, grace: Grace) -> None:
    after_the_start(time, grace)
    time.ahead += 200
    assert grace.is_over()
