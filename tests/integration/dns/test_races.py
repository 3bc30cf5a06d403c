"""Somebody changes the zone between the gateway's reading and writing: real nsupdate, real BIND.

`tests/servers` has what every kind of server is asked.
"""

from dns.rcode import Rcode

from gateway.dns.exchange import Exchange, Over
from gateway.dns.outcome import OutcomeKind
from gateway.dns.reading import Reply
from gateway.dns.rendering import Request
from gateway.dns.replies import Peer
from gateway.dns.zones import Zone
from tests.integration.dns.conftest import (
    V4,
    V6,
    Caller,
)
from tests.integration.dns.hand import Hand
from tests.integration.dns.servers import Meddling

FOREIGN = "300 A 203.0.113.7"


def first_only(hand: Hand, *lines: str) -> Meddling:
    def meddle(n: int) -> None:
        if n == 1:
            hand.update(*lines)

    return Meddling(meddle)


async def test_name_freed_after_the_refused_try_is_created(
    caller: Caller, hand: Hand, zone: Zone
) -> None:
    """The foreign record goes between the refusal and the second reading."""
    hand.add(f"{caller.hostname} {FOREIGN}")

    class Freeing(Exchange):
        async def ask(self, peer: Peer, request: Request, *, over: Over, deadline: float) -> Reply:
            reply = await super().ask(peer, request, over=over, deadline=deadline)
            if reply.rcode == Rcode.YXDOMAIN:
                hand.update(f"delete {caller.hostname}")
            return reply

    assert (await caller.through(zone, Freeing()).publish(V4)).kind is OutcomeKind.CREATED


async def test_own_record_withdrawn_after_reading_is_created(
    caller: Caller, hand: Hand, zone: Zone
) -> None:
    await caller.publish(V4)
    racing = first_only(hand, f"delete {caller.hostname}")
    assert (await caller.through(zone, racing).publish(V6)).kind is OutcomeKind.CREATED


async def test_name_that_never_rests_fails_and_nothing_is_written(
    caller: Caller, hand: Hand, zone: Zone
) -> None:
    await caller.publish(V4)

    def meddle(n: int) -> None:
        hand.add(f'{caller.hostname} 900 TXT "{n}"')

    racing = Meddling(meddle)
    outcome = await caller.through(zone, racing).publish(V6)
    assert (outcome.kind, outcome.unknown) == (OutcomeKind.FAILED, False)
    assert outcome.retry_after_seconds is not None
    assert racing.updates == 5  # the first refusal of a pin is not yet known to be the name's
    assert f"300 A {V4.value}" in hand.records(caller.hostname)
