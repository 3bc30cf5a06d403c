"""Where a name lies: wildcards that only seem to be there, cuts, DNAMEs and other zones above."""

from collections.abc import Callable

import pytest

from gateway.dns.outcome import OutcomeKind
from gateway.dns.zones import Zone
from tests.integration.dns.conftest import (
    V4,
    Caller,
    marker_of,
)
from tests.integration.dns.hand import Hand
from tests.integration.dns.servers import Meddling

CREATED, CONFLICT = OutcomeKind.CREATED, OutcomeKind.CONFLICT
UNAVAILABLE, FREE = OutcomeKind.UNAVAILABLE, OutcomeKind.FREE
WILD = ["A 203.0.113.7", 'TXT "wild"', "CNAME elsewhere.example.org.", "MX 10 mail.test."]


@pytest.mark.parametrize("record", WILD)
@pytest.mark.parametrize("held", [False, True])
async def test_name_under_a_wildcard_is_free_and_published(
    call: Callable[[str], Caller], hand: Hand, fresh_label: str, record: str, held: bool
) -> None:
    hand.add(f"*.{fresh_label}.example.test 300 {record}")
    caller = call(f"relay.{fresh_label}.example.test")
    assert hand.records(caller.hostname) == {f"300 {record}"}
    serial = hand.serial("example.test")
    assert (await caller.inspect()).kind is FREE
    assert (await caller.withdraw(remembered=V4)).kind is OutcomeKind.DELETED
    assert hand.serial("example.test") == serial
    assert (await caller.publish(V4, held=held)).kind is CREATED
    assert hand.records(caller.hostname) == {
        f"300 A {V4.value}",
        f"300 {marker_of(caller.owner, V4)}",
    }
    assert (await caller.withdraw()).kind is OutcomeKind.DELETED
    assert hand.records(caller.hostname) == {f"300 {record}"}


async def test_conflict_is_told_after_reading_trying_and_reading(
    caller: Caller, hand: Hand, zone: Zone
) -> None:
    hand.add(f"{caller.hostname} 300 A 203.0.113.7")
    exchange = Meddling(lambda n: None)
    assert (await caller.through(zone, exchange).publish(V4)).kind is CONFLICT
    assert exchange.asked == ["tcp query", "udp update", "tcp query"]


@pytest.mark.parametrize("depth", ["", "relay.", "a.b."])
async def test_name_at_or_below_a_delegation_is_unavailable(
    call: Callable[[str], Caller], hand: Hand, fresh_label: str, depth: str
) -> None:
    cut = f"{fresh_label}.example.test"
    hand.add(f"{cut} 300 NS ns.elsewhere.example.org.")
    serial = hand.serial("example.test")
    caller = call(depth + cut)
    for outcome in (
        await caller.publish(V4),
        await caller.publish(V4, held=True),
        await caller.inspect(),
        await caller.withdraw(remembered=V4),
    ):
        assert (outcome.kind, outcome.retry_after_seconds) == (UNAVAILABLE, None)
        assert cut in outcome.detail
    assert hand.serial("example.test") == serial


@pytest.mark.parametrize("record", ["CNAME elsewhere.example.org.", "DNAME elsewhere.example.org."])
async def test_alias_at_the_name_itself_is_a_foreign_record(
    caller: Caller, hand: Hand, record: str
) -> None:
    hand.add(f"{caller.hostname} 300 {record}")
    for outcome in (await caller.publish(V4), await caller.inspect()):
        assert outcome.kind is CONFLICT
        assert [f"{each.type} {each.value}" for each in outcome.found] == [record]
    assert hand.records(caller.hostname) == {f"300 {record}"}


async def test_apex_is_a_conflict_with_the_zone_s_own_records(
    call: Callable[[str], Caller], hand: Hand
) -> None:
    """For a record and for a certificate (`inspect`) alike; there is nothing to withdraw."""
    serial = hand.serial("example.test")
    apex = call("example.test")
    for outcome in (
        await apex.publish(V4),
        await apex.publish(V4, held=True),
        await apex.inspect(),
    ):
        assert outcome.kind is CONFLICT
        assert {"SOA", "NS"} <= {each.type for each in outcome.found}
        assert not outcome.marked
    assert (await apex.withdraw(remembered=V4)).kind is OutcomeKind.DELETED
    assert hand.serial("example.test") == serial
