"""Compare-and-swap on one name: read, decide, send, and again when the zone had moved on.

Responsible for the rounds, their bound, and for the truth of the answer after a lost reply. A
refused prerequisite is no error, it means that what was decided on is no longer so. An unknown
outcome is settled by reading: what an earlier message of this same call brought about is its
result, however late the server is believed.

Where the zone has several primaries, a call goes on at the next one when one has a fault of its
own; there too it reads before it sends.

What was read may lag behind what updates are judged by (`observe`). Then an answer without an
update is confirmed by one that states what was read and changes nothing; while that is refused, or
nothing new is read after a refusal, the zone is given time to catch up.

An addition that joins records of others is pinned to the version that was read (`pinning`), and
tried more often, since a change anywhere in the zone refuses it; in a zone that never rests it is
sent without a pin in the end.

Must not know what is decided, nor whose record it is. Called by `publisher`, `handing`,
`survey` and `challenges`.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

import dns.name
from dns.rcode import Rcode

from gateway.dns.errors import Contended, DnsFault, Misplaced, OutcomeUnknown, ServerFailed
from gateway.dns.exchange import Exchange, Over
from gateway.dns.joining import Joined, send_joined
from gateway.dns.names import to_text
from gateway.dns.observe import Observation, observe
from gateway.dns.outcome import OutcomeKind
from gateway.dns.pinning import PINS, needs_pin, read_pin
from gateway.dns.plan import Plan, confirmations
from gateway.dns.primaries import SERVERS_OWN, Turns
from gateway.dns.records import RRset
from gateway.dns.replies import Peer
from gateway.dns.update import NameFree, RRsetIs, send_update, uncut
from gateway.dns.zones import Zone

MAX_ROUNDS = 4
READ_PAUSE_SECONDS = 0.2
READING_SECONDS = 0.3
"""What must be left of a call's time for reading once more."""

LAG_PAUSE_SECONDS = 0.01
"""The first pause for a zone that lags; each is twice the last, up to READ_PAUSE_SECONDS."""

Decide = Callable[[Observation, Rcode | None], Plan]
"""From what was read to a plan. The rcode is why the last plan for this very state was refused."""


@dataclass(frozen=True, slots=True)
class Settlement:
    """What was done, and what was read just before it was decided.

    `is_doubtful`: an earlier message of the call may have been applied, and undone by somebody.
    """

    kind: OutcomeKind
    observed: Observation
    is_doubtful: bool = False


async def settle(
    exchange: Exchange,
    zone: Zone,
    name: dns.name.Name,
    decide: Decide,
    *,
    deadline: float,
    pins: int = PINS,
) -> Settlement:
    """Bring `name` to where `decide` wants it. May be repeated. `deadline` is a loop time.

    After so many vain `pins` an addition beside others is sent without one.

    Raises: OutcomeUnknown when a message may have had an effect that couldn't be read, else any
    other DnsFault: then nothing was written.
    """
    rounds = _Rounds(exchange, Turns(exchange, zone), name, deadline, pins)
    try:
        return await rounds.run(decide)
    except DnsFault as fault:
        if rounds.attempted is None or isinstance(fault, OutcomeUnknown):
            raise
        raise OutcomeUnknown(fault.detail) from fault


