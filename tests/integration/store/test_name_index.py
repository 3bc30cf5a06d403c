"""The hostnames in order, kept with their documents, on every kind of Redis."""

import asyncio
import itertools
import secrets
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

import pytest
import redis
from hypothesis import HealthCheck, given, settings, strategies as st

from gateway.contract.names import AppId, ClientId, Hostname
from gateway.store.connection import Store
from gateway.store.documents import Change, Document, Documents, Holder
from gateway.store.keys import BUCKETS, bucket_of, due_key, host_key, names_key
from gateway.store.name_index import NameIndex, NamePage
from gateway.store.nodes import Command
from gateway.store.rehearsal import RehearsedStore
from tests.lab.redis import RedisProcess

HOLDER = Holder(ClientId("c"), AppId("a"))
COUNT = 300


class CountedStore(Store):
    """Counts how often several keys were asked for."""

    exchanges = 0

    async def answers_of_each(self, wanted: Sequence[tuple[str, Sequence[Command]]]) -> list[Any]:
        self.exchanges += 1
        return await super().answers_of_each(wanted)

    async def fitting_answers_of_each(
        self, wanted: Sequence[tuple[str, Sequence[Command]]]
    ) -> list[list[Any] | None]:
        self.exchanges += 1
        return await super().fitting_answers_of_each(wanted)


@pytest.fixture
def names(store: Store) -> NameIndex:
    return NameIndex(store)


@pytest.fixture
def client(redis_server: RedisProcess) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(redis_server.url, decode_responses=True) as client:
        yield client


@pytest.fixture
async def single(redis_server: RedisProcess) -> AsyncIterator[CountedStore]:
    """On one Redis, whose lists a test looks into, or spoils."""
    store = CountedStore(redis_server.url)
    yield store
    await store.close()


def hostnames(label: str, count: int) -> list[Hostname]:
    return sorted(Hostname(f"{label}-{number}.example.test") for number in range(count))


async def hold(documents: Documents, *held: Hostname) -> None:
    change = Change({"holder": HOLDER}, due_ms=1, touches_due=True)
    await asyncio.gather(*(documents.change(name, lambda _: change) for name in held))


async def release(documents: Documents, *held: Hostname) -> None:
    change = Change({"holder": None})
    await asyncio.gather(*(documents.change(name, lambda _: change) for name in held))


async def test_pages_in_order_come_to_all_hostnames_of_a_prefix(
    documents: Documents, names: NameIndex, fresh_label: str
) -> None:
    held = hostnames(fresh_label, COUNT)
    await hold(documents, *held)
    found: list[Hostname] = []
    for _ in itertools.count():
        page = await names.page(fresh_label, found[-1] if found else None, 70)
        found += page.names
        if not page.has_more:
            break
        assert len(page.names) == 70
    assert found == held
    some = [name for name in held if name.startswith(f"{fresh_label}-29")]
    assert await names.page(f"{fresh_label.upper()}-29", None, 50) == (some, False)
    assert await names.page(fresh_label, held[-1], 50) == ([], False)
    assert await names.page(fresh_label, Hostname("0.test"), 2) == (held[:2], True)
    assert held[0] in await every_name(names)
    await release(documents, *held)
    assert await names.page(fresh_label, None, 50) == ([], False)


async def every_name(names: NameIndex) -> list[Hostname]:
    return (await names.page("", None, 1_000_000)).names


async def test_page_is_as_long_as_it_may_be_and_says_whether_more_follows(
    documents: Documents, names: NameIndex, fresh_label: str
) -> None:
    held = hostnames(fresh_label, 3)
    await hold(documents, *held)
    for limit in (1, 2, 3, 4):
        page = await names.page(fresh_label, None, limit)
        assert page == NamePage(held[:limit], has_more=limit < 3)
    await release(documents, *held)


async def test_what_changes_of_a_document_changes_nothing_of_its_place(
    documents: Documents, names: NameIndex, fresh_label: str
) -> None:
    (name,) = hostnames(fresh_label, 1)
    await hold(documents, name)
    await documents.change(name, lambda _: Change({"record": {"type": "A"}}))
    await documents.change(name, lambda _: Change(due_ms=None, touches_due=True))
    assert await names.page(fresh_label, None, 5) == ([name], False)
    await documents.change(name, lambda _: Change({"holder": None}))
    assert await names.page(fresh_label, None, 5) == ([name], False)
    await documents.change(name, lambda _: Change({"record": None}))
    assert await names.page(fresh_label, None, 5) == ([], False)


async def test_change_that_writes_no_document_lists_none(
    documents: Documents, names: NameIndex, fresh_label: str
) -> None:
    (name,) = hostnames(fresh_label, 1)
    await documents.change(name, lambda _: Change({"holder": None}))
    await documents.change(name, lambda _: Change(due_ms=1, touches_due=True))
    assert await names.page(fresh_label, None, 5) == ([], False)


