"""Name servers and primaries at IPv6 addresses: a real BIND at ::1 and 127.0.0.1.

On a machine without IPv6 there is no ::1 to listen at. The same tests then state what the gateway
makes of that: such an address can't be reached from here, and another address of the server's will
do.
"""

import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from gateway.dns.challenges import Challenges, ChallengeTarget
from gateway.dns.exchange import Exchange
from gateway.dns.health import check_zone, silent_servers
from gateway.dns.outcome import OutcomeKind
from gateway.dns.propagation import Look, Propagation
from gateway.dns.zones import Endpoint, Zone, Zones
from tests.integration.dns.conftest import (
    V6,
    caller_at,
    missing,
    soon,
    zone_at,
)
from tests.integration.dns.lone_bind import LoneBind, lone_bind
from tests.lab.ports import LOOPBACK_V6, has_ipv6

HAS_IPV6 = has_ipv6()
VALUE = "challenge-value"

# The zones differ in their name servers; all have ns1 at 127.0.0.1 as well.
ZONES = {
    "both.test": "ns1 IN AAAA ::1",
    "six.test": "@ IN NS ns2\nns2 IN AAAA ::1",
    "dead-six.test": "ns1 IN AAAA ::ffff:127.0.0.9",
    "dead-four.test": "@ IN NS ns2\nns2 IN A 127.0.0.9\nns2 IN AAAA ::1",
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LoneBind]:
    folder = tmp_path_factory.mktemp("both-addresses")
    with lone_bind(folder, ZONES, with_ipv6=HAS_IPV6) as server:
        yield server


def zone_of(server: LoneBind, name: str) -> Zone:
    return zone_at(server.primary, server.tsig, name, port=server.primary[1])


async def look_after_publishing(zone: Zone) -> Look:
    target = ChallengeTarget(zone, f"_acme-challenge.relay.{zone.name}")
    exchange = Exchange()
    await Challenges(Zones([zone]), exchange).publish(target, VALUE, soon())
    return await Propagation(exchange, time.monotonic).look(target, VALUE, soon())


def four(server: LoneBind, host: str = "127.0.0.1") -> str:
    return f"{host}:{server.primary[1]}"


def six(server: LoneBind) -> str:
    return f"[{LOOPBACK_V6}]:{server.primary[1]}"


async def test_server_with_addresses_of_both_kinds_is_asked_at_both(server: LoneBind) -> None:
    look = await look_after_publishing(zone_of(server, "both.test"))
    assert missing(look) == ()
    assert look.seen == ((four(server), six(server)) if HAS_IPV6 else (four(server),))


async def test_server_with_an_ipv6_address_only_is_asked_there(server: LoneBind) -> None:
    look = await look_after_publishing(zone_of(server, "six.test"))
    if HAS_IPV6:
        assert (look.seen, missing(look)) == ((four(server), six(server)), ())
    else:
        label = f"ns2.six.test:{server.primary[1]}"
        assert (look.seen, look.silent) == ((four(server),), (label,))


async def test_dead_address_of_a_server_is_named_beside_the_living_one(server: LoneBind) -> None:
    look = await look_after_publishing(zone_of(server, "dead-four.test"))
    assert look.silent == (four(server, "127.0.0.9"),)
    assert look.seen == ((four(server), six(server)) if HAS_IPV6 else (four(server),))


async def test_address_that_no_packet_may_go_to_is_silence(server: LoneBind) -> None:
    """An IPv4 address in IPv6's clothes: nobody listens there, or this machine can't send it."""
    look = await look_after_publishing(zone_of(server, "dead-six.test"))
    assert look.seen == (four(server),)
    assert look.lagging == ()


async def test_primary_at_an_ipv6_address_takes_updates(server: LoneBind) -> None:
    zone = replace(zone_of(server, "both.test"), primary=Endpoint(LOOPBACK_V6, server.primary[1]))
    caller = caller_at("relay.both.test", zone)
    outcome = await caller.publish(V6)
    if HAS_IPV6:
        assert (outcome.kind, outcome.record) == (OutcomeKind.CREATED, V6)
        assert (await check_zone(Exchange(), zone, soon())).ok
        assert (await caller.withdraw()).kind is OutcomeKind.DELETED
    else:
        assert outcome.kind is OutcomeKind.UNAVAILABLE
        assert f"{zone.primary}" in outcome.detail
        assert "can't be reached from this machine" in outcome.detail


async def test_check_names_the_dead_address_of_a_server_too(server: LoneBind) -> None:
    """What would hold up an issuance, and no less."""
    dead = four(server, "127.0.0.9") if HAS_IPV6 else f"ns2.dead-four.test:{server.primary[1]}"
    zone = zone_of(server, "dead-four.test")
    assert (await silent_servers(Exchange(), zone, soon())).at == (dead,)
