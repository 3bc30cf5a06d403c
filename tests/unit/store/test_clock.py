"""The shared clock, over a Redis that tells any time (a real one's clock cannot be set)."""

import logging

import pytest

from gateway.store.clock import SharedClock
from gateway.store.connection import Store
from gateway.store.faults import StoreRefused, StoreUnavailable

LOCAL_MS = 1_800_000_000_000
TOLD_MS = 1_700_000_000_000


class ToldStore(Store):
    """Tells `told`, or raises it; each answer takes `way_ms` there and back."""

    def __init__(self) -> None:
        super().__init__("redis://127.0.0.1:1")
        self.steady = 0
        self.local = LOCAL_MS
        self.way_ms = 0
        self.told: int | Exception = TOLD_MS

    async def time_ms(self) -> int:
        self.steady += self.way_ms
        if isinstance(self.told, Exception):
            raise self.told
        return self.told


@pytest.fixture
def store() -> ToldStore:
    return ToldStore()


@pytest.fixture
def clock(store: ToldStore) -> SharedClock:
    return SharedClock(store, lambda: store.local, lambda: store.steady)


def test_before_redis_could_be_asked_the_time_is_the_machines(clock: SharedClock) -> None:
    assert clock.now_ms() == LOCAL_MS
    assert not clock.is_set


async def test_time_is_what_redis_told_and_what_has_passed_since(
    store: ToldStore, clock: SharedClock
) -> None:
    await clock.sync()
    assert clock.is_set
    store.steady += 1_234
    assert clock.now_ms() == TOLD_MS + 1_234


async def test_setting_the_machines_clock_moves_nothing(
    store: ToldStore, clock: SharedClock
) -> None:
    await clock.sync()
    store.local += 3_600_000
    assert clock.now_ms() == TOLD_MS


async def test_answer_is_taken_to_have_been_half_way_under_way(
    store: ToldStore, clock: SharedClock
) -> None:
    store.way_ms = 300
    await clock.sync()
    assert clock.now_ms() == TOLD_MS + 150


async def test_clock_follows_that_of_redis(store: ToldStore, clock: SharedClock) -> None:
    await clock.sync()
    store.told = TOLD_MS - 3_600_000
    await clock.sync()
    assert clock.now_ms() == TOLD_MS - 3_600_000


async def test_clock_goes_on_while_redis_is_away(store: ToldStore, clock: SharedClock) -> None:
    await clock.sync()
    store.told = StoreUnavailable("away")
    store.steady += 500
    with pytest.raises(StoreUnavailable):
        await clock.sync()
    assert clock.now_ms() == TOLD_MS + 500


async def test_time_stays_the_machines_where_redis_may_not_be_asked(
    store: ToldStore, clock: SharedClock, caplog: pytest.LogCaptureFixture
) -> None:
    store.told = StoreRefused("Redis refused a command: NOPERM")
    caplog.set_level(logging.WARNING)  # a command that another test ran may have set it higher
    await clock.sync()
    await clock.sync()
    assert clock.is_set
    assert clock.now_ms() == LOCAL_MS
    assert [record.message for record in caplog.records] == [
        "Redis refused a command: NOPERM (TIME): the clocks of all machines must agree"
    ]