@pytest.mark.parametrize(
    "odd",
    ["*", "a_b", "é", "\u212a", "\udcff", "a b", "a\x00", "[a", "(", "<b>", "a" * 254, "/"],
)
async def test_what_could_not_be_in_a_hostname_matches_nothing(single: Store, odd: str) -> None:
    assert await NameIndex(single).page(odd, None, 5) == ([], False)
    assert await NameIndex(single).page(f"a.{odd}", None, 5) == ([], False)


async def test_page_goes_on_behind_what_is_no_hostname(
    documents: Documents, names: NameIndex, fresh_label: str
) -> None:
    """As somebody may have put it there."""
    odd = [
        Hostname(f"{fresh_label}{end}") for end in ("-a", "-a ", "-a\x00", "-a_b", "-a" * 99, "b")
    ]
    await hold(documents, *odd)
    found: list[Hostname] = []
    while (page := await names.page(fresh_label, found[-1] if found else None, 1)).has_more:
        found += page.names
    assert [*found, *page.names] == sorted(odd)
    await release(documents, *odd)


async def test_document_of_a_former_release_is_entered_and_one_that_is_gone_taken_out(
    store: Store, documents: Documents, names: NameIndex, fresh_label: str
) -> None:
    held = hostnames(fresh_label, COUNT)
    for name in held[::2]:  # as a release without lists writes one
        due, stored = due_key(bucket_of(name)), {"holder": "{}"}
        await store.commit(host_key(name), due, expected_version="", member=name, sets=stored)
    await hold(documents, *held[1::2])
    await delete(store, held[1::2])
    assert (await names.page(fresh_label, None, COUNT)).names == held[1::2]
    for _ in range(2):
        await names.put_right(held)
        assert (await names.page(fresh_label, None, COUNT)).names == held[::2]
    await delete(store, held[::2])
    await names.put_right(held)
    assert await names.page(fresh_label, None, COUNT) == ([], False)


async def delete(store: Store, held: Sequence[Hostname]) -> None:
    """As somebody does by hand."""
    deleted = [(host_key(name), [("DEL", host_key(name))]) for name in held]
    await store.answers_of_each(deleted)


async def test_nothing_is_put_right_of_nothing(names: NameIndex) -> None:
    await names.put_right([])


async def test_lists_agree_with_documents_however_many_change_them_at_once(
    documents: Documents, names: NameIndex, fresh_label: str
) -> None:
    held = hostnames(fresh_label, 8)
    for _ in range(4):
        await asyncio.gather(
            hold(documents, *held), release(documents, *held), names.put_right(held)
        )
        there = {each.hostname for each in await read(documents, held) if each.version}
        assert set((await names.page(fresh_label, None, 50)).names) == there
    await release(documents, *held)


async def read(documents: Documents, held: Sequence[Hostname]) -> list[Document]:
    found = await documents.read_many(held)
    return [each for each in found if isinstance(each, Document)]


async def test_deleted_list_is_made_anew_by_whatever_changes_a_document(
    client: redis.Redis, single: Store, fresh_label: str
) -> None:
    documents, names = Documents(single), NameIndex(single)
    (name,) = hostnames(fresh_label, 1)
    await hold(documents, name)
    client.delete(names_key(bucket_of(name)))
    assert await names.page(fresh_label, None, 5) == ([], False)
    await documents.change(name, lambda _: Change({"record": {"type": "A"}}))
    assert await names.page(fresh_label, None, 5) == ([name], False)
    await documents.change(name, lambda _: Change({"holder": None, "record": None}))


@pytest.mark.parametrize("healed_by", ["put right", "written", "dropped"])
async def test_something_else_in_place_of_a_list_stops_no_change_and_is_replaced(
    client: redis.Redis, single: Store, fresh_label: str, healed_by: str
) -> None:
    documents, names = Documents(single), NameIndex(single)
    (name,) = hostnames(fresh_label, 1)
    await hold(documents, name)
    others = [Hostname(str(each)) for each in client.zrange(names_key(bucket_of(name)), 0, -1)]
    client.delete(names_key(bucket_of(name)))
    client.set(names_key(bucket_of(name)), "no list")
    assert await names.page(fresh_label, None, 5) == ([], False)
    if healed_by == "put right":
        await names.put_right([name])
    elif healed_by == "written":
        await documents.change(name, lambda _: Change({"record": {"type": "A"}}))
    else:
        await release(documents, name)
    await names.put_right(others)
    there = [] if healed_by == "dropped" else [name]
    assert await names.page(fresh_label, None, 5) == (there, False)
    await documents.change(name, lambda _: Change({"holder": None, "record": None}))


