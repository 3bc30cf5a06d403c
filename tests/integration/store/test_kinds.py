"""Everything that a Store can do, on a single Redis, behind Sentinels and on a Cluster."""

import asyncio

import pytest
import redis

from gateway.contract.names import AppId, ClientId, Hostname
from gateway.store.connection import Entry, EntryRefused, Store, StoreRefused, Swap
from gateway.store.documents import Change, Document, Documents, Holder
from gateway.store.faults import KeysApart
from gateway.store.keys import client_holdings_key, client_key, host_key
from gateway.store.nodes import MAX_CONNECTIONS
from tests.lab.process import read_until
from tests.lab.redis import RedisProcess

HOLDER = Holder(ClientId("c"), AppId("a"))
NOW_MS = 1_800_000_000_000


def hostnames(label: str, count: int) -> list[Hostname]:
    return [Hostname(f"{label}-{number}.example.test") for number in range(count)]


async def hold(documents: Documents, hostname: Hostname, due_ms: int = NOW_MS) -> Document:
    def take(_: Document) -> Change:
        return Change({"holder": HOLDER}, due_ms=due_ms, touches_due=True)

    return await documents.change(hostname, take)


async def release(documents: Documents, *names: Hostname) -> None:
    for name in names:
        await documents.change(name, lambda _: Change({"holder": None}))


async def test_document_is_found_and_due_and_dropped(
    documents: Documents, fresh_label: str
) -> None:
    (name,) = hostnames(fresh_label, 1)
    held = await hold(documents, name)
    assert await documents.read(name) == held
    assert name in await documents.due(NOW_MS, 1000)
    assert name not in await documents.due(NOW_MS - 1, 1000)
    await documents.postpone(name, NOW_MS + 5)
    assert name not in await documents.due(NOW_MS + 4, 1000)
    await release(documents, name)
    assert await documents.read(name) == Document(name)
    assert name not in await documents.due(NOW_MS + 5, 1000)


async def test_change_of_another_version_changes_nothing(
    documents: Documents, fresh_label: str
) -> None:
    (name,) = hostnames(fresh_label, 1)
    held = await hold(documents, name)
    assert await documents.commit(Document(name, "other"), Change({"fence": 1})) is None
    assert await documents.read(name) == held
    await release(documents, name)


def entry_of(label: str) -> Entry:
    return Entry(client_key(label), client_holdings_key(label), str(NOW_MS))


async def test_hostname_is_held_and_entered_in_one_step_or_in_none(
    store: Store, documents: Documents, fresh_label: str
) -> None:
    (name,) = hostnames(fresh_label, 1)
    entry = entry_of(fresh_label)
    hold_it = Change({"holder": HOLDER})
    if store.has_slots:
        with pytest.raises(KeysApart):
            await documents.commit(Document(name), hold_it, entry)
    else:
        with pytest.raises(EntryRefused):
            await documents.commit(Document(name), hold_it, entry)
        await store.set_field(entry.document_key, "version", "v")
        assert await documents.commit(Document(name, "other"), hold_it, entry) is None
    assert await documents.read(name) == Document(name)
    assert await store.members(entry.index_key) == []
    if not store.has_slots:
        held = await documents.commit(Document(name), hold_it, entry)
        assert await documents.read(name) == held
        assert await store.members(entry.index_key) == [(name, NOW_MS)]
        await release(documents, name)


async def test_hostnames_of_all_buckets_are_listed_and_read(
    documents: Documents, fresh_label: str
) -> None:
    names = hostnames(fresh_label, 300)
    held = [await hold(documents, name) for name in names]
    listed = [name async for name in documents.all_hostnames() if name.startswith(fresh_label)]
    assert sorted(listed) == sorted(names)
    assert await documents.read_many(names) == held
    assert set(await documents.due(NOW_MS, 1000)) >= set(names)
    await release(documents, *names)


async def test_no_hostname_is_read_from_nothing(documents: Documents) -> None:
    assert await documents.read_many([]) == []


