"""The audit trail on a real Redis of each kind: in order, bounded, kept while Redis is away."""

import asyncio
import itertools
import json
import secrets
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial

import pytest
from structlog.testing import capture_logs

from gateway.store.connection import Store
from gateway.store.deeds import Action, Actor, Deed, Role, acting_as
from gateway.store.keys import AUDIT_KEY
from gateway.store.stream import FIRST_ID, Stream
from gateway.store.trail import QUEUE_BOUND, Once, WrittenTrail, open_trail
from gateway.store.trail_reading import TrailReader, Wanted
from gateway.store.trail_writing import TrailWriter
from tests.lab.process import read_until
from tests.lab.redis import RedisProcess

PATIENCE_SECONDS = 30.0
PROCESS = Actor(Role.PROCESS, "test-1")
CLIENT = Actor(Role.CLIENT, "credential-1", "cluster-a")


class OwnStream(Stream):
    """A stream of a test's own, and who writes it."""

    def __init__(self, store: Store, name: str) -> None:
        self.store, self.key = store, f"gw:{{trail}}:{name}"
        super().__init__(store, self.key)

    def writer(self, bound: int = 100_000) -> TrailWriter:
        return TrailWriter(self.store, secrets.token_hex(8), bound=bound, key=self.key)


@pytest.fixture
def stream(store: Store) -> OwnStream:
    return OwnStream(store, secrets.token_hex(6))


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def trail_on(stream: OwnStream, *, bound: int = 100_000) -> WrittenTrail:
    return WrittenTrail(
        stream.writer(bound), stream, PROCESS, now_ms=now_ms, new_id=lambda: secrets.token_hex(8)
    )


def deed(number: int) -> Deed:
    return Deed(Action.RECORD_SYNC, "managed-created", hostname=f"n{number}.example.test")


async def entries(stream: Stream) -> list[dict[str, object]]:
    found, place = [], FIRST_ID
    while page := await stream.after(place, 500):
        found += [json.loads(line.text) for line in page]
        place = page[-1].place
    return found


async def numbers(stream: Stream) -> list[int]:
    """Of the deeds that were written, in the trail's order."""
    hostnames = [str(entry.get("hostname", "")) for entry in await entries(stream)]
    return [int(name[1:].partition(".")[0]) for name in hostnames if name]


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[Store]:
    store = Store(url, replicas=0)
    try:
        yield store
    finally:
        await store.close()


async def test_deeds_are_written_in_order_with_who_did_them(stream: OwnStream) -> None:
    trail = trail_on(stream)
    async with trail.writing(PATIENCE_SECONDS):
        with acting_as(CLIENT):
            trail.note(deed(0))
        for number in range(1, 250):
            trail.note(deed(number))
    assert await numbers(stream) == list(range(250))
    first, second = (await entries(stream))[:2]
    assert (first["who"], first["name"], first["ofClient"]) == (
        "client",
        "credential-1",
        "cluster-a",
    )
    assert (second["who"], second["name"]) == ("process", "test-1")


async def test_two_processes_write_one_trail(stream: OwnStream) -> None:
    one, other = trail_on(stream), trail_on(stream)
    async with one.writing(PATIENCE_SECONDS), other.writing(PATIENCE_SECONDS):
        for number in range(50):
            (one, other)[number % 2].note(deed(number))
    found = await numbers(stream)
    assert sorted(found) == list(range(50))
    assert [number for number in found if number % 2] == list(range(1, 50, 2))


async def test_trail_is_bounded_and_tells_what_was_trimmed(stream: OwnStream) -> None:
    trail = trail_on(stream, bound=100)
    async with trail.writing(PATIENCE_SECONDS):
        for number in range(1_000):
            trail.note(deed(number))
    found = await numbers(stream)
    extent = await stream.extent()
    assert 100 <= len(found) <= 300
    assert found == list(range(1_000 - len(found), 1_000))
    assert (extent.length, extent.trimmed) == (len(found), 1_000 - len(found))


async def test_deed_told_once_is_written_by_the_first_of_two_processes(
    store: Store, stream: OwnStream
) -> None:
    once = Once(f"gw:{{h5}}:handed:{secrets.token_hex(6)}", 60_000)
    for _ in range(2):
        trail = trail_on(stream)
        async with trail.writing(PATIENCE_SECONDS):
            for number in range(3):
                trail.note_once(once, partial(deed, number))
    assert await numbers(stream) == [0]


async def test_entry_that_was_sent_twice_is_read_once(own_redis: RedisProcess) -> None:
    text = json.dumps({"at": 1, "who": "admin", "what": "client-revoke", "outcome": "changed"})
    async with opened(own_redis.url) as store:
        await append(store, [("same", text), ("same", text), ("another", text)])
        assert len(await TrailReader(store, Wanted()).newest(10)) == 2


async def test_what_somebody_else_wrote_there_is_told_as_unreadable(
    own_redis: RedisProcess,
) -> None:
    sound = {"who": "admin", "what": "client-revoke", "outcome": "changed"}
    never = [json.dumps({**sound, "at": at_ms}) for at_ms in (-1, 10**17, None, True)]
    texts = ["", "[]", "{", '{"at": "now"}', "[" * 100_000, '{"at":1,"who":2}', *never]
    async with opened(own_redis.url) as store:
        await append(store, [(str(number), text) for number, text in enumerate(texts)])
        found = await TrailReader(store, Wanted()).newest(20)
        assert [each.entry for each in found] == [None] * len(texts)
        assert await TrailReader(store, Wanted(client_id="a")).newest(10) == []


