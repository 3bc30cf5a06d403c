"""Servers that take updates and refuse queries of some types: ANY, SOA, AXFR."""

import asyncio
from collections.abc import AsyncIterator, Callable

import dns.flags
import dns.message
import dns.rrset
import pytest
from dns.rcode import Rcode
from dns.rdatatype import RdataType

from gateway.dns.challenges import Challenges
from gateway.dns.exchange import Exchange
from gateway.dns.health import check_zone, probe_zone
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
    zone_at,
)
from tests.integration.dns.hand import Hand
from tests.integration.dns.servers import refusal, withholding_server
from tests.lab.bind import BindPair

CREATED, CONFLICT = OutcomeKind.CREATED, OutcomeKind.CONFLICT

Judge = Callable[[dns.message.Message], dns.message.Message | None]


def withholding(rcode: Rcode, *types: RdataType) -> Judge:
    def judge(request: dns.message.Message) -> dns.message.Message | None:
        is_withheld = request.opcode() == 0 and request.question[0].rdtype in types
        return refusal(request, rcode) if is_withheld else None

    return judge


def telling_hinfo(request: dns.message.Message) -> dns.message.Message | None:
    """RFC 8482: a HINFO that is not in the zone stands for all that is at the name."""
    if request.opcode() != 0 or request.question[0].rdtype != RdataType.ANY:
        return None
    reply = dns.message.make_response(request)
    reply.flags |= dns.flags.AA
    name = request.question[0].name
    reply.answer.append(dns.rrset.from_text(name, 3600, "IN", "HINFO", '"RFC8482" ""'))
    return reply


JUDGES = {
    "SOA refused": withholding(Rcode.REFUSED, RdataType.SOA),
    "SOA not implemented": withholding(Rcode.NOTIMP, RdataType.SOA),
    "ANY refused": withholding(Rcode.REFUSED, RdataType.ANY),
    "ANY not implemented": withholding(Rcode.NOTIMP, RdataType.ANY),
    "ANY as HINFO": telling_hinfo,
    "AXFR refused": withholding(Rcode.REFUSED, RdataType.AXFR, RdataType.IXFR),
    "all of them refused": withholding(
        Rcode.REFUSED, RdataType.SOA, RdataType.ANY, RdataType.AXFR, RdataType.IXFR
    ),
}


@pytest.fixture(params=JUDGES)
async def choosy(request: pytest.FixtureRequest, bind: BindPair) -> AsyncIterator[Zone]:
    judge = JUDGES[request.param]
    async with withholding_server(bind.primary, bind.tsig, judge) as endpoint:
        yield zone_at(endpoint, bind.tsig)


@pytest.fixture
def choosy_call(choosy: Zone) -> Callable[[str], Caller]:
    publisher = Publisher(Zones([choosy]), MARKERS, Exchange())
    return lambda hostname: Caller(publisher, owner_of(hostname))


async def test_record_is_published_replaced_and_withdrawn(
    choosy_call: Callable[[str], Caller], hostname: str, hand: Hand
) -> None:
    caller = choosy_call(hostname)
    assert (await caller.inspect()).kind is OutcomeKind.FREE
    kinds = [(await caller.publish(record)).kind for record in (V4, V4, V4_OTHER, V6)]
    assert kinds == [CREATED, OutcomeKind.UNCHANGED, OutcomeKind.UPDATED, OutcomeKind.UPDATED]
    assert hand.records(hostname) == {
        f"300 AAAA {V6.value}",
        f"300 {marker_of(caller.owner, V6)}",
    }
    assert (await caller.inspect()).kind is OutcomeKind.OURS
    assert (await caller.withdraw()).kind is OutcomeKind.DELETED
    assert hand.records(hostname) == set()


@pytest.mark.parametrize("record", ["A 203.0.113.7", 'TXT "theirs"', "CNAME x.example.org."])
async def test_foreign_record_is_a_conflict_and_stays(
    choosy_call: Callable[[str], Caller], hostname: str, hand: Hand, record: str
) -> None:
    hand.add(f"{hostname} 300 {record}")
    outcome = await choosy_call(hostname).publish(V4)
    assert outcome.kind is CONFLICT
    assert [f"{each.type} {each.value}" for each in outcome.found] == [record]
    assert hand.records(hostname) == {f"300 {record}"}


async def test_foreign_record_of_a_type_that_is_not_asked_for_is_a_conflict(
    choosy_call: Callable[[str], Caller], hostname: str, hand: Hand
) -> None:
    """Where ANY tells nothing it is not seen; that the name is in use refuses the update."""
    hand.add(f"{hostname} 300 MX 10 mail.example.org.")
    caller = choosy_call(hostname)
    assert (await caller.publish(V4)).kind is CONFLICT
    assert (await caller.inspect()).kind is CONFLICT
    assert (await caller.withdraw(remembered=V4)).kind is OutcomeKind.DELETED
    assert hand.records(hostname) == {"300 MX 10 mail.example.org."}


@pytest.mark.parametrize(
    "record",
    ["NS ns.elsewhere.example.org.", "DNAME elsewhere.example.org."],
)
async def test_cut_above_the_name_is_found(
    choosy_call: Callable[[str], Caller], hostname: str, hand: Hand, record: str
) -> None:
    hand.add(f"{hostname} 300 {record}")
    serial = hand.serial("example.test")
    outcome = await choosy_call(f"relay.{hostname}").publish(V4)
    assert (outcome.kind, outcome.retry_after_seconds) == (OutcomeKind.UNAVAILABLE, None)
    assert hand.serial("example.test") == serial


async def test_challenge_is_added_and_removed(choosy: Zone, hostname: str, hand: Hand) -> None:
    challenges = Challenges(Zones([choosy]), Exchange())
    target = await challenges.locate(hostname, soon())
    await challenges.publish(target, "value", soon())
    assert hand.records(target.name) == {'60 TXT "value"'}
    await challenges.remove(target, "value", soon())
    assert hand.records(target.name) == set()


async def test_zone_is_healthy(choosy: Zone, hand: Hand) -> None:
    serial = hand.serial("example.test")
    for health in await asyncio.gather(
        probe_zone(Exchange(), choosy, soon()), check_zone(Exchange(), choosy, soon())
    ):
        assert (health.ok, health.detail) == (True, health.detail)
    assert hand.serial("example.test") == serial


@pytest.mark.parametrize("types", [(RdataType.SOA,), (RdataType.SOA, RdataType.ANY)])
async def test_server_that_takes_no_updates_either_is_not_healthy(
    bind: BindPair, types: tuple[RdataType, ...]
) -> None:
    def judge(request: dns.message.Message) -> dns.message.Message | None:
        is_answered = request.opcode() == 0 and request.question[0].rdtype not in types
        return None if is_answered else refusal(request)

    async with withholding_server(bind.primary, bind.tsig, judge) as endpoint:
        health = await probe_zone(Exchange(), zone_at(endpoint, bind.tsig), soon())
    assert not health.ok
    assert "REFUSED" in health.detail
