"""A Redis that is gone, asleep, replaced or on the move: in time an error, or the right answer."""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from redis.crc import key_slot

from gateway.contract.names import AppId, ClientId, Hostname
from gateway.store.connection import Store, StoreUnavailable
from gateway.store.documents import Change, Document, Documents, Holder
from gateway.store.keys import BUCKETS, bucket_of, due_key, host_key
from gateway.store.nodes import MAX_CONNECTIONS, Node
from gateway.store.routing import LIMIT_SECONDS
from tests.lab.process import wait_until
from tests.lab.redis import RedisProcess, ask_redis
from tests.lab.redis_cluster import RedisCluster, start_redis_cluster
from tests.lab.redis_sentinel import SentinelSet, start_sentinel_set

MARGIN_SECONDS = 1.0
HOLDER = Holder(ClientId("c"), AppId("a"))
STEPS_OF_A_CALL = 60
"""Of the event loop: more than one call takes."""


@pytest.fixture
def own_set(tmp_path: Path) -> Iterator[SentinelSet]:
    started = start_sentinel_set(tmp_path)
    yield started
    started.stop()


@pytest.fixture
def own_cluster(tmp_path: Path) -> Iterator[RedisCluster]:
    started = start_redis_cluster(tmp_path)
    yield started
    started.stop()


@asynccontextmanager
async def opened(url: str, replicas: int | None = None) -> AsyncIterator[Store]:
    store = Store(url, replicas=replicas)
    try:
        yield store
    finally:
        await store.close()


def take(_: Document) -> Change:
    return Change({"holder": HOLDER})


async def test_every_call_ends_in_time_while_redis_sleeps(own_redis: RedisProcess) -> None:
    async with opened(own_redis.url) as store:
        await store.ping()
        own_redis.process.pause()
        try:
            async with asyncio.timeout(LIMIT_SECONDS + MARGIN_SECONDS):
                calls = [store.fields("gw:x") for _ in range(3 * MAX_CONNECTIONS)]
                ended = await asyncio.gather(*calls, return_exceptions=True)
        finally:
            own_redis.process.resume()
        assert {type(each) for each in ended} == {StoreUnavailable}
        assert await store.fields("gw:x") == {}


async def test_redis_that_was_restarted_is_used_at_once(own_redis: RedisProcess) -> None:
    async with opened(own_redis.url) as store:
        await asyncio.gather(*(store.add_to_set("gw:x", str(n)) for n in range(MAX_CONNECTIONS)))
        own_redis.kill()
        with pytest.raises(StoreUnavailable, match="cannot be reached"):
            await store.set_members("gw:x")
        own_redis.start()
        read = await asyncio.gather(*(store.set_members("gw:x") for _ in range(MAX_CONNECTIONS)))
        assert {len(members) for members in read} == {MAX_CONNECTIONS}


async def test_cancellation_is_never_lost(own_redis: RedisProcess) -> None:
    async with opened(own_redis.url) as store:
        await store.ping()
        kept = 0
        for steps in range(STEPS_OF_A_CALL):
            task = asyncio.create_task(store.fields("gw:x"))
            for _ in range(steps):
                await asyncio.sleep(0)
            kept += not task.cancel()
            await asyncio.wait({task})
            assert task.cancelled() or not task.cancelling()
        assert kept < STEPS_OF_A_CALL
        assert await store.fields("gw:x") == {}


async def test_wrong_password_is_said_without_it(own_redis: RedisProcess) -> None:
    ask_redis(own_redis.port, "CONFIG", "SET", "requirepass", "right-one")
    url = own_redis.url.replace("redis://", "redis://:hush-hush@")
    async with opened(url) as store:
        with pytest.raises(StoreUnavailable, match="user or the password") as caught:
            await store.ping()
    assert "hush" not in str(caught.value)


