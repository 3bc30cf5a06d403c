"""A Sentinel pair that has lost its replica: each write is judged by whom the Sentinels name."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from gateway.store import nodes, routing, topology
from gateway.store.connection import Store, StoreUnavailable
from gateway.store.topology import SentinelTopology
from tests.lab.redis import ask_redis
from tests.lab.redis_sentinel import SERVICE, SentinelSet, start_sentinel_set

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from tests.lab.process import Process

LONG_SECONDS = 60.0
WRITES = 10


@pytest.fixture
def half(tmp_path: Path) -> Iterator[SentinelSet]:
    """A set whose replica is gone, and whose Sentinels are slow to find anything down."""
    started = start_sentinel_set(tmp_path)
    try:
        for port in started.sentinels:
            ask_redis(port, "SENTINEL", "SET", SERVICE, "down-after-milliseconds", "30000")
        started.replica().kill()
        yield started
    finally:
        for sentinel in started.sentinels.values():
            sentinel.resume()
        started.stop()


@pytest.fixture
def forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    """The Sentinels are asked for each write, however sure they were a moment ago."""
    monkeypatch.setattr(topology, "CONFIRMED_SECONDS", 0.0)


@asynccontextmanager
async def opened(half: SentinelSet) -> AsyncIterator[Store]:
    store = Store(half.url)
    try:
        await store.ping()
        yield store
    finally:
        await store.close()


def silence(half: SentinelSet, count: int) -> list[Process]:
    chosen = list(half.sentinels.values())[-count:]
    for sentinel in chosen:
        sentinel.pause()
    return chosen


class Searches:
    """Counts how often the Sentinels are asked, and tells whether they are being asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        self.under_way = 0
        find = SentinelTopology._find

        async def counted(found: SentinelTopology) -> None:
            self.count += 1
            self.under_way += 1
            try:
                await find(found)
            finally:
                self.under_way -= 1

        monkeypatch.setattr(SentinelTopology, "_find", counted)


@pytest.mark.usefixtures("forgetful")
async def test_silent_sentinel_is_not_waited_for(
    half: SentinelSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(half) as store:
        silence(half, 1)
        # Whoever waits for it runs into the limit of the whole call.
        monkeypatch.setattr(topology, "ASK_LIMIT_SECONDS", LONG_SECONDS)
        monkeypatch.setattr(nodes, "COMMAND_TIMEOUT_SECONDS", LONG_SECONDS)
        await store.add_to_set("gw:x", "a")
        assert await store.set_members("gw:x") == {"a"}


async def test_sentinels_are_not_asked_for_each_write(
    half: SentinelSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(half) as store:
        searches = Searches(monkeypatch)
        for number in range(WRITES):
            await store.add_to_set("gw:x", str(number))
        assert 1 <= searches.count < WRITES


@pytest.mark.usefixtures("forgetful")
async def test_reads_go_on_while_a_write_is_being_confirmed(
    half: SentinelSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topology, "ASK_LIMIT_SECONDS", 3.0)
    monkeypatch.setattr(nodes, "COMMAND_TIMEOUT_SECONDS", LONG_SECONDS)
    async with opened(half) as store:
        silence(half, 3)
        searches = Searches(monkeypatch)
        write = asyncio.create_task(store.add_to_set("gw:x", "a"))
        while not searches.under_way:
            assert not write.done()
            await asyncio.sleep(0.01)
        assert await store.set_members("gw:x") == {"a"}
        assert searches.under_way
        with pytest.raises(StoreUnavailable, match="No Sentinel"):
            await write
        # A write that nobody confirmed takes the primary from no reader.
        assert await store.set_members("gw:x") == {"a"}


@pytest.mark.usefixtures("forgetful")
async def test_write_is_not_believed_where_fewer_than_a_majority_of_sentinels_are(
    half: SentinelSet,
) -> None:
    """As on the smaller side of a divided network, which is told of no failover."""
    async with opened(half) as store:
        silence(half, 2)
        with pytest.raises(StoreUnavailable, match="Too few Sentinels"):
            await store.add_to_set("gw:x", "a")
        for sentinel in half.sentinels.values():
            sentinel.resume()
        await store.add_to_set("gw:x", "b")


@pytest.mark.usefixtures("forgetful")
async def test_one_limit_is_around_a_write_and_its_confirmation(
    half: SentinelSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(half) as store:
        silence(half, 3)
        # Neither takes as long; both together do.
        monkeypatch.setattr(topology, "ASK_LIMIT_SECONDS", 0.9)
        monkeypatch.setattr(routing, "LIMIT_SECONDS", 1.0)
        with pytest.raises(StoreUnavailable, match="gave no answer within 1 s"):
            await store.add_to_set("gw:x", "a")
        with pytest.raises(StoreUnavailable, match="gave no answer within 1 s"):
            await store.remove_member("gw:y", "a", up_to_score=0)