async def test_sets_and_fields_and_scores_are_kept(store: Store, fresh_label: str) -> None:
    members, fields = f"gw:{fresh_label}:s", f"gw:{fresh_label}:h"
    await store.add_to_set(members, "a")
    await store.add_to_set(members, "b")
    await store.remove_from_set(members, "b")
    assert (await store.set_members(members), await store.set_size(members)) == ({"a"}, 1)
    await store.set_field(fields, "one", "1")
    await store.set_field_once(fields, "one", "2")
    await store.set_field_once(fields, "two", "2")
    assert await store.fields(fields) == {"one": "1", "two": "2"}
    await store.delete_field(fields, "one")
    assert await store.fields(fields) == {"two": "2"}

    document, index = f"gw:{{{fresh_label}}}:d", f"gw:{{{fresh_label}}}:i"
    await store.set_field(document, "version", "v")
    await store.commit(document, index, expected_version="*", member="m", score="5.5")
    assert await store.members(index) == [("m", 5.5)]
    await store.remove_member(index, "m", up_to_score=5)
    assert await store.members(index) == [("m", 5.5)]
    await store.remove_member(index, "m", up_to_score=5.5)
    assert await store.members(index) == []


async def test_values_are_swapped_together_or_not_at_all(store: Store, fresh_label: str) -> None:
    index, one, two = (f"gw:{{{fresh_label}}}:{name}" for name in ("index", "one", "two"))
    assert await store.compare_and_set(
        index, [Swap(one, "", "1", 60_000), Swap(two, "", "2", 60_000)], NOW_MS
    )
    assert not await store.compare_and_set(
        index, [Swap(one, "1", "3", 60_000), Swap(two, "other", "4", 60_000)], NOW_MS
    )
    assert await store.values([one, two]) == ["1", "2"]


async def test_empty_value_removes_what_was_there(store: Store, fresh_label: str) -> None:
    index, one, two = (f"gw:{{{fresh_label}}}:{name}" for name in ("index", "one", "two"))
    both = [Swap(one, "", "1", 60_000), Swap(two, "", "2", 60_000)]
    assert await store.compare_and_set(index, both, NOW_MS)
    assert await store.compare_and_set(index, [Swap(one, "1", "", 60_000)], NOW_MS)
    assert await store.values([one, two]) == [None, "2"]
    assert await store.members(index) == [(two, NOW_MS + 60_000)]
    assert await store.compare_and_set(index, [Swap(two, "2", "", 60_000)], NOW_MS)
    assert await store.members(index) == []


async def test_swap_replaces_what_is_of_another_type(store: Store, fresh_label: str) -> None:
    index, key = (f"gw:{{{fresh_label}}}:{name}" for name in ("index", "key"))
    await store.add_to_set(index, "a")
    await store.add_to_set(key, "a")
    assert await store.values([key]) == [None]
    assert await store.compare_and_set(index, [Swap(key, "", "1", 60_000)], NOW_MS)
    assert await store.values([key]) == ["1"]
    assert await store.members(index) == [(key, NOW_MS + 60_000)]


async def test_value_that_is_no_text_is_read_and_swapped_as_it_is(
    redis_server: RedisProcess, fresh_label: str
) -> None:
    index, key = (f"gw:{{{fresh_label}}}:{name}" for name in ("index", "key"))
    with redis.Redis.from_url(redis_server.url) as client:
        client.set(key, b"\xff\xfe")
    store = Store(redis_server.url)
    (read,) = await store.values([key])
    assert read is not None
    assert await store.compare_and_set(index, [Swap(key, read, "1", 60_000)], NOW_MS)
    assert await store.values([key]) == ["1"]
    await store.close()


async def test_script_that_redis_forgot_is_sent_again(
    store: Store, redis_server: RedisProcess, documents: Documents, fresh_label: str
) -> None:
    (name,) = hostnames(fresh_label, 1)
    await hold(documents, name)
    with redis.Redis.from_url(redis_server.url) as client:
        client.script_flush()
    await release(documents, name)
    assert await documents.read(name) == Document(name)


async def test_refused_command_is_told_from_an_unreachable_redis(
    store: Store, fresh_label: str
) -> None:
    key = f"gw:{fresh_label}"
    await store.add_to_set(key, "a")
    with pytest.raises(StoreRefused, match="WRONGTYPE"):
        await store.fields(key)


