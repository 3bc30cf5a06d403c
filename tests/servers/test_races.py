"""Somebody changes the zone between reading and writing, on every kind of server."""

import asyncio

from gateway.dns.exchange import Exchange
from gateway.dns.outcome import OutcomeKind
from gateway.dns.publisher import Publisher
from gateway.dns.zones import Zone, Zones
from tests.integration.dns.conftest import (
    MARKERS,
    V4,
    V4_OTHER,
    V6,
    Caller,
    marker_of,
    owner_of,
    soon,
)
from tests.integration.dns.hand import Hand
from tests.integration.dns.test_races import FOREIGN, first_only
from tests.servers.conftest import Tells
from tests.servers.eyes import Eyes
from tests.servers.test_records import kinds


async def test_name_taken_after_reading(
    caller: Caller, hand: Hand, eyes: Eyes, zone: Zone, tells: Tells
) -> None:
    racing = first_only(hand, f"add {caller.hostname} {FOREIGN}")
    outcome = await caller.through(zone, racing).publish(V4)
    assert [each.value for each in outcome.found] == ["203.0.113.7"]
    assert eyes.records(caller.hostname) == {FOREIGN}
    tells("a free name taken after reading", f"{kinds(outcome)}, untouched")


async def test_foreign_name_freed_after_reading(
    caller: Caller, hand: Hand, zone: Zone, tells: Tells
) -> None:
    hand.add(f"{caller.hostname} {FOREIGN}")
    racing = first_only(hand, f"delete {caller.hostname}")
    outcome = await caller.through(zone, racing).publish(V4)
    tells("a foreign name freed after reading", kinds(outcome))


async def test_address_edited_after_reading(
    caller: Caller, hand: Hand, eyes: Eyes, zone: Zone, tells: Tells
) -> None:
    outcomes = []
    for wanted in (V4_OTHER, V6):
        own = Caller(caller.publisher, owner_of(f"{wanted.type.lower()}.{caller.hostname}"))
        await own.publish(V4)
        racing = first_only(hand, f"delete {own.hostname} A", f"add {own.hostname} {FOREIGN}")
        outcomes.append(await own.through(zone, racing).publish(wanted))
        assert eyes.records(own.hostname) == {FOREIGN, f"300 {marker_of(own.owner, V4)}"}
    tells("our address edited after reading: replace", f"{kinds(*outcomes)}, untouched")


async def test_address_edited_after_reading_stays_after_withdraw(
    caller: Caller, hand: Hand, eyes: Eyes, zone: Zone, tells: Tells
) -> None:
    await caller.publish(V4)
    name = caller.hostname
    racing = first_only(hand, f"delete {name} A", f"add {name} {FOREIGN}")
    outcome = await caller.through(zone, racing).withdraw(remembered=V4)
    assert eyes.records(name) == {FOREIGN}
    tells("our address edited after reading: withdraw", f"{kinds(outcome)}, untouched")


async def test_second_value_added_after_reading(
    caller: Caller, hand: Hand, eyes: Eyes, zone: Zone, tells: Tells
) -> None:
    await caller.publish(V4)
    racing = first_only(hand, f"add {caller.hostname} {FOREIGN}")
    outcome = await caller.through(zone, racing).publish(V4_OTHER)
    assert FOREIGN in eyes.records(caller.hostname)
    tells("a second address added after reading: replace", f"{kinds(outcome)}, untouched")


async def test_text_added_after_reading_is_kept(
    caller: Caller, hand: Hand, eyes: Eyes, zone: Zone, tells: Tells
) -> None:
    await caller.publish(V4)
    name = caller.hostname
    racing = first_only(hand, f'add {name} 900 TXT "v=spf1 -all"')
    outcomes = [await caller.through(zone, racing).publish(V6)]
    assert racing.updates == 2
    assert '900 TXT "v=spf1 -all"' in eyes.records(name)
    racing = first_only(hand, f'add {name} 900 TXT "second"')
    outcomes.append(await caller.through(zone, racing).withdraw())
    assert eyes.records(name) == {'900 TXT "v=spf1 -all"', '900 TXT "second"'}
    tells("a text added after reading: replace, withdraw", f"{kinds(*outcomes)}, it stays")


async def test_alias_added_after_reading_a_held_name(
    caller: Caller, hand: Hand, eyes: Eyes, zone: Zone, tells: Tells
) -> None:
    racing = first_only(hand, f"add {caller.hostname} 300 CNAME elsewhere.example.org.")
    outcome = await caller.through(zone, racing).publish(V4, held=True)
    assert eyes.records(caller.hostname) == {"300 CNAME elsewhere.example.org."}
    tells("an alias added after reading a held name", f"{kinds(outcome)}, untouched")


async def test_of_many_owners_at_once_exactly_one_creates(
    zones: Zones, eyes: Eyes, hostname: str, tells: Tells
) -> None:
    callers = [
        Caller(Publisher(zones, MARKERS, Exchange()), owner_of(hostname, client=f"client-{n}"))
        for n in range(8)
    ]
    outcomes = await asyncio.gather(*(caller.publish(V4) for caller in callers))
    told = [outcome.kind for outcome in outcomes]
    winner = callers[told.index(OutcomeKind.CREATED)]
    assert eyes.records(hostname) == {f"300 A {V4.value}", f"300 {marker_of(winner.owner, V4)}"}
    created, refused = (told.count(kind) for kind in (OutcomeKind.CREATED, OutcomeKind.CONFLICT))
    tells("eight owners at once", f"{created} created, {refused} conflict")


async def test_one_owner_in_many_processes_creates_once(
    zones: Zones, hostname: str, tells: Tells
) -> None:
    publishers = [Publisher(zones, MARKERS, Exchange()) for _ in range(8)]
    outcomes = await asyncio.gather(
        *(
            each.publish(owner_of(hostname), V4, held=False, remembered=None, deadline=soon())
            for each in publishers
        )
    )
    told = [outcome.kind for outcome in outcomes]
    created, same = (told.count(kind) for kind in (OutcomeKind.CREATED, OutcomeKind.UNCHANGED))
    tells("one owner eight times at once", f"{created} created, {same} unchanged")
