"""A marker beside foreign TXT values never changes their TTL, whatever happens meanwhile."""

from dataclasses import replace

import pytest
from dns.rcode import Rcode
from dns.rdatatype import RdataType

from gateway.contract import DnsRecord
from gateway.dns.exchange import Exchange, Over
from gateway.dns.outcome import OutcomeKind
from gateway.dns.pinning import PINS
from gateway.dns.reading import At, Reply
from gateway.dns.records import Rdata, RRset
from gateway.dns.rendering import Request
from gateway.dns.replies import Peer
from gateway.dns.update import Update
from gateway.dns.zones import Zone
from tests.integration.dns.conftest import V4, V6, Caller, marker_of
from tests.integration.dns.hand import Hand
from tests.integration.dns.servers import Meddling

SPF = 'TXT "v=spf1 -all"'


async def beside_spf(caller: Caller, hand: Hand) -> None:
    await caller.publish(V4)
    hand.add(f"{caller.hostname} 900 {SPF}")


def expected(caller: Caller, record: DnsRecord, ttl: int) -> set[str]:
    address = f"{record.ttl} {record.type} {record.value}"
    return {address, f"{ttl} {marker_of(caller.owner, record)}", f"{ttl} {SPF}"}


async def test_ttl_that_was_changed_after_reading_stays_so(
    caller: Caller, hand: Hand, zone: Zone
) -> None:
    await beside_spf(caller, hand)

    def meddle(n: int) -> None:
        if n == 1:
            hand.add(f"{caller.hostname} 60 {SPF}")

    racing = Meddling(meddle)
    assert (await caller.through(zone, racing).publish(V6)).kind is OutcomeKind.UPDATED
    assert racing.updates == 2
    assert hand.records(caller.hostname) == expected(caller, V6, 60)


async def test_zone_that_changes_elsewhere_all_the_time_is_tried_more_often(
    caller: Caller, hand: Hand, zone: Zone
) -> None:
    await beside_spf(caller, hand)

    def meddle(n: int) -> None:
        if n < 10:
            hand.add(f'beside.{caller.hostname} 300 TXT "{n}"')

    racing = Meddling(meddle)
    assert (await caller.through(zone, racing).publish(V6)).kind is OutcomeKind.UPDATED
    assert racing.updates == 10
    assert hand.records(caller.hostname) == expected(caller, V6, 900)


async def test_zone_that_never_rests_is_written_to_without_a_pin_in_the_end(
    caller: Caller, hand: Hand, zone: Zone
) -> None:
    await beside_spf(caller, hand)
    racing = Meddling(lambda n: hand.add(f'beside.{caller.hostname} 300 TXT "{n}"'))
    assert (await caller.through(zone, racing).publish(V6)).kind is OutcomeKind.UPDATED
    assert racing.updates == PINS + 1
    assert hand.records(caller.hostname) == expected(caller, V6, 900)


async def test_first_record_of_a_held_name_is_joined_in_a_zone_that_never_rests(
    caller: Caller, hand: Hand, zone: Zone
) -> None:
    """A pin that is refused leaves it certain that the name is in use."""
    hand.add(f"{caller.hostname} 900 {SPF}")
    racing = Meddling(lambda n: hand.add(f'beside.{caller.hostname} 300 TXT "{n}"'))
    outcome = await caller.through(zone, racing).publish(V6, held=True)
    assert outcome.kind is OutcomeKind.CREATED
    assert hand.records(caller.hostname) == expected(caller, V6, 900)


@pytest.mark.parametrize("pins_before", [0, 1])
async def test_server_that_refuses_whatever_it_is_sent_is_given_up_soon(
    caller: Caller, hand: Hand, zone: Zone, pins_before: int
) -> None:
    await beside_spf(caller, hand)
    refusing = RefusingUpdates(pins_before)
    outcome = await caller.through(zone, refusing).publish(V6)
    assert (outcome.kind, outcome.unknown) == (OutcomeKind.FAILED, False)
    assert refusing.messages < 30


def changed(reply: Reply, **parts: object) -> Reply:
    return replace(reply, content=replace(reply.content, **parts))  # type: ignore[arg-type]


def with_serial(reply: Reply, serial: int) -> tuple[At, ...]:
    """The answer of a SOA query, with another serial."""
    ((name, rrset),) = reply.answer
    other = rrset.rdatas[0].by_dnspython().replace(serial=serial)
    return (At(name, RRset.of(rrset.rdtype, rrset.ttl, [Rdata.of(other)])),)


class RefusingUpdates(Exchange):
    """Answers NXRRSET to updates though all is as it was: a fake, since no real server does.

    `after` of them, something in the zone has really changed.
    """

    def __init__(self, after: int) -> None:
        super().__init__()
        self._real = after
        self.messages = 0

    async def ask(self, peer: Peer, request: Request, *, over: Over, deadline: float) -> Reply:
        self.messages += 1
        if isinstance(request, Update):
            request = request.without_changes()
        reply = await super().ask(peer, request, over=over, deadline=deadline)
        if isinstance(request, Update):
            return changed(reply, rcode=Rcode.NXRRSET)
        if request.rdtype == RdataType.SOA and self._real:
            self._real -= 1
            return changed(reply, answer=with_serial(reply, 7))
        return reply


class AskingSoa(Exchange):
    """Changes answers to SOA queries: a fake, for what other servers than BIND do."""

    def __init__(self, *, rcode: Rcode = Rcode.NOERROR, serial: int | None = None) -> None:
        super().__init__()
        self._rcode = rcode
        self._serial = serial

    async def ask(self, peer: Peer, request: Request, *, over: Over, deadline: float) -> Reply:
        reply = await super().ask(peer, request, over=over, deadline=deadline)
        if request.rdtype == RdataType.SOA and not isinstance(request, Update):
            reply = changed(reply, rcode=self._rcode)
            if self._serial is not None:
                reply = changed(reply, answer=with_serial(reply, self._serial))
        return reply


async def test_server_that_tells_no_soa_is_written_to_all_the_same(
    caller: Caller, hand: Hand, zone: Zone
) -> None:
    await beside_spf(caller, hand)
    silent = caller.through(zone, AskingSoa(rcode=Rcode.REFUSED))
    assert (await silent.publish(V6)).kind is OutcomeKind.UPDATED
    assert hand.records(caller.hostname) == expected(caller, V6, 900)


async def test_server_with_one_soa_to_show_and_another_to_judge_by_is_written_to_all_the_same(
    caller: Caller, hand: Hand, zone: Zone
) -> None:
    await beside_spf(caller, hand)
    signing = caller.through(zone, AskingSoa(serial=7))
    assert (await signing.publish(V6)).kind is OutcomeKind.UPDATED
    assert hand.records(caller.hostname) == expected(caller, V6, 900)
