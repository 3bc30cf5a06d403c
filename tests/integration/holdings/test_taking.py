"""A hostname is held and in its client's index, or neither, whatever Redis and its answers do."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from gateway.contract import Unauthorized
from gateway.contract.names import AppId, ClientId, Hostname
from gateway.holdings.hold import Holds
from gateway.holdings.quotas import Kind, Quota
from gateway.store.connection import Store, StoreUnavailable
from gateway.store.documents import Change, Documents, Holder
from gateway.store.holdings_index import HoldingsIndex
from gateway.store.keys import client_key, fingerprint
from tests.integration.holdings.site import now_ms
from tests.integration.store.losing import losing_answers
from tests.lab.ports import free_port
from tests.lab.process import wait_until
from tests.lab.redis import RedisProcess, ask_redis, running_redis, start_redis

HOLDER = Holder(ClientId("c"), AppId("a"))
INTENT = {"type": "A", "value": "198.51.100.1", "ttl": 60, "published": False, "edition": "e"}
HOSTNAMES = [Hostname(f"{number}.example.test") for number in range(40)]


@pytest.fixture
def own_redis(tmp_path: Path) -> Iterator[RedisProcess]:
    with running_redis(tmp_path) as server:
        yield server


@pytest.fixture
def redis_with_slots(tmp_path: Path) -> Iterator[RedisProcess]:
    """A Cluster of one node, which has all slots, and is called a single Redis."""
    options = ("--cluster-enabled", "yes", "--cluster-port", str(free_port()))
    server = start_redis(tmp_path, *options)
    ask_redis(server.port, "CLUSTER", "ADDSLOTSRANGE", "0", "16383")
    wait_until(
        lambda: "cluster_state:ok" in ask_redis(server.port, "CLUSTER", "INFO"),
        "the Cluster's state is ok",
    )
    yield server
    server.stop()


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[Store]:
    store = Store(url)
    try:
        yield store
    finally:
        await store.close()


async def make_client(store: Store) -> None:
    await store.set_field(client_key(fingerprint(HOLDER.client_id)), "version", "v")


def holds_on(store: Store, most: int = 0) -> Holds:
    return Holds(Documents(store), HoldingsIndex(store), now_ms, lambda _: Quota(records=most))


async def take(holds: Holds, hostname: Hostname) -> None:
    await holds.take(hostname, HOLDER, lambda _: Change({"record": INTENT}), newly=Kind.RECORD)


async def held_and_entered(store: Store) -> tuple[list[Hostname], list[Hostname]]:
    documents = await Documents(store).read_many(HOSTNAMES)
    held = [each.hostname for each in documents if not isinstance(each, Exception) and each.holder]
    entries = await HoldingsIndex(store).entries(HOLDER.client_id)
    return sorted(held), sorted(hostname for hostname, _ in entries)


async def test_answer_that_was_lost_leaves_both_or_neither(own_redis: RedisProcess) -> None:
    async with opened(own_redis.url) as store:
        await make_client(store)
        async with losing_answers(own_redis) as losing, opened(losing.url) as cut:
            await cut.ping()
            taking = (take(holds_on(cut), hostname) for hostname in HOSTNAMES)
            ended = await asyncio.gather(*taking, return_exceptions=True)
        assert {type(each) for each in ended} <= {type(None), StoreUnavailable}
        assert StoreUnavailable in {type(each) for each in ended}
        held, entered = await held_and_entered(store)
        assert held == entered
        # Asked for again, each of them is taken.
        await asyncio.gather(*(take(holds_on(store), hostname) for hostname in HOSTNAMES))
        assert await held_and_entered(store) == (sorted(HOSTNAMES), sorted(HOSTNAMES))


async def test_redis_that_is_killed_meanwhile_has_both_or_neither(own_redis: RedisProcess) -> None:
    async with opened(own_redis.url) as store:
        await make_client(store)
        taking = [asyncio.create_task(take(holds_on(store), each)) for each in HOSTNAMES]
        await asyncio.wait(taking, return_when=asyncio.FIRST_COMPLETED)
        own_redis.kill()
        ended = await asyncio.gather(*taking, return_exceptions=True)
        assert {type(each) for each in ended} <= {type(None), StoreUnavailable}
        own_redis.start()
        held, entered = await held_and_entered(store)
        assert held == entered
        was_told = [name for name, each in zip(HOSTNAMES, ended, strict=True) if each is None]
        assert set(was_told) <= set(held)


@pytest.mark.parametrize("most", [0, 50])
async def test_redis_with_slots_is_found_out(redis_with_slots: RedisProcess, most: int) -> None:
    """Its URL names no Cluster: as that of a proxy before several, which is taken for one."""
    async with opened(redis_with_slots.url) as store:
        await make_client(store)
        for hostname in HOSTNAMES[:2]:
            await take(holds_on(store, most), hostname)
        assert store.has_slots
        assert await held_and_entered(store) == (HOSTNAMES[:2], HOSTNAMES[:2])


@pytest.mark.parametrize("server", ["own_redis", "redis_with_slots"])
@pytest.mark.parametrize("most", [0, 50])
async def test_client_that_is_not_there_takes_nothing(
    request: pytest.FixtureRequest, server: str, most: int
) -> None:
    async with opened(request.getfixturevalue(server).url) as store:
        with pytest.raises(Unauthorized):
            await take(holds_on(store, most), HOSTNAMES[0])
        assert await held_and_entered(store) == ([], [])
