"""Updates of several names of one zone, sent as one message where they come faster than answers.

A server carries out a zone's updates one after the other, and syncs its journal for each: BIND is
as long about eight names in one message as about one, 3 ms on a disk of its own. So while an update
is under way, others wait for its end (`lanes`) and go out together. One that comes alone goes
alone, at once.

A message is atomic as a whole (RFC 2136, 3.2 and 3.4): all prerequisites hold and all is done, or
nothing is. So each caller's own answer follows: a yes is everybody's, and so is that the outcome is
not known. A prerequisite's no names nobody. Then the halves are sent, and their halves, until each
name has its own answer. Where a server won't at all, be it for one name's sake, or takes no such
message, each goes by itself, and for a while all do.

Joined are first tries only, which are expected to pass. Whatever follows a refusal or a lost answer
goes by itself. The caller that gives up takes nobody's answer away; what had not left by then
never does. Must not know whose record it is, nor decide anything. Called by `settle`.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from dns.rcode import Rcode, to_text

from gateway import measures
from gateway.dns.errors import DnsFault, OutcomeUnknown, ServerRefused, Unreachable
from gateway.dns.exchange import Exchange, Over, tell
from gateway.dns.lanes import Lane, Waiting
from gateway.dns.replies import Peer
from gateway.dns.update import (
    PREREQUISITE_RCODES,
    Change,
    Prerequisite,
    Update,
    send_message,
    uncut,
)
from gateway.dns.zones import Zone

MOST_BYTES: Final = 16_383
"""What a joined message may have at the most: so far reach the pointers that shorten names."""


@dataclass(slots=True, eq=False, kw_only=True)
class Joined(Waiting):
    """One name's update, without what demands that the name is not cut off."""

    prerequisites: tuple[Prerequisite, ...]
    changes: tuple[Change, ...]


async def send_joined(exchange: Exchange, zone: Zone, update: Joined) -> Rcode:
    """Send it, alone or with others, with the demand that its name is not cut off.

    Answers and raises as `send_message`, of an update with changes.
    """
    peer = Peer.primary_of(zone)
    lane = exchange.lanes.to(peer)
    if lane.is_free:
        with lane.taken():
            message = joined(zone, [update])
            return await send_message(exchange, zone, message, deadline=update.deadline)
    lane.wait(update, partial(_send_together, exchange, zone, lane))
    timer = asyncio.get_running_loop().call_at(update.deadline, _end_late, update, peer)
    try:
        return await update.result
    finally:
        timer.cancel()


def _end_late(update: Joined, peer: Peer) -> None:
    if update.has_left:
        update.fail(OutcomeUnknown(f"The {peer} gave no answer in time."))
    else:
        update.fail(Unreachable(f"No time was left to ask the {peer}."))


def joined(zone: Zone, updates: Sequence[Joined]) -> Update:
    """One message of updates of different names. What all demand of the names above is said once.

    Their order is kept, and the message is that of the update where there is only one.
    """
    above: dict[tuple[tuple[bytes, ...], int], Prerequisite] = {}
    for update in updates:
        for each in uncut(update.name, zone.apex):
            above.setdefault((each.name.labels, each.rdtype), each)
    prerequisites = [each for update in updates for each in update.prerequisites]
    changes = [each for update in updates for each in update.changes]
    return Update(zone.apex, (*prerequisites, *above.values()), changes)


async def _send_together(
    exchange: Exchange, zone: Zone, lane: Lane, updates: Sequence[Joined]
) -> None:
    """Send them and tell each what came of it. One that nobody waits for any more is left out."""
    left = [update for update in updates if not update.result.done()]
    try:
        if left:
            await _send(exchange, zone, lane, left)
    finally:
        for update in left:  # those who hear of nothing else, since the task was ended
            update.fail(OutcomeUnknown("The update was not waited for to its end."))


async def _send(exchange: Exchange, zone: Zone, lane: Lane, updates: list[Joined]) -> None:
    message = joined(zone, updates)
    middle = len(updates) // 2
    halves = (updates[:middle], updates[middle:])
    if middle and len(message.to_wire()) > MOST_BYTES:
        await _send_parts(exchange, zone, lane, halves)
        return
    answer = await _ask(exchange, zone, lane, updates, message)
    if middle and isinstance(answer, DnsFault):
        lane.keep_apart()
    if middle and answer in PREREQUISITE_RCODES:
        await _send_parts(exchange, zone, lane, halves)
    elif middle and isinstance(answer, ServerRefused | Unreachable):
        await _send_parts(exchange, zone, lane, [[update] for update in updates])
    else:
        _tell(updates, answer)


async def _ask(
    exchange: Exchange, zone: Zone, lane: Lane, updates: Sequence[Joined], message: Update
) -> Rcode | DnsFault:
    """What came of the message, which all of the updates are in."""
    began = measures.moment()
    for update in updates:
        update.has_left = True
    answer: Rcode | DnsFault
    try:
        with lane.taken():
            deadline = max(update.deadline for update in updates)
            answer = await send_message(exchange, zone, message, deadline=deadline)
        result = to_text(answer)
    except DnsFault as fault:
        answer, result = fault, type(fault).__name__
    # The exchange itself was told of in the context of the first.
    peer, seconds = Peer.primary_of(zone), measures.moment() - began
    for update in updates[1:]:
        update.context.run(tell, peer, message, Over.UDP, result, seconds)
    return answer


def _tell(updates: Sequence[Joined], answer: Rcode | DnsFault) -> None:
    """The same to everybody; of a fault each has one of its own, which may be edited."""
    for update in updates:
        if isinstance(answer, Rcode):
            update.answer(answer)
        else:
            update.fail(answer if update is updates[0] else type(answer)(answer.detail))


async def _send_parts(
    exchange: Exchange, zone: Zone, lane: Lane, parts: Sequence[Sequence[Joined]]
) -> None:
    """Send what was one message as several, since nothing of it was done."""
    loop = asyncio.get_running_loop()
    tasks = []
    for part in parts:
        for update in part:
            update.has_left = False
        sending = _send_together(exchange, zone, lane, part)
        tasks.append(loop.create_task(sending, context=part[0].context))
    await asyncio.gather(*tasks)
