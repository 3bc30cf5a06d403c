"""The walk over all documents on a real Redis: in pages, by one at a time, shown by all."""

import json
from collections.abc import AsyncIterator, Iterator, Sequence

import pytest
import redis.asyncio as aioredis

from gateway.certificates.census import COUNTED_FIELDS
from gateway.certificates.enumerator import ENTERED_AT_ONCE, Enumerator, KeptCensus
from gateway.certificates.states import StoredCertificate
from gateway.clocks import now_ms, steady_ms
from gateway.contract.names import Hostname
from gateway.holdings.remembered import require_readable
from gateway.store import keys
from gateway.store.clock import SharedClock
from gateway.store.connection import Store
from gateway.store.documents import READ_AT_ONCE, Change, Documents
from gateway.store.name_index import NameIndex
from tests.lab.redis import RedisProcess, running_redis

INTERVAL_SECONDS = 3600
DAY_MS = 86_400_000


class WatchedStore(Store):
    """Remembers how many documents were asked for at once."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.pages: list[int] = []

    async def some_fields_of_each(
        self, keys: Sequence[str], names: Sequence[str]
    ) -> list[dict[str, str] | None]:
        self.pages.append(len(keys))
        return await super().some_fields_of_each(keys, names)


@pytest.fixture(scope="module")
def own_redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisProcess]:
    """A Redis of its own: all that it holds is counted."""
    with running_redis(tmp_path_factory.mktemp("census")) as server:
        yield server


@pytest.fixture
async def store(own_redis: RedisProcess) -> AsyncIterator[WatchedStore]:
    """On an empty Redis."""
    client = aioredis.Redis.from_url(own_redis.url)
    await client.flushall()
    await client.aclose()
    store = WatchedStore(own_redis.url)
    yield store
    await store.close()


def enumerator(store: Store) -> Enumerator:
    clock = SharedClock(store, now_ms, steady_ms)
    return Enumerator(
        store,
        Documents(store),
        NameIndex(store),
        clock,
        interval_seconds=INTERVAL_SECONDS,
        require_readable=require_readable,
    )


async def hold_certificate(store: Store, hostname: str, left_ms: int) -> None:
    at_ms = now_ms()
    ends_ms = at_ms + left_ms
    times = at_ms - DAY_MS, ends_ms, ends_ms, ends_ms, ends_ms
    certificate = StoredCertificate("i", "pem", "sealed", *times, "s", "i", "https://ca", ends_ms)
    change = Change({"certificate": certificate.to_json()}, touches_due=False)
    await Documents(store).change(Hostname(hostname), lambda _: change)


async def test_all_documents_are_counted_in_pages(store: WatchedStore) -> None:
    count = 2 * READ_AT_ONCE + 1
    for number in range(count):
        await hold_certificate(store, f"h{number}.example.test", 40 * DAY_MS)
    census = await enumerator(store).take_if_due()
    assert census is not None
    assert census.certificates["under-60"] == count
    assert max(store.pages) <= READ_AT_ONCE
    assert sum(store.pages) == count


async def test_what_one_has_counted_every_process_shows(store: WatchedStore) -> None:
    counted = await enumerator(store).take_if_due()
    assert counted is not None
    assert await enumerator(store).take_if_due() is None
    assert await enumerator(store).last() == counted


async def test_something_else_under_a_documents_key_is_counted_as_unreadable(
    store: WatchedStore,
) -> None:
    await store.put(keys.host_key("text.example.test"), "no hash", 60_000)
    census = await enumerator(store).take_if_due()
    assert census is not None
    assert (census.documents, census.unreadable) == (1, 1)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("record", '{"type": "ZZ"}'),
        ("record", "{"),
        ("claim", "{}"),
        ("certificate", '{"valid_from_ms": 1, "valid_until_ms": 2, "renew_at_ms": 2}'),
        ("holder", "[]"),
    ],
)
async def test_document_that_no_call_can_read_is_counted_as_unreadable(
    store: WatchedStore, field: str, value: str
) -> None:
    await hold_certificate(store, "odd.example.test", DAY_MS)
    await store.set_field(keys.host_key(Hostname("odd.example.test")), field, value)
    await hold_certificate(store, "good.example.test", DAY_MS)
    census = await enumerator(store).take_if_due()
    assert census is not None
    assert (census.documents, census.unreadable) == (2, 1)
    assert sum(census.certificates.values()) == 1


@pytest.mark.parametrize("spoiled", ["{}", "no JSON", json.dumps({"documents": -1})])
async def test_altered_census_is_not_shown_and_the_next_one_takes_its_place(
    store: WatchedStore, spoiled: str
) -> None:
    await store.put(keys.CENSUS_KEY, spoiled, 60_000)
    one = enumerator(store)
    assert await one.last() is None
    counted = await one.take_if_due()
    assert await one.last() == counted


async def test_only_what_is_counted_is_read_of_a_document(store: WatchedStore) -> None:
    await hold_certificate(store, "fields.example.test", DAY_MS)
    key = keys.host_key("fields.example.test")
    (found,) = await store.some_fields_of_each([key], COUNTED_FIELDS)
    assert found is not None
    assert found.keys() == {"version", "certificate"}


async def test_hostnames_that_are_in_no_list_are_entered_on_the_way(store: WatchedStore) -> None:
    """As after an update from a release without lists, or when somebody has deleted them."""
    held = sorted(f"h{number}.example.test" for number in range(ENTERED_AT_ONCE + READ_AT_ONCE + 1))
    for hostname in held:
        await store.set_field(keys.host_key(hostname), "version", "v")
    await store.put(keys.host_key("text.example.test"), "no hash", 60_000)
    assert (await NameIndex(store).page("", None, 1)).names == []
    await enumerator(store).take_if_due()
    listed = await NameIndex(store).page("", None, 2 * len(held))
    assert listed.names == [*held, "text.example.test"]


async def test_names_without_a_document_are_taken_out_on_the_way(store: WatchedStore) -> None:
    """As those of documents that a release without lists, or somebody by hand, has dropped."""
    held = sorted(f"h{number}.example.test" for number in range(2 * READ_AT_ONCE))
    for hostname in held:
        await hold_certificate(store, hostname, DAY_MS)
    gone = [keys.host_key(hostname) for hostname in held[::2]]
    await store.answers_of_each([(key, [("DEL", key)]) for key in gone])
    await enumerator(store).take_if_due()
    assert await NameIndex(store).page("", None, len(held)) == (held[1::2], False)


async def test_turn_that_would_never_end_is_taken_over(store: WatchedStore) -> None:
    key = keys.CENSUS_TURN_KEY
    for spoil in [("RPUSH", key, "x"), ("SET", key, "1")]:
        await store.answers_of_each([(key, [("DEL", key), spoil])])
        assert await enumerator(store).take_if_due() is not None
        assert await enumerator(store).take_if_due() is None


@pytest.mark.parametrize(
    "foreign", ["gw:{h1}:host:\udcff", "gw:{h1}:host:\u00fc.test", "gw:{h999}:host:a.test"]
)
async def test_key_that_only_looks_like_a_documents_is_not_counted(
    store: WatchedStore, foreign: str
) -> None:
    await store.put(foreign, "somebody's", 60_000)
    await hold_certificate(store, "good.example.test", DAY_MS)
    census = await enumerator(store).take_if_due()
    assert census is not None
    assert (census.documents, census.unreadable) == (1, 0)


async def test_census_names_who_needs_attention(store: WatchedStore) -> None:
    await hold_certificate(store, "ending.example.test", 0)
    odd = keys.host_key(Hostname("odd.example.test"))
    await store.set_field(odd, "version", "v")
    await store.set_field(odd, "holder", "[]")
    census = await enumerator(store).take_if_due()
    assert census is not None
    assert census.attention["unreadable"] == ["odd.example.test"]
    assert await KeptCensus(store).last() == census
