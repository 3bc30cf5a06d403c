"""The trail by pages, on a real Redis: backwards, and never more than a page may read."""

import json
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from gateway.store.connection import Store
from gateway.store.keys import AUDIT_KEY
from gateway.store.trail_reading import PAGE, Told, TrailReader, Wanted
from tests.lab.redis import RedisProcess, start_redis

COUNT = 1_200
RARE_EVERY = 400


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisProcess]:
    server = start_redis(tmp_path_factory.mktemp("pages"))
    yield server
    server.stop()


@pytest.fixture
async def trail(filled: RedisProcess) -> AsyncIterator[Store]:
    """Entries of n0 to n1199; each four-hundredth one is of the client `rare`."""
    store = Store(filled.url, replicas=0)
    if not (await TrailReader(store, Wanted()).extent()).length:
        await append(store, list(range(COUNT)))
    yield store
    await store.close()


@pytest.fixture
async def empty(tmp_path: Path) -> AsyncIterator[Store]:
    server = start_redis(tmp_path)
    store = Store(server.url, replicas=0)
    yield store
    await store.close()
    server.stop()


async def append(store: Store, numbers: list[int], *, name: str | None = None) -> None:
    commands = []
    for number in numbers:
        entry = {
            "at": time.time_ns() // 1_000_000,
            "who": "admin",
            "what": "claim-add",
            "outcome": "claimed",
            "hostname": f"n{number}.example.test",
            "clientId": "rare" if number % RARE_EVERY == 0 else "common",
        }
        named = ("id", name or f"name-{number}", "entry", json.dumps(entry))
        commands.append(("XADD", AUDIT_KEY, "*", *named))
    await store.answers_of_each([(AUDIT_KEY, commands)])


def numbers(entries: list[Told]) -> list[int]:
    hostnames = [(each.entry or {})["hostname"] for each in entries]
    return [int(name[1:].partition(".")[0]) for name in hostnames]


def rare() -> Wanted:
    return Wanted(client_id="rare")


async def test_pages_lead_from_the_newest_to_the_oldest_without_a_gap(trail: Store) -> None:
    found: list[int] = []
    pages = 0
    place = None
    while True:
        page = await TrailReader(trail, Wanted()).before(place, 70)
        assert len(page.entries) <= 70
        assert not page.is_cut
        found += numbers(page.entries)
        pages += 1
        place = page.older
        if place is None:
            break
    assert found == list(range(COUNT - 1, -1, -1))
    assert pages == -(-COUNT // 70)


async def test_one_reader_may_read_several_pages(trail: Store) -> None:
    reader = TrailReader(trail, Wanted())
    first = await reader.before(None, 10)
    second = await reader.before(first.older, 10)
    again = await reader.before(None, 10)
    assert numbers(second.entries) == list(range(COUNT - 11, COUNT - 21, -1))
    assert again == first


async def test_page_that_ends_with_the_trail_says_so(trail: Store) -> None:
    page = await TrailReader(trail, Wanted()).before(None, COUNT)
    assert len(page.entries) == COUNT
    assert page.older is None
    page = await TrailReader(trail, rare()).before(None, 3)
    assert (numbers(page.entries), page.older, page.is_cut) == ([800, 400, 0], None, False)


async def test_filter_that_fits_little_reads_a_bounded_part(trail: Store) -> None:
    reader = TrailReader(trail, rare())
    page = await reader.before(None, 10, scan_bound=300)
    assert (page.entries, page.is_cut) == ([], True)
    found, places = [], []
    while page.older is not None:
        places.append(page.older)
        page = await reader.before(page.older, 10, scan_bound=300)
        found += numbers(page.entries)
    assert found == [800, 400, 0]
    assert len(places) == COUNT // 300


async def test_bound_beyond_one_exchange_holds_too(trail: Store) -> None:
    page = await TrailReader(trail, rare()).before(None, 10, scan_bound=PAGE + 100)
    assert (numbers(page.entries), page.is_cut) == ([800], True)
    last = await TrailReader(trail, Wanted()).before(page.older, 1)
    assert numbers(last.entries) == [COUNT - PAGE - 100 - 1]


async def test_pages_end_where_their_time_does(empty: Store) -> None:
    long_ago = ("XADD", AUDIT_KEY, "1000-1", "id", "old", "entry", "{}")
    await empty.answers_of_each([(AUDIT_KEY, [long_ago])])
    await append(empty, [1, 2, 3])
    since_ms = time.time_ns() // 1_000_000 - 3_600_000
    page = await TrailReader(empty, Wanted(since_ms)).before(None, 3)
    assert (numbers(page.entries), page.older) == ([3, 2, 1], None)


async def test_entry_of_an_older_release_that_is_there_twice_is_on_a_page_once(
    empty: Store,
) -> None:
    await append(empty, [1, 1, 1], name="same")
    page = await TrailReader(empty, Wanted()).before(None, 2)
    assert (numbers(page.entries), page.older) == ([1], None)


@pytest.mark.parametrize("place", ["", "+", "-", "0-0", "1-1)", "now", "9" * 30 + "-0"])
async def test_place_that_is_none_is_refused(trail: Store, place: str) -> None:
    reader = TrailReader(trail, Wanted())
    with pytest.raises(ValueError, match="A place in the audit trail"):
        await reader.before(place, 10)


async def test_places_beyond_either_end_are_no_fault(trail: Store) -> None:
    reader = TrailReader(trail, Wanted())
    highest = f"{2**63 - 1}-{2**63 - 1}"
    assert (await reader.before("0-1", 10)).entries == []
    assert len((await reader.before(highest, 10)).entries) == 10
