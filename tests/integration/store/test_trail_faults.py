"""What the trail does when Redis takes a part of a batch only, or its answers are lost."""

import secrets
from collections.abc import AsyncIterator

import pytest

from gateway.store import trail as trail_module
from gateway.store.connection import Store
from gateway.store.faults import StoreRefused
from gateway.store.keys import AUDIT_KEY, NOTABLE_KEY, audit_day_key, audit_writer_key
from gateway.store.lately import Lately
from gateway.store.stream import Stream
from gateway.store.trail import WrittenTrail
from gateway.store.trail_reading import TrailReader, Wanted
from gateway.store.trail_writing import TrailWriter
from tests.integration.store.losing import losing_answers
from tests.integration.store.test_lately import (
    NOON_MS,
    PROCESS,
    conflict,
    failed,
    in_trail,
    issued,
    names,
    numbered,
    writer_on,
)
from tests.lab.process import read_until
from tests.lab.redis import RedisProcess

HIGHEST = "18446744073709551615-18446744073709551615"


async def told(store: Store, key: str, *command: str | int) -> None:
    await store.answers_of_each([(key, [command])])


@pytest.fixture
async def restricted(own_redis: RedisProcess, alone: Store) -> AsyncIterator[Store]:
    """As a user who may do nothing but what `allow` says."""
    user = ("ACL", "SETUSER", "short", "on", ">secret", "~*", "+@all")
    await alone.answers_of_each([("any", [user])])
    store = Store(own_redis.url.replace("redis://", "redis://short:secret@"), replicas=0)
    yield store
    await store.close()


@pytest.mark.parametrize("forbidden", ["pexpire", "hincrby", "type", "del"])
async def test_user_who_may_not_keep_what_is_beside_the_trail_has_each_entry_once(
    alone: Store, restricted: Store, forbidden: str
) -> None:
    await told(alone, "any", "ACL", "SETUSER", "short", f"-{forbidden}")
    writer = writer_on(restricted)
    sent = numbered([failed("a"), conflict("b")])
    await writer.append(sent)
    await writer.append(sent)
    assert await in_trail(alone) == ["a", "b"]
    assert names((await Lately(alone, is_kept=True).notable(9)).entries) == ["a"]


@pytest.mark.parametrize("forbidden", ["set", "mget"])
async def test_nothing_is_appended_where_it_could_not_be_known_later(
    alone: Store, restricted: Store, forbidden: str
) -> None:
    await told(alone, "any", "ACL", "SETUSER", "short", f"-{forbidden}")
    writer = writer_on(restricted)
    for _ in range(2):
        with pytest.raises(StoreRefused):
            await writer.append(numbered([failed("a")]))
    assert await in_trail(alone) == []


async def test_stream_beside_the_trail_that_takes_no_more_is_begun_anew(alone: Store) -> None:
    await told(alone, NOTABLE_KEY, "XADD", NOTABLE_KEY, HIGHEST, "id", "x", "entry", "{}")
    writer = writer_on(alone)
    sent = numbered([failed("a"), issued("b"), failed("c")])
    await writer.append(sent)
    await writer.append(sent)
    assert await in_trail(alone) == ["a", "b", "c"]
    assert names((await Lately(alone, is_kept=True).notable(9)).entries) == ["c", "a"]


async def test_count_that_can_grow_no_more_is_begun_anew(alone: Store) -> None:
    await alone.set_field(audit_day_key("2027-01-15"), "failed", str(2**63 - 1))
    writer = writer_on(alone)
    await writer.append(numbered([failed("a")]))
    (day,) = await Lately(alone, is_kept=True).days(1, NOON_MS)
    assert day.failed == 1


async def test_batch_that_the_trail_refused_is_taken_once_it_takes_it(alone: Store) -> None:
    await alone.put(AUDIT_KEY, "a text", 1_000_000)
    writer = writer_on(alone)
    sent = numbered([failed("a"), failed("b")])
    for _ in range(2):
        with pytest.raises(StoreRefused, match="WRONGTYPE"):
            await writer.append(sent)
    await told(alone, AUDIT_KEY, "DEL", AUDIT_KEY)
    await writer.append(sent)
    assert await in_trail(alone) == ["a", "b"]
    assert names((await Lately(alone, is_kept=True).notable(9)).entries) == ["b", "a"]


@pytest.mark.parametrize("junk", ["inf", "1e300", "nan", "-5", "9.5", " 7", "9" * 40])
async def test_writers_number_that_is_none_is_replaced(alone: Store, junk: str) -> None:
    writer_id = secrets.token_hex(8)
    await alone.put(audit_writer_key(writer_id), junk, 1_000_000)
    writer = TrailWriter(alone, writer_id, bound=1_000)
    sent = numbered([failed("a")])
    await writer.append(sent)
    await writer.append(sent)
    assert await in_trail(alone) == ["a"]


async def test_lost_entries_are_told_once_though_answers_are_lost(
    own_redis: RedisProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trail_module, "QUEUE_BOUND", 5)
    async with losing_answers(own_redis, b"entries-lost") as losing:
        store = Store(losing.url, replicas=0)
        trail = WrittenTrail(
            writer_on(store),
            Stream(store, AUDIT_KEY),
            PROCESS,
            now_ms=lambda: NOON_MS,
            new_id=lambda: secrets.token_hex(8),
        )
        for number in range(8):
            trail.note(issued(f"n{number}"))
        async with trail.writing(30.0):
            await losing.is_over.wait()
            monkeypatch.setattr(trail_module, "QUEUE_BOUND", 50)
            trail.note(issued("later"))
            # A trail that is to end gives up at the first fault: it must have gone on before that.
            await read_until(Stream(store, AUDIT_KEY).extent, lambda extent: extent.added >= 7)
        found = [each.entry or {} for each in await TrailReader(store, Wanted()).newest(50)]
        assert names(await TrailReader(store, Wanted()).newest(50)) == [
            *(f"n{number}" for number in range(5)),
            "",
            "later",
        ]
        assert found[5]["detail"] == "3 entries, before this one"
        assert (await Stream(store, AUDIT_KEY).extent()).added == 7
        await store.close()
