"""Which servers have a challenge yet, with a real secondary that follows, lags or is dead."""

import asyncio
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import dns.asyncquery
import dns.message
import pytest
from dns.rcode import Rcode

from gateway.dns.challenges import Challenges, ChallengeTarget
from gateway.dns.errors import DnsFault, NoRoute, Unreachable
from gateway.dns.exchange import Exchange, Over
from gateway.dns.lookups import Lookups
from gateway.dns.propagation import (
    NAME_SERVERS_KEPT_SECONDS,
    UNRESOLVED_KEPT_SECONDS,
    Look,
    Propagation,
)
from gateway.dns.reading import Reply
from gateway.dns.rendering import Request
from gateway.dns.replies import Peer
from gateway.dns.zones import Endpoint, Zone, Zones
from tests.integration.dns.conftest import missing, soon, zone_at
from tests.integration.dns.hand import Hand
from tests.integration.dns.lagging import NAME, followed_over_a_line
from tests.integration.dns.lone_bind import lone_bind
from tests.integration.dns.servers import black_hole
from tests.lab.bind import BindPair, start_bind_pair
from tests.lab.ports import LOOPBACK, free_port
from tests.lab.process import read_until

VALUE = "challenge-value"


@pytest.fixture
def target(zone: Zone, fresh_label: str) -> ChallengeTarget:
    return ChallengeTarget(zone, f"_acme-challenge.{fresh_label}.example.test")


@pytest.fixture
def propagation() -> Propagation:
    return Propagation(Exchange(), time.monotonic)


@pytest.fixture
def own_pair(tmp_path: Path) -> Iterator[BindPair]:
    pair = start_bind_pair(tmp_path)
    yield pair
    pair.stop()


async def publish(target: ChallengeTarget, value: str = VALUE) -> None:
    await Challenges(Zones([target.zone]), Exchange()).publish(target, value, soon())


async def until_seen(propagation: Propagation, target: ChallengeTarget) -> None:
    await read_until(
        lambda: propagation.look(target, VALUE, soon()), lambda look: not missing(look), 20
    )


async def test_all_servers_of_the_ns_rrset_are_asked(
    propagation: Propagation, target: ChallengeTarget, bind: BindPair
) -> None:
    lagging = (await propagation.look(target, VALUE, soon())).lagging
    servers = (bind.primary, bind.secondary_as_ns2)
    assert set(lagging) == {f"{host}:{port}" for host, port in servers}
    await publish(target)
    await until_seen(propagation, target)


async def test_other_values_at_the_name_are_not_the_value(
    propagation: Propagation, target: ChallengeTarget
) -> None:
    await publish(target, "another-value")
    assert len((await propagation.look(target, VALUE, soon())).lagging) == 2


async def test_stopped_secondary_is_the_one_that_is_named(own_pair: BindPair) -> None:
    zone = zone_at(own_pair.primary, own_pair.tsig, port=own_pair.nameserver_port)
    target = ChallengeTarget(zone, "_acme-challenge.relay.example.test")
    propagation = Propagation(Exchange(), time.monotonic)
    own_pair.secondary_process.pause()
    await publish(target)
    silent = (await propagation.look(target, VALUE, soon())).silent
    assert silent == ("{}:{}".format(*own_pair.secondary_as_ns2),)
    own_pair.secondary_process.resume()
    await until_seen(propagation, target)


async def test_secondary_that_lags_is_told_from_a_silent_one_and_then_passed(
    tmp_path: Path,
) -> None:
    """A secondary whose line to its primary hangs: it answers as ever, with the old zone."""
    with followed_over_a_line(tmp_path) as followed:
        first, second = map(str, followed.zone.servers)
        target = ChallengeTarget(followed.zone, f"_acme-challenge.relay.{NAME}")
        propagation = Propagation(Exchange(), time.monotonic)
        followed.line.pause()
        await publish(target)
        look = await propagation.look(target, VALUE, soon())
        assert look == Look((first,), (second,), ())
        followed.line.resume()
        await until_seen(propagation, target)


