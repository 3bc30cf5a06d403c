"""A zone with several primaries: two ways to one real BIND, of which one fails.

No package of Debian's makes two BINDs write to one zone, so the primaries are relays in front of
one; that each of them answers for the same data at any time is what the gateway requires of real
ones. What fails, fails between the gateway and the real server.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import dns.message
import dns.opcode
import pytest
from structlog.testing import capture_logs

from gateway.dns.challenges import Challenges
from gateway.dns.errors import Unreachable
from gateway.dns.exchange import Exchange, Limits, Over
from gateway.dns.health import probe_zone
from gateway.dns.nameservers import name_servers
from gateway.dns.outcome import OutcomeKind
from gateway.dns.questions import make_query
from gateway.dns.reading import Reply
from gateway.dns.records import TXT
from gateway.dns.rendering import Request
from gateway.dns.replies import Peer
from gateway.dns.zones import Endpoint, Zone, Zones
from tests.integration.dns.conftest import V4, V4_OTHER, Caller, soon
from tests.integration.dns.hand import Hand
from tests.integration.dns.lone_bind import lone_bind
from tests.integration.dns.servers import (
    black_hole,
    lossy_line,
    opcode_of,
    udp_exchange,
    udp_server,
)
from tests.lab.bind import BindPair
from tests.lab.ports import LOOPBACK, free_port

IMPATIENT = Limits(resolve_seconds=0.3, udp_seconds=0.3, connect_seconds=0.3, tcp_seconds=0.3)


class Recording(Exchange):
    """Writes down which server was asked; `updates` are the ids of its updates, by where."""

    def __init__(self) -> None:
        super().__init__(IMPATIENT)
        self.asked: list[Endpoint] = []
        self.updates: list[tuple[Endpoint, int]] = []

    async def ask(self, peer: Peer, request: Request, *, over: Over, deadline: float) -> Reply:
        self.asked.append(peer.endpoint)
        try:
            return await super().ask(peer, request, over=over, deadline=deadline)
        finally:
            if request.is_update:
                self.updates.append((peer.endpoint, request.id))


def behind(zone: Zone, *primaries: Endpoint) -> Zone:
    """The zone with other primaries, the preferred one first."""
    return replace(zone, primary=primaries[0], standbys=primaries[1:])


def nobody() -> Endpoint:
    return Endpoint(LOOPBACK, free_port())


@asynccontextmanager
async def dying_at_the_update(bind: BindPair, *, takes_it: bool) -> AsyncIterator[Endpoint]:
    """A way to the server over UDP that ends with the first update, passed on or not."""
    is_dead = False

    async def serve(wire: bytes, answer: Callable[[bytes], None]) -> None:
        nonlocal is_dead
        is_update = opcode_of(wire) == dns.opcode.UPDATE
        if is_dead or (is_update and not takes_it):
            is_dead = True
            return
        reply = await udp_exchange(bind.primary, wire)
        is_dead = is_update
        if not is_update:
            answer(reply)

    async with udp_server(serve) as endpoint:
        yield endpoint


async def test_standby_is_asked_when_nobody_listens_at_the_first(
    zone: Zone, caller: Caller, hand: Hand
) -> None:
    far = caller.through(behind(zone, nobody(), zone.primary))
    assert (await far.publish(V4)).kind is OutcomeKind.CREATED
    assert f"300 A {V4.value}" in hand.records(caller.hostname)
    assert (await far.publish(V4_OTHER)).kind is OutcomeKind.UPDATED
    assert (await far.withdraw()).kind is OutcomeKind.DELETED
    assert hand.records(caller.hostname) == set()


async def test_standby_is_asked_when_the_first_is_a_black_hole_and_first_from_then_on(
    zone: Zone, caller: Caller
) -> None:
    exchange = Recording()
    async with black_hole() as dead:
        far = caller.through(behind(zone, dead, zone.primary), exchange)
        assert (await far.publish(V4)).kind is OutcomeKind.CREATED
        assert dead in exchange.asked
        exchange.asked.clear()
        assert (await far.publish(V4)).kind is OutcomeKind.UNCHANGED
    assert set(exchange.asked) == {zone.primary}


async def test_log_tells_once_of_a_dead_first_whatever_is_asked(zone: Zone, caller: Caller) -> None:
    first = nobody()
    far = caller.through(behind(zone, first, zone.primary), Exchange())
    with capture_logs() as lines:
        for record in (V4, V4, V4_OTHER):
            await far.publish(record)
        await far.withdraw()
    told = [line for line in lines if line["log_level"] != "debug"]
    assert [(line["event"], line["server"]) for line in told] == [("dns server silent", str(first))]


async def test_server_that_answers_again_is_silent_no_more(bind: BindPair, zone: Zone) -> None:
    exchange, port = Exchange(IMPATIENT), free_port()
    endpoint = Endpoint(LOOPBACK, port)
    peer = Peer(endpoint, zone.name)

    def ask() -> Awaitable[Reply]:
        query = make_query(zone.apex, TXT)
        return exchange.ask(peer, query, over=Over.UDP, deadline=soon())

    async def serve(wire: bytes, answer: Callable[[bytes], None]) -> None:
        answer(await udp_exchange(bind.primary, wire))

    with pytest.raises(Unreachable):
        await ask()
    assert exchange.is_silent(endpoint)
    async with udp_server(serve, port):
        await ask()
    assert not exchange.is_silent(endpoint)


async def test_server_that_a_call_left_no_time_is_not_called_silent(zone: Zone) -> None:
    exchange, query = Exchange(), make_query(zone.apex, TXT)
    past = asyncio.get_running_loop().time()
    with pytest.raises(Unreachable):
        await exchange.ask(Peer.primary_of(zone), query, over=Over.TCP, deadline=past)
    assert not exchange.is_silent(zone.primary)


async def test_standby_is_asked_first_after_a_call_whose_whole_time_the_first_took(
    zone: Zone, caller: Caller
) -> None:
    exchange = Exchange()
    async with black_hole() as dead:
        publisher = caller.through(behind(zone, dead, zone.primary), exchange).publisher
        short = asyncio.get_running_loop().time() + 1.2
        assert await publisher.records_at(caller.hostname, short) == ()
        assert exchange.is_silent(dead)
        assert (await caller.publish(V4)).kind is OutcomeKind.CREATED
        short = asyncio.get_running_loop().time() + 1.2
        assert len(await publisher.records_at(caller.hostname, short)) == 2


async def test_first_that_dies_before_it_takes_the_update_leaves_one_record(
    bind: BindPair, zone: Zone, caller: Caller, hand: Hand
) -> None:
    exchange = Recording()
    async with dying_at_the_update(bind, takes_it=False) as first:
        far = caller.through(behind(zone, first, zone.primary), exchange)
        assert (await far.publish(V4)).kind is OutcomeKind.CREATED
    assert f"300 A {V4.value}" in hand.records(caller.hostname)
    endpoints, ids = zip(*exchange.updates, strict=True)
    assert set(endpoints) == {first, zone.primary}
    assert len(set(ids)) == len(exchange.updates)


async def test_first_that_dies_with_the_update_taken_has_created_it(
    bind: BindPair, zone: Zone, caller: Caller, hand: Hand
) -> None:
    before = hand.serial("example.test")
    async with dying_at_the_update(bind, takes_it=True) as first:
        far = caller.through(behind(zone, first, zone.primary), Exchange(IMPATIENT))
        assert (await far.publish(V4)).kind is OutcomeKind.CREATED
    assert hand.serial("example.test") == before + 1


async def test_lost_reply_is_settled_at_the_server_that_still_answers(
    bind: BindPair, zone: Zone, caller: Caller
) -> None:
    async with lossy_line(bind.primary, lambda _n, _reply: None, with_tcp=True) as first:
        far = caller.through(behind(zone, first, nobody()), Exchange(IMPATIENT))
        assert (await far.publish(V4)).kind is OutcomeKind.CREATED


async def test_standby_is_asked_when_the_first_does_not_know_the_key(
    zone: Zone, caller: Caller, tmp_path: Path
) -> None:
    with lone_bind(tmp_path, {"example.test": ""}) as other:
        far = caller.through(behind(zone, Endpoint(*other.primary), zone.primary))
        assert (await far.publish(V4)).kind is OutcomeKind.CREATED


async def test_standby_is_asked_when_the_first_takes_no_updates(
    bind: BindPair, zone: Zone, caller: Caller
) -> None:
    far = caller.through(behind(zone, Endpoint(*bind.secondary), zone.primary))
    assert (await far.publish(V4)).kind is OutcomeKind.CREATED


async def test_conflict_at_the_first_is_no_reason_to_ask_the_standby(
    zone: Zone, caller: Caller, hand: Hand
) -> None:
    hand.add(f"{caller.hostname} 300 A 192.0.2.9")
    exchange, standby = Recording(), nobody()
    outcome = await caller.through(behind(zone, zone.primary, standby), exchange).publish(V4)
    assert outcome.kind is OutcomeKind.CONFLICT
    assert standby not in exchange.asked


async def test_all_dead_tells_of_each(zone: Zone, caller: Caller) -> None:
    first, second = nobody(), nobody()
    outcome = await caller.through(behind(zone, first, second)).publish(V4)
    assert outcome.kind is OutcomeKind.UNAVAILABLE
    assert outcome.retry_after_seconds is not None
    assert str(first) in outcome.detail
    assert str(second) in outcome.detail


async def test_challenge_is_located_published_and_removed_at_the_standby(
    zone: Zone, net_zone: Zone, hostname: str, hand: Hand
) -> None:
    zones = Zones([behind(each, nobody(), each.primary) for each in (zone, net_zone)])
    hand.add(f"_acme-challenge.{hostname} 60 CNAME {hostname}.example.net.test.")
    challenges = Challenges(zones, Exchange())
    target = await challenges.locate(hostname, soon())
    assert target.name == f"{hostname}.example.net.test"
    await challenges.publish(target, "value", soon())
    assert hand.records(target.name) == {'60 TXT "value"'}
    await challenges.remove(target, "value", soon())
    assert hand.records(target.name) == set()


async def test_name_servers_come_from_the_standby(zone: Zone) -> None:
    found = await name_servers(Exchange(), behind(zone, nobody(), zone.primary), soon())
    assert len(found) == 2


async def test_zone_is_healthy_as_long_as_one_primary_is(zone: Zone) -> None:
    good = await probe_zone(Exchange(), behind(zone, nobody(), zone.primary), soon())
    assert good.ok
    assert str(zone.primary) in good.detail
    first, second = nobody(), nobody()
    bad = await probe_zone(Exchange(), behind(zone, first, second), soon())
    assert not bad.ok
    assert str(first) in bad.detail
    assert str(second) in bad.detail


async def test_many_calls_at_once_through_a_dead_first_all_end_well(
    zone: Zone, call: Callable[[str], Caller], fresh_label: str
) -> None:
    exchange = Exchange(IMPATIENT)
    async with black_hole() as dead:
        broken = behind(zone, dead, zone.primary)
        callers = [call(f"n{n}.{fresh_label}.example.test") for n in range(20)]
        outcomes = await asyncio.gather(
            *(each.through(broken, exchange).publish(V4) for each in callers)
        )
    assert {outcome.kind for outcome in outcomes} == {OutcomeKind.CREATED}


async def test_first_that_answers_queries_and_fails_updates_is_passed_by(
    bind: BindPair, zone: Zone, caller: Caller, hand: Hand
) -> None:
    async def serve(wire: bytes, answer: Callable[[bytes], None]) -> None:
        if opcode_of(wire) != dns.opcode.UPDATE:
            answer(await udp_exchange(bind.primary, wire))

    async with udp_server(serve) as first:
        far = caller.through(behind(zone, first, zone.primary), Exchange(IMPATIENT))
        assert (await far.publish(V4)).kind is OutcomeKind.CREATED
        assert (await far.publish(V4_OTHER)).kind is OutcomeKind.UPDATED
        assert (await far.withdraw()).kind is OutcomeKind.DELETED
    assert hand.records(caller.hostname) == set()
