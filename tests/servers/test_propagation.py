"""A challenge on its way to a secondary (BIND) of each kind of server, and to the CA's resolver."""

import time
from dataclasses import replace

import dns.flags
import dns.message
import dns.query
import pytest

from gateway.dns.challenges import Challenges, ChallengeTarget
from gateway.dns.exchange import Exchange
from gateway.dns.propagation import Propagation
from gateway.dns.zones import Endpoint, Zone, Zones
from tests.integration.dns.conftest import missing, soon
from tests.lab.process import read_until
from tests.servers.conftest import AnyServer, Tells

VALUE = "challenge-value"
LIMIT_SECONDS = 5.0


@pytest.fixture
def both(zone: Zone, server: AnyServer) -> Zone:
    """The zone with its secondary configured as a server to wait for."""
    return replace(zone, servers=(Endpoint(*server.primary), Endpoint(*server.secondary)))


@pytest.fixture
def propagation() -> Propagation:
    return Propagation(Exchange(), time.monotonic)


@pytest.fixture
def target(both: Zone, hostname: str) -> ChallengeTarget:
    return ChallengeTarget(both, f"_acme-challenge.{hostname}")


async def test_challenge_reaches_the_secondary(
    propagation: Propagation, target: ChallengeTarget, tells: Tells
) -> None:
    challenges = Challenges(Zones([target.zone]), Exchange())
    look = await propagation.look(target, VALUE, soon())
    assert len(look.lagging) == 2
    await challenges.publish(target, VALUE, soon())
    await read_until(
        lambda: propagation.look(target, VALUE, soon()), lambda look: not missing(look), 20
    )
    tells("a challenge on its way to a secondary", "there by NOTIFY")


async def test_name_servers_of_the_zone_are_found(
    propagation: Propagation, zone: Zone, hostname: str, tells: Tells
) -> None:
    target = ChallengeTarget(zone, f"_acme-challenge.{hostname}")
    look = await propagation.look(target, VALUE, soon())
    assert f"{zone.primary}" in look.lagging
    tells("the zone's NS RRset and its addresses", "found")


async def test_many_values_are_read_over_tcp(
    propagation: Propagation, target: ChallengeTarget, server: AnyServer, tells: Tells
) -> None:
    challenges = Challenges(Zones([target.zone]), Exchange())
    for n in range(12):
        await challenges.publish(target, f"{n:03}{'x' * 200}", soon())
    query = dns.message.make_query(target.name, "TXT", flags=0, use_edns=0, payload=1232)
    host, port = server.primary
    reply = dns.query.udp(query, host, port=port, timeout=LIMIT_SECONDS)
    last = f"011{'x' * 200}"
    await read_until(
        lambda: propagation.look(target, last, soon()), lambda look: not missing(look), 20
    )
    words = "truncated" if reply.flags & dns.flags.TC else "whole"
    tells("twelve values of 203 characters over UDP", f"{words}; seen by TCP")


async def test_challenge_removed_is_gone_from_the_answers(
    propagation: Propagation, target: ChallengeTarget, tells: Tells
) -> None:
    """What the gateway reads must not come out of a cache of the server's."""
    challenges = Challenges(Zones([target.zone]), Exchange())
    primary_only = replace(target, zone=replace(target.zone, servers=(target.zone.primary,)))
    answers = []
    for _ in range(3):
        await challenges.publish(target, VALUE, soon())
        answers.append(not missing(await propagation.look(primary_only, VALUE, soon())))
        await challenges.remove(target, VALUE, soon())
        answers.append(bool((await propagation.look(primary_only, VALUE, soon())).lagging))
    tells("a value added and removed three times", "seen at once" if all(answers) else "cached")