async def test_more_calls_than_connections_wait_for_their_turn(
    documents: Documents, fresh_label: str
) -> None:
    names = hostnames(fresh_label, 5 * MAX_CONNECTIONS)
    held = await asyncio.gather(*(hold(documents, name) for name in names))
    assert [document.hostname for document in held] == names
    await asyncio.gather(*(release(documents, name) for name in names))


async def test_some_fields_of_hostnames_on_all_nodes_are_read_at_once(
    store: Store, documents: Documents, fresh_label: str
) -> None:
    names = hostnames(fresh_label, 150)
    await asyncio.gather(*(hold(documents, name) for name in names))
    hosts = [host_key(name) for name in names]
    found = await store.some_fields_of_each([*hosts, host_key("nobody")], ("holder", "record"))
    assert [each and set(each) for each in found] == [*([{"holder"}] * len(names)), {}]
    await asyncio.gather(*(release(documents, name) for name in names))


async def test_hostname_that_is_due_the_longest_is_found_among_all(
    documents: Documents, fresh_label: str
) -> None:
    names = hostnames(fresh_label, 3)
    for after_ms, name in enumerate(names):
        await hold(documents, name, 5 + after_ms)
    first_ms = await documents.first_due_ms(NOW_MS)
    # Other tests may have left what is due for ever.
    assert first_ms is not None
    assert first_ms <= 5
    await release(documents, *names)


async def test_turn_is_one_callers_until_it_has_ended(store: Store, fresh_label: str) -> None:
    key = f"gw:turn:{fresh_label}"
    assert await store.take_turn(key, 60_000)
    assert not await store.take_turn(key, 60_000)
    await store.put(key, "1", 1)
    await read_until(lambda: store.take_turn(key, 1), lambda taken: taken)


@pytest.mark.parametrize("kind", ["hash", "no end"])
async def test_turn_that_no_gateway_has_set_is_taken_over(
    store: Store, fresh_label: str, kind: str
) -> None:
    key = f"gw:turn:{fresh_label}"
    spoilt = ("HSET", key, "a", "b") if kind == "hash" else ("SET", key, "1")
    await store.answers_of_each([(key, [spoilt])])
    assert await store.take_turn(key, 60_000)
    assert not await store.take_turn(key, 60_000)


async def test_change_sent_twice_is_made_once(redis_server: RedisProcess, fresh_label: str) -> None:
    """As when a connection dies between a change and its answer; no server can be told to."""
    host, index = f"gw:{{{fresh_label}}}:d", f"gw:{{{fresh_label}}}:i"
    script = (Store(redis_server.url))._commit.text
    with redis.Redis.from_url(redis_server.url, decode_responses=True) as client:
        first = ["", "v1", "m", "1", "", "", "1", "name", "value"]
        assert [client.eval(script, 2, host, index, *first) for _ in range(2)] == [1, 1]
        second = ["v1", "v2", "m", "2", "", "", "0"]
        assert client.eval(script, 2, host, index, *second, "name") == 1
        assert client.eval(script, 2, host, index, *first) == 0
        assert client.hgetall(host) == {"version": "v2"}


async def test_change_sent_twice_is_refused_for_no_entry_that_has_gone_since(
    redis_server: RedisProcess, fresh_label: str
) -> None:
    """It was made; whoever has taken the entry out since, looks after it."""
    slot, another = f"gw:{{{fresh_label}}}", f"gw:{{c{fresh_label}}}"
    keys = [f"{slot}:d", f"{slot}:i", f"{slot}:n", f"{another}:client", f"{another}:holdings"]
    script = (Store(redis_server.url))._commit.text
    take = ["", "v1", "m", "", "", "5", "1", "name", "value"]
    with redis.Redis.from_url(redis_server.url, decode_responses=True) as client:
        client.hset(keys[3], "version", "v")
        assert client.eval(script, 5, *keys, *take) == 1
        client.delete(keys[3], keys[4])
        assert client.eval(script, 5, *keys, *take) == 1
        assert client.exists(keys[3], keys[4]) == 0
        assert client.hgetall(keys[0]) == {"version": "v1", "name": "value"}


async def test_ping_is_answered_by_every_part(store: Store) -> None:
    await store.ping()
    await store.ping()