async def test_write_of_a_replaced_primary_is_not_believed(own_set: SentinelSet) -> None:
    """One gateway has not noticed the failover; the old primary wakes and takes its write."""
    name = Hostname("a.example.test")
    async with opened(own_set.url) as idle, opened(own_set.url) as other:
        await idle.ping()
        old = own_set.primary()
        old.process.pause()
        try:
            wait_until(lambda: own_set.primary() is not old, "failover")
        finally:
            old.process.resume()
        try:
            await Documents(idle).change(name, take)
            was_acknowledged = True
        except StoreUnavailable:
            was_acknowledged = False
        own_set.wait_until_whole()
        kept = await Documents(other).read(name)
        assert was_acknowledged <= (kept.holder == HOLDER)
        await Documents(idle).change(name, take)
        assert (await Documents(other).read(name)).holder == HOLDER


async def test_reads_follow_a_failover(own_set: SentinelSet) -> None:
    """Who only reads is refused nothing by the former primary, which is a replica then."""
    async with opened(own_set.url) as store:
        await store.fields("gw:x")
        old, sentinel = own_set.primary(), next(iter(own_set.sentinels))
        ask_redis(sentinel, "SENTINEL", "FAILOVER", "gateway")
        wait_until(lambda: ask_redis(old.port, "ROLE").startswith("slave"), "failover")
        own_set.wait_until_whole()
        ask_redis(old.port, "CONFIG", "RESETSTAT")
        await store.fields("gw:x")
        await store.members("gw:y")
        assert "cmdstat_hgetall" not in ask_redis(old.port, "INFO", "commandstats")
        assert "cmdstat_zrange" not in ask_redis(old.port, "INFO", "commandstats")


async def test_replica_in_the_place_of_a_primary_is_told(own_redis: RedisProcess) -> None:
    node = Node(("127.0.0.1", own_redis.port), own_redis.url, must_be_primary=True)
    assert await node.ask(("DBSIZE",)) == 0
    ask_redis(own_redis.port, "REPLICAOF", "127.0.0.1", "1")
    await node.hang_up()
    with pytest.raises(StoreUnavailable, match="not a primary"):
        await node.ask(("DBSIZE",))
    await node.close()


async def test_pair_that_lost_its_replica_goes_on_and_says_so_once(
    own_set: SentinelSet, caplog: pytest.LogCaptureFixture
) -> None:
    own_set.replica().kill()
    async with opened(own_set.url) as store:
        with caplog.at_level(logging.WARNING, "gateway.store"):
            for number in range(3):
                await store.add_to_set("gw:x", str(number))
        assert await store.set_members("gw:x") == {"0", "1", "2"}
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 1
    assert "0 of 1 replicas" in said[0]


async def test_service_that_the_sentinels_do_not_know_is_named(own_set: SentinelSet) -> None:
    async with opened(own_set.url.replace("/gateway", "/other")) as store:
        with pytest.raises(StoreUnavailable, match="know no service other"):
            await store.ping()


async def test_sentinels_that_are_gone_are_said(own_set: SentinelSet) -> None:
    for sentinel in own_set.sentinels.values():
        sentinel.kill()
    async with opened(own_set.url) as store:
        with pytest.raises(StoreUnavailable, match="No Sentinel can be reached"):
            await store.ping()


async def test_one_sentinel_of_three_is_enough(own_set: SentinelSet) -> None:
    first, second, _ = own_set.sentinels.values()
    first.kill()
    second.pause()
    async with opened(own_set.url) as store:
        await store.ping()


async def test_cluster_without_one_node_is_unavailable_until_it_is_back(
    own_cluster: RedisCluster,
) -> None:
    async with opened(own_cluster.url, replicas=0) as store:
        everywhere = [due_key(bucket).replace("due", "none") for bucket in range(BUCKETS)]
        assert await store.fields_of_each(everywhere) == [{}] * BUCKETS
        own_cluster.nodes[2].kill()
        async with asyncio.timeout(LIMIT_SECONDS + MARGIN_SECONDS):
            with pytest.raises(StoreUnavailable):
                await store.fields_of_each(everywhere)
        with pytest.raises(StoreUnavailable):
            await store.ping()
        own_cluster.nodes[2].start()
        own_cluster.wait_until_whole()
        assert await store.fields_of_each(everywhere) == [{}] * BUCKETS
        await store.ping()


