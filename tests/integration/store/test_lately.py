"""What is kept beside the trail, on a real Redis of each kind: notable entries and days' counts."""

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

import pytest

from gateway.store.connection import Store
from gateway.store.deeds import Action, Actor, Deed, Entry, Role
from gateway.store.keys import AUDIT_KEY, NOTABLE_KEY, audit_day_key
from gateway.store.lately import DayCounts, Lately
from gateway.store.stream import Stream
from gateway.store.trail import WrittenTrail
from gateway.store.trail_reading import Told, TrailReader, Wanted
from gateway.store.trail_writing import DAYS_KEPT, NOTABLE_BOUND, Numbered, TrailWriter
from tests.lab.redis import RedisProcess, start_redis

PROCESS = Actor(Role.PROCESS, "test-1")
DAY_MS = 86_400_000
NOON_MS = 1_800_014_400_000
"""2027-01-15, 12:00 UTC."""


@pytest.fixture
def own_redis(tmp_path: Path) -> Iterator[RedisProcess]:
    server = start_redis(tmp_path)
    yield server
    server.stop()


@pytest.fixture
async def alone(own_redis: RedisProcess) -> AsyncIterator[Store]:
    """A Redis with nothing in it."""
    store = Store(own_redis.url, replicas=0)
    yield store
    await store.close()


def issued(name: str) -> Deed:
    return Deed(Action.CERTIFICATE_ISSUED, "issued", hostname=f"{name}.example.test")


def failed(name: str) -> Deed:
    return Deed(Action.CERTIFICATE_FAILED, "issuance-failed", hostname=f"{name}.example.test")


def conflict(name: str) -> Deed:
    hostname = f"{name}.example.test"
    return Deed(Action.RECORD_SYNC, "record-conflict", changed=False, hostname=hostname)


def numbered(deeds: Sequence[Deed], *, at_ms: int = NOON_MS, first: int = 1) -> list[Numbered]:
    return [
        Numbered(number, Entry(secrets.token_hex(8), at_ms, PROCESS, deed))
        for number, deed in enumerate(deeds, first)
    ]


def writer_on(store: Store) -> TrailWriter:
    return TrailWriter(store, secrets.token_hex(8), bound=100_000)


def names(told: Sequence[Told]) -> list[str]:
    """The first labels of the entries' hostnames."""
    return [str((each.entry or {}).get("hostname", "")).partition(".")[0] for each in told]


async def in_trail(store: Store) -> list[str]:
    return names(await TrailReader(store, Wanted()).newest(10_000))


async def day(store: Store, at_ms: int) -> DayCounts:
    (found,) = await Lately(store, is_kept=True).days(1, at_ms)
    return found


async def test_what_went_wrong_is_kept_apart_and_all_is_counted(store: Store) -> None:
    at_ms = NOON_MS + secrets.randbelow(30_000) * DAY_MS
    label = secrets.token_hex(6)
    deeds = [issued(label), failed(label), conflict(label), issued(label)]
    await writer_on(store).append(numbered(deeds, at_ms=at_ms))
    page = await Lately(store, is_kept=True).notable(2)
    assert [each.entry and each.entry["what"] for each in page.entries] == [
        "record-sync",
        "certificate-failed",
    ]
    assert names(page.entries) == [label, label]
    assert (await in_trail(store))[-4:] == [label] * 4
    counts = await day(store, at_ms)
    assert (counts.issued, counts.renewed, counts.failed, counts.conflicts) == (2, 0, 1, 1)


async def test_batch_that_is_sent_again_is_taken_once(store: Store) -> None:
    at_ms = NOON_MS + secrets.randbelow(30_000) * DAY_MS
    label = secrets.token_hex(6)
    writer = writer_on(store)
    sent = numbered([failed(label), conflict(label)], at_ms=at_ms)
    await writer.append(sent)
    await writer.append(sent)
    await writer.append([*sent, *numbered([issued(label)], at_ms=at_ms, first=3)])
    assert (await in_trail(store)).count(label) == 3
    page = await Lately(store, is_kept=True).notable(100)
    assert names(page.entries).count(label) == 2
    counts = await day(store, at_ms)
    assert (counts.issued, counts.failed, counts.conflicts) == (1, 1, 1)


async def test_answers_that_are_lost_double_nothing(own_redis: RedisProcess) -> None:
    async with losing_answers(own_redis) as losing:
        store = Store(losing.url, replicas=0)
        trail = WrittenTrail(
            writer_on(store),
            Stream(store, AUDIT_KEY),
            PROCESS,
            now_ms=lambda: NOON_MS,
            new_id=lambda: secrets.token_hex(8),
        )
        async with trail.writing(30.0):
            for number in range(5):
                trail.note(failed(f"n{number}"))
            await losing.is_over.wait()
        assert (await Stream(store, AUDIT_KEY).extent()).added == 5
        assert (await Stream(store, NOTABLE_KEY).extent()).added == 5
        assert (await day(store, NOON_MS)).failed == 5
        await store.close()


async def test_two_writers_are_counted_together(alone: Store) -> None:
    one, other = writer_on(alone), writer_on(alone)
    await one.append(numbered([issued("a"), failed("b")]))
    await other.append(numbered([issued("c"), failed("d")]))
    assert await in_trail(alone) == ["a", "b", "c", "d"]
    counts = await day(alone, NOON_MS)
    assert (counts.issued, counts.failed) == (2, 2)


