"""Records that a wildcard makes up for a name that is not in use, be they copies of the owner's."""

import pytest

from gateway.dns.exchange import Exchange
from gateway.dns.marker import MarkerKey, Markers
from gateway.dns.outcome import OutcomeKind
from gateway.dns.publisher import Publisher
from gateway.dns.zones import Zones
from tests.integration.dns.conftest import V4, V4_OTHER, V6, Caller, marker_of, owner_of, soon
from tests.integration.dns.hand import Hand


@pytest.fixture
def below(caller: Caller, hand: Hand) -> Caller:
    """A name that is answered with its owner's own record and marker, and does not exist."""
    parent = caller.hostname
    below = Caller(caller.publisher, owner_of(f"relay.{parent}"))
    hand.add(f"*.{parent} 300 A {V4.value}", f"*.{parent} 300 {marker_of(below.owner, V4)}")
    return below


async def test_record_made_up_is_replaced_by_a_real_one(below: Caller, hand: Hand) -> None:
    assert (await below.publish(V4_OTHER)).kind is OutcomeKind.CREATED
    marker = marker_of(below.owner, V4_OTHER)
    assert hand.records(below.hostname) == {f"300 A {V4_OTHER.value}", f"300 {marker}"}


async def test_record_made_up_is_withdrawn_already(below: Caller, hand: Hand) -> None:
    zone = "example.test"
    serial = hand.serial(zone)
    assert (await below.withdraw()).kind is OutcomeKind.DELETED
    assert hand.serial(zone) == serial


async def test_record_made_up_is_no_evidence(below: Caller) -> None:
    assert await below.publisher.records_at(below.hostname, float("inf")) == ()


async def test_real_record_below_a_wildcard_is_evidence(below: Caller, hand: Hand) -> None:
    hand.add(f"{below.hostname} 300 A {V4.value}")
    found = await below.publisher.records_at(below.hostname, float("inf"))
    assert [each.value for each in found] == [V4.value]


async def test_edited_address_made_up_is_no_conflict(caller: Caller, hand: Hand) -> None:
    below = Caller(caller.publisher, owner_of(f"relay.{caller.hostname}"))
    marker = marker_of(below.owner, V4)
    hand.add(f"*.{caller.hostname} 300 A 203.0.113.7", f"*.{caller.hostname} 300 {marker}")
    assert (await below.publish(V4)).kind is OutcomeKind.CREATED
    assert hand.records(below.hostname) == {f"300 A {V4.value}", f"300 {marker}"}


async def test_foreign_address_made_up_beside_ours_is_no_conflict(
    below: Caller, caller: Caller, hand: Hand
) -> None:
    hand.add(f"*.{caller.hostname} 300 AAAA 2001:db8::99")
    assert (await below.publish(V6)).kind is OutcomeKind.CREATED
    assert f"300 AAAA {V6.value}" in hand.records(below.hostname)


async def test_marker_made_up_is_not_restamped(caller: Caller, zones: Zones, hand: Hand) -> None:
    old, new = MarkerKey("old", b"o" * 32), MarkerKey("new", b"n" * 32)
    owner = owner_of(f"relay.{caller.hostname}")
    marker = Markers([old]).sign(owner, V4.type, V4.value)
    hand.add(f"*.{caller.hostname} 300 A {V4.value}", f'*.{caller.hostname} 300 TXT "{marker}"')
    publisher = Publisher(zones, Markers([new, old]), Exchange())
    outcome = await publisher.restamp(owner, remembered=V4, deadline=soon())
    assert outcome.kind is OutcomeKind.UNCHANGED
