"""Faults between the gateway and a server that is well: every answer is true all the same.

Each line stands before the real BIND, loses or spoils something, and the whole way of a record and
of a challenge passes it. What the calls answer is compared with what the zone holds.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import TypeVar

import pytest
from dns.rcode import Rcode

from gateway.dns.challenges import Challenges, ChallengeTarget
from gateway.dns.exchange import Exchange, Limits
from gateway.dns.outcome import OutcomeKind
from gateway.dns.zones import Endpoint, Zones
from tests.integration.dns.conftest import V4, V4_OTHER, Caller, marker_of, soon, zone_at
from tests.integration.dns.hand import Hand
from tests.integration.dns.lines import (
    changing,
    cut_short,
    diverting,
    line,
    losing,
    spoilt,
    swallowing,
    unsigned,
)
from tests.lab.bind import BindPair

# TCP has the time that it is used to: on a machine with much to do, BIND may take its own.
IMPATIENT = Limits(udp_seconds=0.2)
VALUE = "challenge-value"

Lined = Callable[[tuple[str, int]], AbstractAsyncContextManager[Endpoint]]
_T = TypeVar("_T")

LINES: dict[str, Lined] = {
    "udp refused": lambda server: line(server, udp=None),
    "tcp refused": lambda server: line(server, tcp=None),
    "udp lost on the way there": lambda server: line(server, udp=swallowing),
    "udp lost on the way back": lambda server: line(server, udp=losing),
    "reply from another port": diverting,
    "reply cut short": lambda server: line(server, udp=changing(cut_short)),
    "reply cut to its header": lambda server: line(
        server, udp=changing(lambda reply: cut_short(reply)[:12])
    ),
    "signature spoilt over udp": lambda server: line(server, udp=changing(spoilt)),
    "signature spoilt over udp and tcp": lambda server: line(
        server, udp=changing(spoilt), tcp=changing(spoilt)
    ),
    "applied, and REFUSED said without a signature": lambda server: line(
        server, udp=changing(unsigned(Rcode.REFUSED)), tcp=changing(unsigned(Rcode.REFUSED))
    ),
    "applied, and NOERROR said without a signature": lambda server: line(
        server, udp=changing(unsigned(Rcode.NOERROR))
    ),
}


async def bounded(call: Callable[[float], Awaitable[_T]]) -> _T:
    """The call's answer, which is there before its deadline."""
    deadline = soon()
    answer = await call(deadline)
    assert asyncio.get_running_loop().time() < deadline
    return answer


@pytest.mark.parametrize("lined", LINES.values(), ids=LINES)
async def test_record_is_published_replaced_and_withdrawn_over_a_bad_line(
    bind: BindPair, caller: Caller, hand: Hand, lined: Lined
) -> None:
    async with lined(bind.primary) as endpoint:
        far = caller.through(zone_at(endpoint, bind.tsig), Exchange(IMPATIENT))
        for record, kind in ((V4, OutcomeKind.CREATED), (V4_OTHER, OutcomeKind.UPDATED)):
            outcome = await far.publish(record)
            assert (outcome.kind, outcome.record) == (kind, record)
            marker = marker_of(caller.owner, record)
            assert hand.records(caller.hostname) == {
                f"{record.ttl} A {record.value}",
                f"{record.ttl} {marker}",
            }
        inspected = await bounded(
            lambda deadline: far.publisher.inspect(caller.owner, deadline=deadline)
        )
        assert inspected.kind is OutcomeKind.OURS
        assert (await far.withdraw()).kind is OutcomeKind.DELETED
    assert hand.records(caller.hostname) == set()


@pytest.mark.parametrize("lined", LINES.values(), ids=LINES)
async def test_challenge_is_published_and_removed_over_a_bad_line(
    bind: BindPair, hostname: str, hand: Hand, lined: Lined
) -> None:
    name = f"_acme-challenge.{hostname}"
    hand.add(f'{name} 60 TXT "of-another"')
    async with lined(bind.primary) as endpoint:
        zone = zone_at(endpoint, bind.tsig)
        challenges = Challenges(Zones([zone]), Exchange(IMPATIENT))
        target = await bounded(lambda deadline: challenges.locate(hostname, deadline))
        assert target == ChallengeTarget(zone, name)
        await bounded(lambda deadline: challenges.publish(target, VALUE, deadline))
        assert hand.records(name) == {'60 TXT "of-another"', f'60 TXT "{VALUE}"'}
        await bounded(lambda deadline: challenges.remove(target, VALUE, deadline))
    assert hand.records(name) == {'60 TXT "of-another"'}