async def test_what_no_gateway_has_listed_is_passed_by(
    client: redis.Redis, single: Store, fresh_label: str
) -> None:
    documents, names = Documents(single), NameIndex(single)
    held = hostnames(fresh_label, 20)
    await hold(documents, *held)
    odd = (f"{fresh_label}-1\xff", f"{fresh_label}-1é", *(f"{fresh_label}-0{n}" for n in range(99)))
    for bucket in range(BUCKETS):
        client.zadd(names_key(bucket), {name: 0 for name in odd if not is_of(bucket, name)})
    assert await names.page(fresh_label, None, 10) == (held[:10], True)
    for bucket in range(BUCKETS):
        client.zrem(names_key(bucket), *odd)
    await release(documents, *held)


async def test_score_that_no_gateway_gives_makes_no_page_repeat_or_go_on_for_ever(
    client: redis.Redis, single: Store, fresh_label: str
) -> None:
    documents, names = Documents(single), NameIndex(single)
    held = in_bucket(5, fresh_label, 30)
    await hold(documents, *held)
    for name in held[:3]:
        client.zadd(names_key(5), {name: 7})
    client.zadd(names_key(5), {held[-1]: -7})
    found: list[Hostname] = []
    page, has_more = await names.page(fresh_label, None, 4)
    while has_more:
        found += page
        page, has_more = await names.page(fresh_label, found[-1], 4)
    assert [*found, *page] == sorted({*found, *page})
    await sift(names)
    assert await names.page(fresh_label, None, 40) == (held, False)
    await release(documents, *held)


async def test_names_without_a_document_are_sifted_out(
    store: Store, documents: Documents, names: NameIndex, fresh_label: str
) -> None:
    held = hostnames(fresh_label, COUNT)
    await hold(documents, *held)
    await delete(store, held[::2])
    assert (await names.page(fresh_label, None, COUNT)).names == held
    await sift(names)
    assert await names.page(fresh_label, None, COUNT) == (held[1::2], False)
    await release(documents, *held)


async def test_what_no_gateway_has_listed_is_sifted_out(
    client: redis.Redis, single: Store, fresh_label: str
) -> None:
    names, many = NameIndex(single), [f"{fresh_label}-{number}" for number in range(1_000)]
    others = (name for name in many if not is_of(5, name))
    foreign: dict[Any, int] = dict.fromkeys([b"\xff", "é.example", "", *others], 0)
    client.zadd(names_key(5), foreign)
    client.delete(names_key(6))
    client.rpush(names_key(6), "no list")
    assert await sift(names) >= len(foreign)
    assert client.type(names_key(6)) == "none"
    assert [name for name in foreign if client.zscore(names_key(5), name) is not None] == []


async def sift(names: NameIndex) -> int:
    return sum([judged async for judged in names.sift()])


def in_bucket(bucket: int, label: str, count: int) -> list[Hostname]:
    tried = (Hostname(f"{label}-{number}.example.test") for number in itertools.count())
    return sorted(itertools.islice((name for name in tried if bucket_of(name) == bucket), count))


def is_of(bucket: int, name: str) -> bool:
    return name.isascii() and bucket_of(name) == bucket


async def test_page_takes_two_exchanges_even_where_all_names_are_in_one_bucket(
    single: CountedStore, fresh_label: str
) -> None:
    documents, names = Documents(single), NameIndex(single)
    held = in_bucket(5, fresh_label, 60)
    await hold(documents, *held)
    assert await names.page(fresh_label, None, 50) == (held[:50], True)
    assert single.exchanges == 2
    await release(documents, *held)


async def test_rehearsed_change_is_in_no_list(
    redis_server: RedisProcess, single: Store, fresh_label: str
) -> None:
    rehearsed = RehearsedStore(redis_server.url)
    await hold(Documents(rehearsed), *hostnames(fresh_label, 2))
    await rehearsed.close()
    assert await NameIndex(single).page(fresh_label, None, 5) == ([], False)


LABELS = st.from_regex(r"[ab-]{0,3}[a-c]\.[xy]", fullmatch=True)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sets(LABELS, max_size=60), st.text("ab-.", max_size=3), LABELS, st.integers(1, 70))
def test_page_is_what_a_sorted_list_would_have(
    redis_server: RedisProcess,
    client: redis.Redis,
    held: set[str],
    prefix: str,
    after: str,
    limit: int,
) -> None:
    pipeline = client.pipeline(transaction=False)
    own = f"h{secrets.token_hex(6)}"
    for each in held:
        pipeline.zadd(names_key(bucket_of(f"{own}{each}")), {f"{own}{each}": 0})
    pipeline.execute()
    expected = sorted(own + each for each in held if each.startswith(prefix) and each > after)

    async def page() -> NamePage:
        store = Store(redis_server.url)
        try:
            return await NameIndex(store).page(own + prefix, Hostname(own + after), limit)
        finally:
            await store.close()

    assert asyncio.run(page()) == (expected[:limit], len(expected) > limit)
    for each in held:
        client.zrem(names_key(bucket_of(f"{own}{each}")), f"{own}{each}")
