"""Publish, replace and withdraw on a real BIND, alone and beside other people's records.

`tests/servers` has what every kind of server is asked.
"""

from collections.abc import Callable

import pytest

from gateway.dns.outcome import FoundRecord, OutcomeKind
from tests.integration.dns.conftest import V4, V6, Caller, owner_of, shown
from tests.integration.dns.hand import Hand

CREATED, UPDATED, UNCHANGED = OutcomeKind.CREATED, OutcomeKind.UPDATED, OutcomeKind.UNCHANGED
DELETED, CONFLICT, UNAVAILABLE = OutcomeKind.DELETED, OutcomeKind.CONFLICT, OutcomeKind.UNAVAILABLE


async def test_publish_creates_address_and_marker(caller: Caller, hand: Hand) -> None:
    outcome = await caller.publish(V4)
    assert (outcome.kind, outcome.record) == (CREATED, V4)
    assert hand.records(caller.hostname) == shown(caller, V4)


async def test_publish_again_is_unchanged_and_writes_nothing(caller: Caller, hand: Hand) -> None:
    await caller.publish(V4)
    serial = hand.serial("example.test")
    outcome = await caller.publish(V4)
    assert (outcome.kind, outcome.record) == (UNCHANGED, V4)
    assert hand.serial("example.test") == serial


@pytest.mark.parametrize(
    "record",
    [
        "A 203.0.113.7",
        "AAAA 2001:db8:bad::1",
        'TXT "v=spf1 -all"',
        "CNAME elsewhere.example.org.",
        "MX 10 mail.example.org.",
        'CAA 0 issue "ca.test"',
        "SRV 0 0 443 host.example.org.",
        "PTR host.example.org.",
        "DNAME elsewhere.example.org.",
        "HTTPS 1 . alpn=h2",
        "TYPE65280 \\# 4 0a000001",
        'TXT "gateway-owner=v1:k1:AAAAAAAAAAAAAAAAAAAAAA"',
    ],
)
async def test_foreign_record_at_the_name_is_a_conflict_and_stays(
    caller: Caller, hand: Hand, record: str
) -> None:
    hand.add(f"{caller.hostname} 1234 {record}")
    before, serial = hand.records(caller.hostname), hand.serial("example.test")
    outcome = await caller.publish(V4)
    assert outcome.kind is CONFLICT
    assert [each.ttl for each in outcome.found] == [1234]
    assert [each.name for each in outcome.found] == [caller.hostname]
    assert (await caller.inspect()).kind is CONFLICT
    assert (await caller.withdraw(remembered=V4)).kind is DELETED
    assert hand.records(caller.hostname) == before
    assert hand.serial("example.test") == serial


async def test_conflict_shows_every_record_at_the_name(caller: Caller, hand: Hand) -> None:
    name = caller.hostname
    hand.add(f"{name} 60 A 203.0.113.7", f"{name} 60 A 203.0.113.8", f'{name} 120 TXT "x y"')
    outcome = await caller.publish(V4)
    assert outcome.found == (
        FoundRecord(name, "A", "203.0.113.7", 60),
        FoundRecord(name, "A", "203.0.113.8", 60),
        FoundRecord(name, "TXT", '"x y"', 120),
    )
    assert await caller.publisher.records_at(name, float("inf")) == outcome.found


@pytest.mark.parametrize(
    ("client", "app"),
    [("rival", "app:one"), ("relay", "app:two")],
    ids=["other client", "other app"],
)
async def test_another_owner_gets_a_conflict_and_can_not_withdraw(
    caller: Caller, hand: Hand, client: str, app: str
) -> None:
    await caller.publish(V4)
    rival = Caller(caller.publisher, owner_of(caller.hostname, client, app))
    assert (await rival.publish(V4)).kind is CONFLICT
    assert (await rival.publish(V6, held=True)).kind is CONFLICT
    assert (await rival.inspect()).kind is CONFLICT
    assert (await rival.withdraw(remembered=V4)).kind is DELETED
    assert hand.records(caller.hostname) == shown(caller, V4)
    assert (await caller.publish(V4)).kind is UNCHANGED


async def test_address_edited_by_hand_is_a_conflict_and_stays_after_withdraw(
    caller: Caller, hand: Hand
) -> None:
    await caller.publish(V4)
    name = caller.hostname
    hand.update(f"delete {name} A", f"add {name} 300 A 203.0.113.7")
    before = hand.records(name)
    assert (await caller.publish(V4, remembered=V4)).kind is CONFLICT
    assert (await caller.publish(V6, remembered=V4, held=True)).kind is CONFLICT
    assert hand.records(name) == before
    done = await caller.withdraw(remembered=V4)
    assert (done.kind, done.removed, done.unmarked) == (DELETED, (), True)
    assert [(each.type, each.value, each.ttl) for each in done.left] == [("A", "203.0.113.7", 300)]
    assert hand.records(name) == {"300 A 203.0.113.7"}


async def test_second_value_by_hand_makes_the_address_foreign(caller: Caller, hand: Hand) -> None:
    await caller.publish(V4)
    hand.add(f"{caller.hostname} 300 A 203.0.113.7")
    assert (await caller.publish(V4)).kind is CONFLICT
    assert (await caller.withdraw()).kind is DELETED
    assert hand.records(caller.hostname) == {f"300 A {V4.value}", "300 A 203.0.113.7"}


async def test_address_removed_by_hand_leaves_a_marker_that_withdraw_removes(
    caller: Caller, hand: Hand
) -> None:
    await caller.publish(V4)
    hand.update(f"delete {caller.hostname} A")
    assert (await caller.withdraw(remembered=V4)).kind is DELETED
    assert hand.records(caller.hostname) == set()


async def test_marker_removed_by_hand_makes_the_address_foreign(caller: Caller, hand: Hand) -> None:
    await caller.publish(V4)
    hand.update(f"delete {caller.hostname} TXT")
    assert (await caller.publish(V4, remembered=V4)).kind is CONFLICT
    assert (await caller.withdraw(remembered=V4)).kind is DELETED
    assert hand.records(caller.hostname) == {f"300 A {V4.value}"}


@pytest.mark.parametrize("label", ["a", "abcdefghi", "a" * 63])
async def test_name_of_253_characters_is_published(
    call: Callable[[str], Caller], hand: Hand, fresh_label: str, label: str
) -> None:
    suffix = f".{fresh_label}.example.test"
    room = 253 - len(suffix)
    labels = [label] * (room // (len(label) + 1))
    rest = room - len(".".join(labels)) - 1
    name = ".".join(["b" * rest, *labels] if rest > 0 else labels) + suffix
    assert len(name) in (252, 253)
    caller = call(name)
    assert (await caller.publish(V4)).kind is CREATED
    assert (await caller.publish(V6)).kind is UPDATED
    assert hand.records(name) == shown(caller, V6)
    assert (await caller.withdraw()).kind is DELETED


async def test_name_in_no_configured_zone_is_unavailable(call: Callable[[str], Caller]) -> None:
    outcome = await call("relay.example.org").publish(V4)
    assert (outcome.kind, outcome.retry_after_seconds) == (UNAVAILABLE, None)
    assert "relay.example.org" in outcome.detail
    assert await call("x.example.test").publisher.records_at("relay.example.org", 0.0) == ()


async def test_inspect_tells_own_record_and_free_name(caller: Caller) -> None:
    assert (await caller.inspect()).kind is OutcomeKind.FREE
    await caller.publish(V4)
    outcome = await caller.inspect()
    assert outcome.kind is OutcomeKind.OURS
    assert next((each.type, each.value) for each in outcome.found) == ("A", V4.value)