async def test_days_come_oldest_first_with_zeros_and_the_day_is_utcs(alone: Store) -> None:
    writer = writer_on(alone)
    midnight_ms = NOON_MS + DAY_MS // 2
    await writer.append(numbered([issued("a")], at_ms=midnight_ms - 1))
    await writer.append(numbered([issued("b"), failed("b")], at_ms=midnight_ms, first=2))
    await writer.append(numbered([issued("c")], at_ms=midnight_ms - 3 * DAY_MS, first=4))
    assert await Lately(alone, is_kept=True).days(5, midnight_ms) == [
        DayCounts("2027-01-12"),
        DayCounts("2027-01-13", issued=1),
        DayCounts("2027-01-14"),
        DayCounts("2027-01-15", issued=1),
        DayCounts("2027-01-16", issued=1, failed=1),
    ]


async def test_days_are_kept_for_a_time_only(alone: Store) -> None:
    await writer_on(alone).append(numbered([issued("a")]))
    key = audit_day_key("2027-01-15")
    ((lifetime_ms,),) = await alone.answers_of_each([(key, [("PTTL", key)])])
    assert (DAYS_KEPT - 1) * DAY_MS < lifetime_ms <= DAYS_KEPT * DAY_MS
    assert len(await Lately(alone, is_kept=True).days(1_000, NOON_MS)) == DAYS_KEPT


async def test_notable_entries_are_bounded(alone: Store) -> None:
    writer = writer_on(alone)
    for start in range(0, 3 * NOTABLE_BOUND, 100):
        deeds = [failed(f"n{start + number}") for number in range(100)]
        await writer.append(numbered(deeds, first=start + 1))
    extent = await Stream(alone, NOTABLE_KEY).extent()
    assert NOTABLE_BOUND <= extent.length < NOTABLE_BOUND + 200
    assert len(await in_trail(alone)) == 3 * NOTABLE_BOUND


async def test_newest_conflict_of_each_hostname_is_told(alone: Store) -> None:
    deeds = [conflict("a"), failed("b"), conflict("c"), conflict("a"), conflict("d"), failed("c")]
    await writer_on(alone).append(numbered(deeds))
    found = await Lately(alone, is_kept=True).conflicts(10)
    assert names(found) == ["d", "a", "c"]
    assert names(await Lately(alone, is_kept=True).conflicts(2)) == ["d", "a"]
    page = await Lately(alone, is_kept=True).notable(6)
    assert found[1].place == page.entries[2].place


async def test_conflicts_are_found_behind_many_others(alone: Store) -> None:
    deeds = [conflict("first"), *[failed(f"n{number}") for number in range(700)]]
    writer = writer_on(alone)
    for start in range(0, len(deeds), 100):
        await writer.append(numbered(deeds[start : start + 100], first=start + 1))
    assert names(await Lately(alone, is_kept=True).conflicts(5)) == ["first"]


async def test_what_somebody_else_put_there_is_replaced(alone: Store) -> None:
    await alone.put(NOTABLE_KEY, "a text", 1_000_000)
    await alone.put(audit_day_key("2027-01-15"), "a text", 1_000_000)
    assert (await day(alone, NOON_MS)).failed == 0
    writer = writer_on(alone)
    await writer.append(numbered([failed("a")]))
    assert (await day(alone, NOON_MS)).failed == 1
    await alone.set_field(audit_day_key("2027-01-15"), "failed", "many")
    assert (await day(alone, NOON_MS)).failed == 0
    await writer.append(numbered([failed("b")], first=2))
    assert (await day(alone, NOON_MS)).failed == 1
    assert names((await Lately(alone, is_kept=True).notable(10)).entries) == ["b", "a"]


async def test_nothing_is_told_of_a_redis_that_has_nothing(alone: Store) -> None:
    lately = Lately(alone, is_kept=False)
    assert (await lately.notable(10)).entries == []
    assert await lately.conflicts(10) == []
    assert await lately.days(2, NOON_MS) == [DayCounts("2027-01-14"), DayCounts("2027-01-15")]


class Losing:
    """The way to a Redis that carries out what it is sent, and whose answers to scripts are lost.

    The connection ends instead, three times: for a command, for its second try, and once more.
    """

    def __init__(self, server: RedisProcess) -> None:
        self.url = ""
        self.is_over = asyncio.Event()
        self._server = server
        self._left = 3

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upstream, to_server = await asyncio.open_connection("127.0.0.1", self._server.port)
        asked = bytearray()

        async def pass_on() -> None:
            while data := await reader.read(1 << 16):
                asked.extend(data)
                to_server.write(data)
            to_server.close()

        passing = asyncio.create_task(pass_on())
        with contextlib.closing(writer), contextlib.closing(to_server):
            while answer := await upstream.read(1 << 16):
                if self._left and b"EVAL" in asked:
                    self._left -= 1
                    break
                asked.clear()
                writer.write(answer)
        passing.cancel()
        if self._left == 0:
            self.is_over.set()


@contextlib.asynccontextmanager
async def losing_answers(server: RedisProcess) -> AsyncIterator[Losing]:
    losing = Losing(server)
    listening = await asyncio.start_server(losing.serve, "127.0.0.1", 0)
    async with listening:
        losing.url = f"redis://127.0.0.1:{listening.sockets[0].getsockname()[1]}/0"
        yield losing
