"""What is kept beside the trail, on a real Redis of each kind: notable entries and days' counts."""

import secrets
from collections.abc import Sequence

from gateway.store.connection import Store
from gateway.store.deeds import Action, Actor, Deed, Entry, Role
from gateway.store.keys import AUDIT_KEY, CONFLICTS_KEY, NOTABLE_KEY, audit_day_key
from gateway.store.lately import DayCounts, Lately
from gateway.store.stream import LAST_ID, Stream
from gateway.store.trail import WrittenTrail
from gateway.store.trail_reading import Told, TrailReader, Wanted
from gateway.store.trail_writing import BESIDE_BOUND, DAYS_KEPT, Numbered, TrailWriter
from tests.integration.store.losing import losing_answers
from tests.lab.redis import RedisProcess

PROCESS = Actor(Role.PROCESS, "test-1")
DAY_MS = 86_400_000
NOON_MS = 1_800_014_400_000
"""2027-01-15, 12:00 UTC."""


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
    lately = Lately(store, is_kept=True)
    (newest,) = (await lately.notable(1)).entries
    assert newest.entry is not None
    assert (newest.entry["what"], names([newest])) == ("certificate-failed", [label])
    newest = (await lately.conflicts(0)).told[0]
    assert newest.entry is not None
    assert (newest.entry["what"], names([newest])) == ("record-sync", [label])
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
    assert names(page.entries).count(label) == 1
    assert names((await Lately(store, is_kept=True).conflicts(0)).told).count(label) == 1
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
    for start in range(0, 3 * BESIDE_BOUND, 100):
        deeds = [failed(f"n{start + number}") for number in range(100)]
        await writer.append(numbered(deeds, first=start + 1))
    extent = await Stream(alone, NOTABLE_KEY).extent()
    assert BESIDE_BOUND <= extent.length < BESIDE_BOUND + 200
    assert len(await in_trail(alone)) == 3 * BESIDE_BOUND


async def test_newest_conflict_of_each_hostname_is_told(alone: Store) -> None:
    deeds = [conflict("a"), failed("b"), conflict("c"), conflict("a"), conflict("d"), failed("c")]
    await writer_on(alone).append(numbered(deeds))
    found, is_cut = await Lately(alone, is_kept=True).conflicts(0)
    assert (names(found), is_cut) == (["d", "a", "c"], False)
    hostname = str((found[1].entry or {})["hostname"])
    assert (await Lately(alone, is_kept=True).conflicts(0, hostname)).told == [found[1]]
    assert (await Lately(alone, is_kept=True).conflicts(NOON_MS + 1)).told == []
    newest = await Stream(alone, CONFLICTS_KEY).before(LAST_ID, 4)
    assert found[1].place == newest[1].place


async def test_conflict_is_found_behind_many_of_another_hostname(alone: Store) -> None:
    writer = writer_on(alone)
    await writer.append(numbered([conflict("first")]))
    for start in range(2, 702, 100):
        await writer.append(numbered([conflict("second")] * 100, first=start))
    assert names((await Lately(alone, is_kept=True).conflicts(0)).told) == ["second", "first"]


async def test_conflicts_of_a_client_in_a_loop_push_out_no_failure(alone: Store) -> None:
    writer = writer_on(alone)
    await writer.append(numbered([failed("mine")]))
    for start in range(2, 3 * BESIDE_BOUND, 100):
        deeds = [conflict(f"n{start + number}") for number in range(100)]
        await writer.append(numbered(deeds, first=start))
    assert names((await Lately(alone, is_kept=True).notable(5)).entries) == ["mine"]
    extent = await Stream(alone, CONFLICTS_KEY).extent()
    assert BESIDE_BOUND <= extent.length < BESIDE_BOUND + 200
    # What was pushed out may be of any time that is asked for.
    found = await Lately(alone, is_kept=True).conflicts(0)
    assert (len(found.told), found.is_cut) == (extent.length, True)


async def test_what_somebody_else_put_there_is_replaced(alone: Store) -> None:
    lately = Lately(alone, is_kept=True)
    for key in (NOTABLE_KEY, CONFLICTS_KEY):
        await alone.put(key, "a text", 1_000_000)
    assert ((await lately.notable(10)).entries, (await lately.conflicts(0)).told) == ([], [])
    await alone.put(audit_day_key("2027-01-15"), "a text", 1_000_000)
    assert (await day(alone, NOON_MS)).failed == 0
    writer = writer_on(alone)
    await writer.append(numbered([failed("a")]))
    assert (await day(alone, NOON_MS)).failed == 1
    await alone.set_field(audit_day_key("2027-01-15"), "failed", "many")
    assert (await day(alone, NOON_MS)).failed == 0
    await writer.append(numbered([failed("b")], first=2))
    assert (await day(alone, NOON_MS)).failed == 1
    assert names((await lately.notable(10)).entries) == ["b", "a"]
    await writer.append(numbered([conflict("c")], first=3))
    assert names((await lately.conflicts(0)).told) == ["c"]


async def test_nothing_is_told_of_a_redis_that_has_nothing(alone: Store) -> None:
    lately = Lately(alone, is_kept=False)
    assert (await lately.notable(10)).entries == []
    assert await lately.conflicts(0) == ([], False)
    assert await lately.days(2, NOON_MS) == [DayCounts("2027-01-14"), DayCounts("2027-01-15")]
