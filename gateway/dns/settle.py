"""Compare-and-swap on one name: read, decide, send, and again when the zone had moved on.

Responsible for the rounds, their bound, and for the truth of the answer after a lost reply. A
refused prerequisite is no error, it means that what was decided on is no longer so. An unknown
outcome is settled by reading: what an earlier message of this same call brought about is its
result, however late the server is believed.

Must not know what is decided, nor whose record it is. Called by `publisher` and `challenges`.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

import dns.name
from dns.rcode import Rcode

from gateway.dns.errors import Contended, DnsFault, Misplaced, OutcomeUnknown
from gateway.dns.exchange import Exchange, Over
from gateway.dns.names import to_text
from gateway.dns.observe import Observation, observe
from gateway.dns.outcome import OutcomeKind
from gateway.dns.plan import Plan
from gateway.dns.update import send_update, uncut
from gateway.dns.zones import Zone

MAX_ROUNDS = 4
READ_PAUSE_SECONDS = 0.2

Decide = Callable[[Observation, Rcode | None], Plan]
"""From what was read to a plan. The rcode is why the last plan for this very state was refused."""


@dataclass(frozen=True, slots=True)
class Settlement:
    """What was done, and what was read just before it was decided."""

    kind: OutcomeKind
    observed: Observation


async def settle(
    exchange: Exchange, zone: Zone, name: dns.name.Name, decide: Decide, *, deadline: float
) -> Settlement:
    """Bring `name` to where `decide` wants it. May be repeated. `deadline` is a loop time.

    Raises: OutcomeUnknown when a message may have had an effect that couldn't be read, else any
    other DnsFault: then nothing was written.
    """
    rounds = _Rounds(exchange, zone, name, deadline)
    try:
        return await rounds.run(decide)
    except DnsFault as fault:
        if rounds.attempted is None or isinstance(fault, OutcomeUnknown):
            raise
        raise OutcomeUnknown(fault.detail) from fault


class _Rounds:
    """The state of one call of `settle`. `attempted`: a change that may have been made already."""

    def __init__(
        self, exchange: Exchange, zone: Zone, name: dns.name.Name, deadline: float
    ) -> None:
        self.attempted: OutcomeKind | None = None
        self._exchange = exchange
        self._zone = zone
        self._name = name
        self._deadline = deadline
        self._lost: OutcomeUnknown | None = None

    async def run(self, decide: Decide) -> Settlement:
        before: Observation | None = None
        refusal: Rcode | None = None
        for _ in range(MAX_ROUNDS):
            observed = await self._observe()
            plan = decide(observed, refusal if observed == before else None)
            if plan.is_answer:
                return Settlement(self._truth(plan.kind), observed)
            before, refusal = observed, await self._send(plan)
            if refusal == Rcode.NOERROR:
                return Settlement(plan.kind, observed)
        raise self._lost or Contended(
            f"{to_text(self._name)} was changed by somebody else in each of {MAX_ROUNDS} tries."
        )

    def _truth(self, kind: OutcomeKind) -> OutcomeKind:
        """The wanted state is there already: by our own hand, when a reply of ours was lost."""
        if kind is OutcomeKind.UNCHANGED and self.attempted is not None:
            return self.attempted
        return kind

    async def _observe(self) -> Observation:
        """Read; after a lost reply again and again, since only that tells what became of it."""
        while True:
            try:
                return await observe(
                    self._exchange, self._zone, self._name, deadline=self._deadline
                )
            except DnsFault as fault:
                left = self._deadline - asyncio.get_running_loop().time()
                if self.attempted is None or left <= READ_PAUSE_SECONDS:
                    raise
                if fault.retry_after_seconds is None:
                    raise
            await asyncio.sleep(READ_PAUSE_SECONDS)

    async def _send(self, plan: Plan) -> Rcode | None:
        """The server's rcode; None when it isn't known. A cut above the name ends it all."""
        cuts = uncut(self._name, self._zone.apex)
        try:
            rcode = await send_update(
                self._exchange,
                self._zone,
                (*plan.prerequisites, *cuts),
                plan.changes,
                deadline=self._deadline,
                prefer=Over.UDP if plan.changes and self.attempted is None else Over.TCP,
            )
        except OutcomeUnknown as fault:
            self.attempted = plan.kind
            self._lost = fault
            return None
        if rcode == Rcode.YXRRSET:
            await self._require_uncut()
        return rcode

    async def _require_uncut(self) -> None:
        """Something that must not be there is: was it at the name, or a cut above it?"""
        cuts = uncut(self._name, self._zone.apex)
        rcode = await send_update(
            self._exchange, self._zone, cuts, (), deadline=self._deadline, prefer=Over.TCP
        )
        if rcode == Rcode.YXRRSET:
            raise Misplaced(
                f"{to_text(self._name)} lies at or below a delegation or below a DNAME"
                f" in the zone {self._zone.name}."
            )