async def test_secondary_whose_zone_has_expired_is_silent_until_it_is_back(
    own_pair: BindPair,
) -> None:
    """It answers SERVFAIL, which no resolver believes: there are other servers to ask."""
    primary, secondary = Endpoint(*own_pair.primary), Endpoint(*own_pair.secondary)
    zone = replace(zone_at(own_pair.primary, own_pair.tsig), servers=(primary, secondary))
    target = ChallengeTarget(zone, "_acme-challenge.relay.example.test")
    propagation = Propagation(Exchange(), time.monotonic)
    Hand.at(own_pair).add("example.test 300 SOA ns1.example.test. h.example.test. 9 1 1 2 60")
    await publish(target)
    await until_seen(propagation, target)
    own_pair.primary_process.pause()

    async def rcode() -> Rcode:
        query = dns.message.make_query(target.name, "TXT", flags=0)
        reply = await dns.asyncquery.udp(query, secondary.host, timeout=5, port=secondary.port)
        return reply.rcode()

    await read_until(rcode, lambda seen: seen == Rcode.SERVFAIL)
    look = await propagation.look(target, VALUE, soon())
    assert look.silent == (str(primary), str(secondary))
    own_pair.primary_process.resume()
    await until_seen(propagation, target)


async def test_hidden_primary_is_not_waited_for(own_pair: BindPair) -> None:
    """Only the secondary is in the NS RRset; the primary, asked for that, is not asked for more."""
    Hand.at(own_pair).update("delete example.test NS ns1.example.test.")
    zone = zone_at(own_pair.primary, own_pair.tsig, port=own_pair.nameserver_port)
    target = ChallengeTarget(zone, "_acme-challenge.relay.example.test")
    await publish(target)
    propagation = Propagation(Exchange(), time.monotonic)
    await until_seen(propagation, target)
    look = await propagation.look(target, VALUE, soon())
    assert look.seen == ("{}:{}".format(*own_pair.secondary_as_ns2),)


async def test_configured_servers_are_asked_instead_of_the_ns_rrset(
    propagation: Propagation, target: ChallengeTarget, bind: BindPair
) -> None:
    dead = Endpoint(LOOPBACK, free_port())
    servers = (Endpoint(*bind.primary), Endpoint(*bind.secondary), dead)
    configured = replace(target, zone=replace(target.zone, servers=servers))
    await publish(target)
    await until_seen(propagation, target)
    assert (await propagation.look(configured, VALUE, soon())).silent == (str(dead),)


async def test_silent_servers_cost_one_bound_together(
    propagation: Propagation, target: ChallengeTarget
) -> None:
    await publish(target)
    async with black_hole() as one, black_hole() as two, black_hole() as three:
        zone = replace(target.zone, servers=(one, two, three, target.zone.primary))
        # Less than the sum of three bounds: they are asked at once.
        async with asyncio.timeout(2.5):
            silent = (await propagation.look(replace(target, zone=zone), VALUE, soon())).silent
    assert silent == (str(one), str(two), str(three))


async def test_many_values_are_read_over_tcp(
    propagation: Propagation, target: ChallengeTarget, hand: Hand
) -> None:
    hand.add(*(f'{target.name} 60 TXT "{n:03}{"x" * 100}"' for n in range(40)))
    await publish(target)
    await until_seen(propagation, target)


async def test_recursive_answer_without_authority_does_not_count(
    propagation: Propagation, target: ChallengeTarget, tmp_path: Path
) -> None:
    """A server of another zone answers NOERROR or REFUSED, but not for this one."""
    await publish(target)
    with lone_bind(tmp_path, {"other.test": ""}) as other:
        zone = replace(target.zone, servers=(Endpoint(*other.primary),))
        silent = (await propagation.look(replace(target, zone=zone), VALUE, soon())).silent
    assert silent == ("{}:{}".format(*other.primary),)


class WithoutGlue(Exchange):
    """Servers that leave the additional section out, as they may."""

    async def ask(self, peer: Peer, request: Request, *, over: Over, deadline: float) -> Reply:
        reply = await super().ask(peer, request, over=over, deadline=deadline)
        return replace(reply, content=replace(reply.content, unread=tuple))


@pytest.mark.parametrize("exchange", [Exchange(), WithoutGlue()], ids=["glue", "no glue"])
async def test_addresses_of_servers_come_from_the_primary(
    target: ChallengeTarget, exchange: Exchange
) -> None:
    await publish(target)
    await until_seen(Propagation(exchange, time.monotonic), target)