async def test_slot_of_nobody_is_unavailable(own_cluster: RedisCluster) -> None:
    key = host_key("a.example.test")
    slot = str(key_slot(key.encode()))
    async with opened(own_cluster.url, replicas=0) as store:
        assert await store.fields(key) == {}
        for node in own_cluster.nodes:
            ask_redis(node.port, "CLUSTER", "DELSLOTS", slot)
        async with asyncio.timeout(LIMIT_SECONDS + MARGIN_SECONDS):
            with pytest.raises(StoreUnavailable):
                await store.fields(key)
    async with opened(own_cluster.url, replicas=0) as fresh:
        with pytest.raises(StoreUnavailable):
            await fresh.fields(key)


async def test_keys_of_a_half_moved_slot_are_reached_on_both_sides(
    own_cluster: RedisCluster,
) -> None:
    """The node that takes the slot over has none yet, and there are many calls at once."""
    moved, kept = _two_of_one_bucket()
    slot = key_slot(host_key(moved).encode())
    joined = own_cluster.add_empty_node()
    async with opened(own_cluster.url, replicas=0) as store:
        documents = Documents(store)
        before = [await documents.change(name, take) for name in (moved, kept)]
        owner = _owner(own_cluster, slot)
        target, source = (
            ask_redis(node.port, "CLUSTER", "MYID").strip() for node in (joined, owner)
        )
        ask_redis(joined.port, "CLUSTER", "SETSLOT", str(slot), "IMPORTING", source)
        ask_redis(owner.port, "CLUSTER", "SETSLOT", str(slot), "MIGRATING", target)
        ask_redis(
            owner.port, "MIGRATE", "127.0.0.1", str(joined.port), host_key(moved), "0", "1000"
        )
        for _ in range(5):
            read = await asyncio.gather(*(documents.read(n) for n in (moved, kept) * 40))
            assert read == before * 40
        # Its document and its queue are not on one node together: nothing can be changed now.
        due = Change({"fence": 1}, due_ms=5, touches_due=True)
        with pytest.raises(StoreUnavailable):
            await documents.commit(before[0], due)
        _finish_move(own_cluster, owner, joined, slot)
        changed = await documents.commit(before[0], due)
        assert changed is not None
        assert await documents.due(5, 10) == [moved]


def _two_of_one_bucket() -> tuple[Hostname, Hostname]:
    first = Hostname("h0.example.test")
    others = (Hostname(f"h{number}.example.test") for number in range(1, 10_000))
    return first, next(name for name in others if bucket_of(name) == bucket_of(first))


def _owner(cluster: RedisCluster, slot: int) -> RedisProcess:
    for node in cluster.nodes:
        for line in ask_redis(node.port, "CLUSTER", "NODES").splitlines():
            ranges = [each.partition("-") for each in line.split()[8:]]
            if "myself" in line and any(
                int(first) <= slot <= int(last or first) for first, _, last in ranges
            ):
                return node
    raise AssertionError(f"nobody has slot {slot}")


def _finish_move(
    cluster: RedisCluster, owner: RedisProcess, target: RedisProcess, slot: int
) -> None:
    left = ask_redis(owner.port, "CLUSTER", "GETKEYSINSLOT", str(slot), "100").split()
    for key in left:
        ask_redis(owner.port, "MIGRATE", "127.0.0.1", str(target.port), key, "0", "1000")
    new_owner = ask_redis(target.port, "CLUSTER", "MYID").strip()
    for node in (target, owner):
        ask_redis(node.port, "CLUSTER", "SETSLOT", str(slot), "NODE", new_owner)
    cluster.wait_until_whole()
