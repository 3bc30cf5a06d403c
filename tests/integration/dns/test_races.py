"""Somebody changes the zone between the gateway's reading and writing: real nsupdate, real BIND."""

import asyncio

import dns.message
import pytest
from dns.rcode import Rcode

from gateway.contract import DnsRecord
from gateway.dns.exchange import Exchange, Over
from gateway.dns.outcome import OutcomeKind
from gateway.dns.publisher import Publisher
from gateway.dns.replies import Peer
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
from tests.integration.dns.servers import Meddling

FOREIGN = "300 A 203.0.113.7"


def first_only(hand: Hand, *lines: str) -> Meddling:
    def meddle(n: int) -> None:
        if n == 1:
            hand.update(*lines)

    return Meddling(meddle)


async def test_name_taken_after_reading_is_a_conflict_and_untouched(
    caller: Caller, hand: Hand, zone: Zone
) -> None:
    racing = first_only(hand, f"add {caller.hostname} {FOREIGN}")
    outcome = await caller.through(zone, racing).publish(V4)
    assert outcome.kind is OutcomeKind.CONFLICT
    assert [each.value for each in outcome.found] == ["203.0.113.7"]
    assert hand.records(caller.hostname) == {FOREIGN}


async def test_foreign_name_freed_after_reading_is_created(
    caller: Caller, hand: Hand, zone: Zone
) -> None:
    hand.add(f"{caller.hostname} {FOREIGN}")
    racing = first_only(hand, f"delete {caller.hostname}")
    assert (await caller.through(zone, racing).publish(V4)).kind is OutcomeKind.CREATED


async def test_name_freed_after_the_refused_try_is_created(
    caller: Caller, hand: Hand, zone: Zone
) -> None:
    """The foreign record goes between the refusal and the second reading."""
    hand.add(f"{caller.hostname} {FOREIGN}")

    class Freeing(Exchange):
        async def ask(
            self, peer: Peer, request: dns.message.Message, *, over: Over, deadline: float
        ) -> dns.message.Message:
            reply = await super().ask(peer, request, over=over, deadline=deadline)
            if reply.rcode() == Rcode.YXDOMAIN:
                hand.update(f"delete {caller.hostname}")
            return reply

    assert (await caller.through(zone, Freeing()).publish(V4)).kind is OutcomeKind.CREATED


@pytest.mark.parametrize("wanted", [V4_OTHER, V6], ids=["other value", "other type"])
async def test_address_edited_after_reading_is_never_replaced(
    caller: Caller, hand: Hand, zone: Zone, wanted: DnsRecord
) -> None:
    await caller.publish(V4)
    name = caller.hostname
    racing = first_only(hand, f"delete {name} A", f"add {name} {FOREIGN}")
    assert (await caller.through(zone, racing).publish(wanted)).kind is OutcomeKind.CONFLICT
    assert hand.records(name) == {FOREIGN, f"300 {marker_of(caller.owner, V4)}"}


async def test_second_value_added_after_reading_is_never_lost(
    caller: Caller, hand: Hand, zone: Zone
) -> None:
    await caller.publish(V4)
    racing = first_only(hand, f"add {caller.hostname} {FOREIGN}")
    assert (await caller.through(zone, racing).publish(V4_OTHER)).kind is OutcomeKind.CONFLICT
    assert FOREIGN in hand.records(caller.hostname)


async def test_address_edited_after_reading_stays_after_withdraw(
    caller: Caller, hand: Hand, zone: Zone
) -> None:
    await caller.publish(V4)
    name = caller.hostname
    racing = first_only(hand, f"delete {name} A", f"add {name} {FOREIGN}")
    outcome = await caller.through(zone, racing).withdraw(remembered=V4)
    assert outcome.kind is OutcomeKind.DELETED
    assert hand.records(name) == {FOREIGN}


async def test_text_added_after_reading_is_kept_by_replace_and_withdraw(
    caller: Caller, hand: Hand, zone: Zone
) -> None:
    await caller.publish(V4)
    name = caller.hostname
    racing = first_only(hand, f'add {name} 900 TXT "v=spf1 -all"')
    assert (await caller.through(zone, racing).publish(V6)).kind is OutcomeKind.UPDATED
    assert racing.updates == 2
    assert '900 TXT "v=spf1 -all"' in hand.records(name)
    racing = first_only(hand, f'add {name} 900 TXT "second"')
    assert (await caller.through(zone, racing).withdraw()).kind is OutcomeKind.DELETED
    assert hand.records(name) == {'900 TXT "v=spf1 -all"', '900 TXT "second"'}


async def test_own_record_withdrawn_after_reading_is_created(
    caller: Caller, hand: Hand, zone: Zone
) -> None:
    await caller.publish(V4)
    racing = first_only(hand, f"delete {caller.hostname}")
    assert (await caller.through(zone, racing).publish(V6)).kind is OutcomeKind.CREATED


async def test_alias_added_after_reading_a_held_name_is_a_conflict(
    caller: Caller, hand: Hand, zone: Zone
) -> None:
    """BIND would answer NOERROR to an address beside a CNAME and drop it."""
    racing = first_only(hand, f"add {caller.hostname} 300 CNAME elsewhere.example.org.")
    outcome = await caller.through(zone, racing).publish(V4, held=True)
    assert outcome.kind is OutcomeKind.CONFLICT
    assert hand.records(caller.hostname) == {"300 CNAME elsewhere.example.org."}


async def test_name_that_never_rests_fails_and_nothing_is_written(
    caller: Caller, hand: Hand, zone: Zone
) -> None:
    await caller.publish(V4)

    def meddle(n: int) -> None:
        hand.add(f'{caller.hostname} 900 TXT "{n}"')

    racing = Meddling(meddle)
    outcome = await caller.through(zone, racing).publish(V6)
    assert (outcome.kind, outcome.unknown) == (OutcomeKind.FAILED, False)
    assert outcome.retry_after_seconds is not None
    assert racing.updates == 4
    assert f"300 A {V4.value}" in hand.records(caller.hostname)


async def test_of_many_owners_at_once_exactly_one_creates(
    zones: Zones, hand: Hand, hostname: str
) -> None:
    callers = [
        Caller(Publisher(zones, MARKERS, Exchange()), owner_of(hostname, client=f"client-{n}"))
        for n in range(8)
    ]
    outcomes = await asyncio.gather(*(caller.publish(V4) for caller in callers))
    kinds = [outcome.kind for outcome in outcomes]
    assert kinds.count(OutcomeKind.CREATED) == 1
    assert kinds.count(OutcomeKind.CONFLICT) == 7
    winner = callers[kinds.index(OutcomeKind.CREATED)]
    assert hand.records(hostname) == {f"300 A {V4.value}", f"300 {marker_of(winner.owner, V4)}"}


async def test_one_owner_in_many_processes_creates_once_and_agrees(
    zones: Zones, hand: Hand, hostname: str
) -> None:
    publishers = [Publisher(zones, MARKERS, Exchange()) for _ in range(8)]
    outcomes = await asyncio.gather(
        *(
            each.publish(owner_of(hostname), V4, held=False, remembered=None, deadline=soon())
            for each in publishers
        )
    )
    kinds = [outcome.kind for outcome in outcomes]
    assert kinds.count(OutcomeKind.CREATED) == 1
    assert kinds.count(OutcomeKind.UNCHANGED) == 7