async def test_server_named_elsewhere_is_looked_up_and_one_without_address_is_named(
    tmp_path: Path,
) -> None:
    records = "@ IN NS localhost.\n@ IN NS no-such-host.invalid."
    with lone_bind(tmp_path, {"parent.test": records}) as server:
        port = server.primary[1]
        zone = zone_at(server.primary, server.tsig, "parent.test", port)
        target = ChallengeTarget(zone, "_acme-challenge.relay.parent.test")
        await publish(target)
        propagation = Propagation(FourOnly(), time.monotonic)
        silent = (await propagation.look(target, VALUE, soon())).silent
    assert silent == (f"no-such-host.invalid:{port}",)


class FourOnly(Exchange):
    """A machine without IPv6; counts the queries for servers that are asked."""

    ns_queries = 0

    async def ask(self, peer: Peer, request: Request, *, over: Over, deadline: float) -> Reply:
        if ":" in peer.endpoint.host:
            raise NoRoute("no IPv6 here")
        self.ns_queries += request.rdtype.name == "NS"
        return await super().ask(peer, request, over=over, deadline=deadline)


async def test_address_without_route_is_passed_over_when_another_answers(
    tmp_path: Path,
) -> None:
    with lone_bind(tmp_path, {"parent.test": "ns1 IN AAAA 2001:db8::53"}) as server:
        zone = zone_at(server.primary, server.tsig, "parent.test", server.primary[1])
        target = ChallengeTarget(zone, "_acme-challenge.relay.parent.test")
        await publish(target)
        propagation = Propagation(FourOnly(), time.monotonic)
        assert missing(await propagation.look(target, VALUE, soon())) == ()


async def test_server_that_no_route_leads_to_is_missing(target: ChallengeTarget) -> None:
    server = Endpoint("2001:db8::53", 53)
    zone = replace(target.zone, servers=(server,))
    propagation = Propagation(FourOnly(), time.monotonic)
    silent = (await propagation.look(replace(target, zone=zone), VALUE, soon())).silent
    assert silent == ("[2001:db8::53]:53",)


async def test_servers_are_looked_up_again_after_a_minute(target: ChallengeTarget) -> None:
    now = 1000.0
    exchange = FourOnly()
    propagation = Propagation(exchange, lambda: now)
    for seconds, expected in ((0.0, 1), (1.0, 1), (NAME_SERVERS_KEPT_SECONDS, 2)):
        now += seconds
        await propagation.look(target, VALUE, soon())
        assert exchange.ns_queries == expected


async def test_server_without_address_is_looked_up_again_soon(tmp_path: Path) -> None:
    """A resolver that did not answer in time may do so the next time."""
    found: list[list[str]] = [[], [LOOPBACK]]
    lookups = Lookups(lambda _: found.pop(0))
    with lone_bind(tmp_path, {"parent.test": "@ IN NS elsewhere.test."}) as server:
        zone = zone_at(server.primary, server.tsig, "parent.test", server.primary[1])
        target = ChallengeTarget(zone, "_acme-challenge.relay.parent.test")
        await publish(target)
        now = 1000.0
        propagation = Propagation(Exchange(lookups=lookups), lambda: now)
        for seconds in (0.0, 1.0):
            now += seconds
            look = await propagation.look(target, VALUE, soon())
            assert look.silent == (f"elsewhere.test:{server.primary[1]}",)
        now += UNRESOLVED_KEPT_SECONDS
        assert missing(await propagation.look(target, VALUE, soon())) == ()
    assert found == []


async def test_primary_that_does_not_tell_the_servers_is_a_fault(
    propagation: Propagation, target: ChallengeTarget, bind: BindPair
) -> None:
    dead = replace(target, zone=zone_at(Endpoint(LOOPBACK, free_port()), bind.tsig))
    with pytest.raises(Unreachable):
        await propagation.look(dead, VALUE, soon())
    unknown = replace(target, zone=zone_at(bind.primary, bind.tsig, "no-zone.test"))
    with pytest.raises(DnsFault, match="names no servers"):
        await propagation.look(unknown, VALUE, soon())