async def test_switched_off_trail_writes_nothing(own_redis: RedisProcess) -> None:
    async with opened(own_redis.url) as store:
        async with open_trail(
            store, PROCESS, entries=0, patience_seconds=1, now_ms=now_ms, new_id=lambda: "1"
        ) as trail:
            trail.note(deed(1))
        assert [key async for key in store.keys_like("*")] == []


async def test_entries_wait_for_a_redis_that_is_away(own_redis: RedisProcess) -> None:
    async with opened(own_redis.url) as store:
        stream = OwnStream(store, "away")
        trail = trail_on(stream)
        async with trail.writing(PATIENCE_SECONDS):
            trail.note(deed(0))
            await written(stream, 1)
            own_redis.stop()
            with capture_logs() as logged:
                for number in range(1, 151):
                    trail.note(deed(number))
                await told(logged, "audit entries wait")
            await asyncio.to_thread(own_redis.start)
            await written(stream, 151)
        # What was sent while Redis was about to take it may be there twice.
        assert sorted(set(await numbers(stream))) == list(range(151))


async def test_entries_beyond_the_queue_are_counted_and_told(own_redis: RedisProcess) -> None:
    async with opened(own_redis.url) as store:
        stream = OwnStream(store, "full")
        trail = trail_on(stream)
        own_redis.stop()
        with capture_logs() as logged:
            for number in range(QUEUE_BOUND + 7):
                trail.note(deed(number))
        await told(logged, "audit entries are lost: too many wait for Redis")
        await asyncio.to_thread(own_redis.start)
        async with trail.writing(PATIENCE_SECONDS):
            await written(stream, QUEUE_BOUND + 1)
        assert sorted(set(await numbers(stream))) == list(range(QUEUE_BOUND))
        lost = [entry for entry in await entries(stream) if entry["what"] == "entries-lost"]
        assert [entry["detail"] for entry in lost] == ["7 entries, before this one"]


async def test_hand_outs_leave_room_for_changes(own_redis: RedisProcess) -> None:
    most = QUEUE_BOUND // 2
    async with opened(own_redis.url) as store:
        stream = OwnStream(store, "crowd")
        trail = trail_on(stream)
        for number in range(most + 7):
            once = Once(f"gw:{{trail5}}:handed:{number}", 60_000)
            trail.note_once(once, partial(deed, number))
        trail.note(deed(most + 7))
        async with trail.writing(PATIENCE_SECONDS):
            await written(stream, most + 2)
        assert await numbers(stream) == [*range(most), most + 7]


async def test_end_without_redis_comes_in_time_and_tells_what_is_lost(
    own_redis: RedisProcess,
) -> None:
    async with opened(own_redis.url) as store:
        trail = trail_on(OwnStream(store, "never"))
        own_redis.stop()
        with capture_logs() as logged:
            async with trail.writing(1.0):
                for number in range(3):
                    trail.note(deed(number))
        (line,) = [line for line in logged if line["log_level"] == "error"]
        assert (line["event"], line["lost"]) == (
            "audit entries lost: Redis did not take them",
            3,
        )


async def test_redis_that_refuses_the_trail_disturbs_nobody(own_redis: RedisProcess) -> None:
    async with opened(own_redis.url) as store:
        await store.set_field("gw:{trail}:taken", "of", "another kind")
        trail = trail_on(OwnStream(store, "taken"))
        with capture_logs() as logged:
            async with trail.writing(1.0):
                trail.note(deed(0))
                await told(logged, "audit entries wait")
        assert [line["error"] for line in logged if "error" in line] == [
            "Redis refused a command: WRONGTYPE"
        ]
        assert logged[-1]["lost"] == 1


async def test_reading_goes_on_behind_what_was_read(own_redis: RedisProcess) -> None:
    async with opened(own_redis.url) as store:
        reader = TrailReader(store, Wanted())
        count = itertools.count()

        async def write(how_many: int) -> None:
            async with open_trail(
                store,
                PROCESS,
                entries=1_000,
                patience_seconds=30,
                now_ms=now_ms,
                new_id=lambda: secrets.token_hex(8),
            ) as trail:
                for _ in range(how_many):
                    trail.note(deed(next(count)))

        await write(12)
        newest = [each.entry for each in await reader.newest(5)]
        assert [entry and entry["hostname"] for entry in newest] == [
            f"n{number}.example.test" for number in range(7, 12)
        ]
        assert await reader.coming() == []
        await write(2)
        coming = [each.entry for each in await reader.coming()]
        assert [entry and entry["hostname"] for entry in coming] == [
            "n12.example.test",
            "n13.example.test",
        ]
        assert await reader.coming() == []


async def append(store: Store, lines: Sequence[tuple[str, str]]) -> None:
    """Entries of the trail as an older release wrote them."""
    commands = [("XADD", AUDIT_KEY, "*", "id", name, "entry", text) for name, text in lines]
    await store.answers_of_each([(AUDIT_KEY, commands)])


async def written(stream: Stream, count: int) -> None:
    async def length() -> int:
        return (await stream.extent()).length

    await read_until(length, lambda found: found >= count)


async def told(logged: Sequence[Mapping[str, object]], event: str) -> None:
    async def events() -> list[object]:
        return [line["event"] for line in logged]

    await read_until(events, lambda found: event in found)