class _Rounds:
    """The state of one call of `settle`. `attempted`: a change that may have been made already."""

    def __init__(
        self, exchange: Exchange, turns: Turns, name: dns.name.Name, deadline: float, pins: int
    ) -> None:
        self.attempted: OutcomeKind | None = None
        self._exchange = exchange
        self._turns = turns
        self._name = name
        self._deadline = deadline
        self._lost: OutcomeUnknown | None = None
        self._lag_pause = LAG_PAUSE_SECONDS
        self._pins_left = pins
        self._pin: RRsetIs | None = None
        self._vain_pin: RRsetIs | None = None

    async def run(self, decide: Decide) -> Settlement:
        before: Observation | None = None
        refusal: Rcode | None = None
        rounds = MAX_ROUNDS + len(self._turns) - 1
        while rounds:
            observed, lost, pins = await self._observe(), self._lost, self._pins_left
            is_old = observed == before
            refusal = refusal if is_old else None
            plan = decide(observed, refusal)
            if plan.is_answer:
                if await self._is_so(observed, plan):
                    return self._settled(plan, observed)
                # It is old, or what was "unchanged" was made up from a wildcard.
                refusal = Rcode.NXRRSET if plan.kind is OutcomeKind.UNCHANGED else None
            elif needs_pin(plan, observed) and self._pin is None and await self._take_pin():
                before = observed
                continue  # What is read now is what the pin stands for.
            else:
                may_join = before is None and _is_likely(plan, observed)
                refusal = await self._send_pinned(plan, observed, refusal, may_join=may_join)
                if refusal == Rcode.NOERROR:
                    return self._settled(plan, observed)
            has_moved, before = before is not None and not is_old, observed
            if self._pins_left < pins and not has_moved:
                continue  # The zone has changed, and not this name: bounded by the pins.
            if is_old and observed.may_lag and self._lost is lost:
                await self._let_catch_up()
            else:
                rounds -= 1
        name = to_text(self._name)
        raise self._lost or Contended(f"{name} was, in every try, not as it had just been read.")

    def _settled(self, plan: Plan, observed: Observation) -> Settlement:
        is_doubtful = self.attempted is not None
        return Settlement(self._truth(plan.kind), observed, is_doubtful=is_doubtful)

    async def _is_so(self, observed: Observation, answer: Plan) -> bool:
        """Is what was read the newest there is?"""
        plans = confirmations(observed, answer) if observed.may_lag else ()
        for plan in plans:
            if await self._send(plan) == Rcode.NOERROR:
                return True
        return not plans

    async def _let_catch_up(self) -> None:
        left = self._deadline - asyncio.get_running_loop().time()
        if left <= self._lag_pause + READING_SECONDS:
            raise self._lost or ServerFailed(
                f"The {Peer.primary_of(self._turns.zone)} goes on answering for"
                f" {to_text(self._name)} with older data than it takes updates by."
            )
        await asyncio.sleep(self._lag_pause)
        self._lag_pause = min(2 * self._lag_pause, READ_PAUSE_SECONDS)

    def _truth(self, kind: OutcomeKind) -> OutcomeKind:
        """The wanted state is there already: by our own hand, when a reply of ours was lost."""
        if kind is OutcomeKind.UNCHANGED and self.attempted is not None:
            return self.attempted
        return kind

    async def _observe(self) -> Observation:
        """Read; after a lost reply again and again, since only that tells what became of it."""
        while True:
            try:
                return await self._turns.ask(self._observe_at)
            except DnsFault as fault:
                left = self._deadline - asyncio.get_running_loop().time()
                if self.attempted is None or left <= READ_PAUSE_SECONDS:
                    raise
                if fault.retry_after_seconds is None:
                    raise
            await asyncio.sleep(READ_PAUSE_SECONDS)

    def _observe_at(self, zone: Zone) -> Awaitable[Observation]:
        return observe(self._exchange, zone, self._name, deadline=self._deadline)

    async def _soa_at(self, zone: Zone) -> RRset | None:
        return await read_pin(self._exchange, zone, self._deadline)

    async def _take_pin(self) -> bool:
        """Read a pin for what is read after it; False when there is none worth a try."""
        if not self._pins_left:
            return False
        soa = await self._turns.ask(self._soa_at)
        pin = None if soa is None else RRsetIs(self._turns.zone.apex, soa)
        if pin is None or pin == self._vain_pin:
            self._pins_left = 0
            return False
        self._pin = pin
        self._pins_left -= 1
        return True

    async def _send_pinned(
        self, plan: Plan, observed: Observation, refusal: Rcode | None, *, may_join: bool
    ) -> Rcode | None:
        """As `_send`, pinned if need be. A pin that was refused says nothing of the name.

        So what was known of it stays true then: `refusal`, which the plan was made upon.
        """
        pin, self._pin = self._pin, None
        if pin is None or not needs_pin(plan, observed):
            return await self._send(plan, joins=may_join)
        rcode = await self._send(replace(plan, prerequisites=(*plan.prerequisites, pin)))
        if rcode != Rcode.NXRRSET:
            return rcode
        self._vain_pin = pin
        await self._take_pin()
        return refusal

    async def _send(self, plan: Plan, *, joins: bool = False) -> Rcode | None:
        """The server's rcode; None when it isn't known. A cut above the name ends it all."""
        zone = self._turns.zone
        try:
            if joins:
                update = Joined(
                    name=self._name,
                    deadline=self._deadline,
                    prerequisites=plan.prerequisites,
                    changes=plan.changes,
                )
                rcode = await send_joined(self._exchange, zone, update)
            else:
                rcode = await self._send_alone(plan, zone)
        except OutcomeUnknown as fault:
            if self.attempted is None or plan.kind is not OutcomeKind.UNCHANGED:
                self.attempted = plan.kind
            self._lost = fault
            # One that answers queries may go on failing updates; the next one has the same data.
            self._turns.move_on()
            return None
        except SERVERS_OWN as fault:
            self._turns.pass_on(fault)
            return None
        if rcode == Rcode.YXRRSET:
            await self._require_uncut()
        return rcode

    async def _send_alone(self, plan: Plan, zone: Zone) -> Rcode:
        return await send_update(
            self._exchange,
            zone,
            (*plan.prerequisites, *uncut(self._name, zone.apex)),
            plan.changes,
            deadline=self._deadline,
            prefer=Over.UDP if plan.changes and self.attempted is None else Over.TCP,
        )

    async def _require_uncut(self) -> None:
        """Something that must not be there is: was it at the name, or a cut above it?"""
        zone = self._turns.zone
        rcode = await send_update(
            self._exchange,
            zone,
            uncut(self._name, zone.apex),
            (),
            deadline=self._deadline,
            prefer=Over.TCP,
        )
        if rcode == Rcode.YXRRSET:
            raise Misplaced(
                f"{to_text(self._name)} lies at or below a delegation or below a DNAME"
                f" in the zone {zone.name}."
            )


def _is_likely(plan: Plan, observed: Observation) -> bool:
    """Will it pass, if nobody else changes the name meanwhile? Else it would hold up others."""
    is_doubted = any(isinstance(each, NameFree) for each in plan.prerequisites)
    return bool(plan.changes) and not (is_doubted and observed.rrsets)
