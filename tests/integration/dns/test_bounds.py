"""No call outlives its deadline, whatever the server does with its time."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace

import pytest

from gateway.dns.challenges import Challenges, ChallengeTarget
from gateway.dns.errors import DnsFault
from gateway.dns.exchange import Exchange
from gateway.dns.health import check_zone, refused_types, silent_servers
from gateway.dns.nameservers import name_servers
from gateway.dns.outcome import OutcomeKind
from gateway.dns.propagation import Propagation
from gateway.dns.publisher import Publisher
from gateway.dns.zones import Endpoint, Zone, Zones
from tests.integration.dns.conftest import MARKERS, V4, owner_of
from tests.integration.dns.servers import black_hole, full_backlog, tcp_server, udp_server
from tests.lab.bind import BindPair
from tests.lab.ports import LOOPBACK, free_port

BOUND_SECONDS = 0.5
SLACK_SECONDS = 2.0
"""For a machine with other things to do; every limit of an exchange is longer than both."""

Call = Callable[[Zone, float], Awaitable[object]]


@asynccontextmanager
async def dripping() -> AsyncIterator[Endpoint]:
    """Over TCP a byte of an answer comes now and then; over UDP, something else than an answer."""

    async def drip(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"\x10\x00")
        while True:
            writer.write(b"\x00")
            await writer.drain()
            await asyncio.sleep(0.05)

    async def chatter(_wire: bytes, answer: Callable[[bytes], None]) -> None:
        for _ in range(100):
            answer(b"no answer")
            await asyncio.sleep(0.05)

    endpoint = Endpoint(LOOPBACK, free_port())
    async with udp_server(chatter, endpoint.port), tcp_server(drip, endpoint.port):
        yield endpoint


@asynccontextmanager
async def taking_no_connection() -> AsyncIterator[Endpoint]:
    """Over TCP nothing is said to whoever wants to connect; over UDP nothing either."""

    async def swallow(_wire: bytes, _answer: Callable[[bytes], None]) -> None:
        return None

    async with udp_server(swallow) as endpoint:
        with full_backlog(endpoint.port):
            yield endpoint


SERVERS: dict[str, Callable[[], AbstractAsyncContextManager[Endpoint]]] = {
    "black hole": black_hole,
    "no connection": taking_no_connection,
    "drop by drop": dripping,
}


def publisher_of(zone: Zone) -> Publisher:
    return Publisher(Zones([zone]), MARKERS, Exchange())


def challenges_of(zone: Zone) -> Challenges:
    return Challenges(Zones([zone]), Exchange())


def hostname_in(zone: Zone) -> str:
    return f"relay.{zone.name}"


def target_in(zone: Zone) -> ChallengeTarget:
    return ChallengeTarget(zone, f"_acme-challenge.{hostname_in(zone)}")


async def publish(zone: Zone, deadline: float) -> None:
    outcome = await publisher_of(zone).publish(
        owner_of(hostname_in(zone)), V4, held=False, remembered=None, deadline=deadline
    )
    assert outcome.kind is OutcomeKind.UNAVAILABLE


async def withdraw(zone: Zone, deadline: float) -> None:
    outcome = await publisher_of(zone).withdraw(
        owner_of(hostname_in(zone)), remembered=None, deadline=deadline
    )
    assert outcome.kind is OutcomeKind.UNAVAILABLE


async def inspect(zone: Zone, deadline: float) -> None:
    outcome = await publisher_of(zone).inspect(owner_of(hostname_in(zone)), deadline=deadline)
    assert outcome.kind is OutcomeKind.UNAVAILABLE


async def look(zone: Zone, deadline: float) -> None:
    propagation = Propagation(Exchange(), time.monotonic)
    seen = await propagation.look(
        target_in(replace(zone, servers=(zone.primary, *zone.standbys))), "value", deadline
    )
    assert not seen.seen


CALLS: dict[str, Call] = {
    "publish": publish,
    "withdraw": withdraw,
    "inspect": inspect,
    "look": look,
    "locate": lambda zone, deadline: challenges_of(zone).locate(hostname_in(zone), deadline),
    "publish challenge": lambda zone, deadline: challenges_of(zone).publish(
        target_in(zone), "value", deadline
    ),
    "remove challenge": lambda zone, deadline: challenges_of(zone).remove(
        target_in(zone), "value", deadline
    ),
    "name servers": lambda zone, deadline: name_servers(Exchange(), zone, deadline),
    "check": lambda zone, deadline: check_zone(Exchange(), zone, deadline),
    "refused types": lambda zone, deadline: refused_types(Exchange(), zone, deadline),
    "silent servers": lambda zone, deadline: silent_servers(Exchange(), zone, deadline),
}


@pytest.mark.parametrize("serving", SERVERS.values(), ids=SERVERS)
@pytest.mark.parametrize("standbys", [0, 1], ids=["one primary", "two primaries"])
async def test_every_call_ends_with_its_deadline(
    bind: BindPair,
    zone: Zone,
    serving: Callable[[], AbstractAsyncContextManager[Endpoint]],
    standbys: int,
) -> None:
    """All of them at once, which none is longer for."""
    async with serving() as first, serving() as second:
        dead = replace(zone, primary=first, standbys=(second,) * standbys)
        deadline = asyncio.get_running_loop().time() + BOUND_SECONDS
        async with asyncio.timeout_at(deadline + SLACK_SECONDS):
            ended = await asyncio.gather(
                *(call(dead, deadline) for call in CALLS.values()), return_exceptions=True
            )
    broken = [each for each in ended if isinstance(each, BaseException)]
    assert [each for each in broken if not isinstance(each, DnsFault)] == []
