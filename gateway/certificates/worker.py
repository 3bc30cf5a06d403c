"""The worker: finds hostnames with work due, leases each, and carries it out step by step.

Nothing sleeps inside a step. Between steps a hostname is only an entry in the due queue (and, for
waits of seconds, a timer in this process), so ten thousand issuances in flight hold neither threads
nor tasks. Whose turn it is among those that wait, the turnstile says; how a hostname is kept from
other workers meanwhile, and how what came of a step is stored, the leaseholder knows.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import structlog
from structlog.contextvars import bind_contextvars, bound_contextvars

from gateway import measures, tracing
from gateway.certificates import agenda, debts, deeds, endings, events, grants, machine, renewal
from gateway.certificates.agenda import Work
from gateway.certificates.keys import renewal_id
from gateway.certificates.leaseholder import Leaseholder
from gateway.certificates.leases import Grace, LeaseLost
from gateway.certificates.lookout import Lookout
from gateway.certificates.moves import Moment, Step
from gateway.certificates.states import Debt, Issuance, State
from gateway.certificates.turnstile import Turnstile
from gateway.store.connection import StoreRefused, StoreUnavailable
from gateway.store.deeds import Actor, Role, acting_as
from gateway.store.documents import Change, Contended, Document
from gateway.store.trail import NO_TRAIL

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from gateway.certificates.cleanup import Cleaner
    from gateway.certificates.pace import Pace
    from gateway.certificates.steps import Steps
    from gateway.contract.names import ClientId, Hostname
    from gateway.store.clock import SharedClock
    from gateway.store.documents import Documents, Holder
    from gateway.store.trail import Trail

STORE_RETRY_SECONDS: Final = 1.0
BROKEN_PAUSE_MS: Final = 60_000

POLL_SECONDS: Final = 0.5
LONGEST_POLL_SECONDS: Final = 2.0
POLL_SHARE: Final = 40
"""A poll asks for 256 queues, in 10 ms if the process is idle. One that is busy polls less often:
it has a fortieth of the time for that, and two a second were a tenth of its issuances."""

LONGEST_TIMER_SECONDS: Final = 10.0
"""A rest up to this long ends by a timer, longer ones by a poll."""

SYNC_EVERY_MS: Final = 2_000

_log = structlog.get_logger(__name__)


class Worker:
    """Works on all hostnames of one Redis, beside any number of other workers.

    `name` tells this process from others. `may_renew` says whether a holder may still have
    certificates renewed, and failed issuances begun anew. `concurrency` bounds the hostnames
    worked on at once. `zone_of` tells which zone a hostname is in, so that none that is dead has
    all the places; None where there is nothing to tell apart.
    """

    def __init__(
        self,
        documents: Documents,
        steps: Steps,
        cleaner: Cleaner,
        pace: Pace,
        clock: SharedClock,
        *,
        name: str,
        may_renew: Callable[[Holder, Hostname], Awaitable[bool]],
        new_id: Callable[[], str],
        jitter: Callable[[], float],
        concurrency: int,
        zone_of: Callable[[Hostname], str | None] = lambda _: None,
        trail: Trail = NO_TRAIL,
    ) -> None:
        self._actor = Actor(Role.WORKER, name)
        self._trail = trail
        self._documents = documents
        self._steps = steps
        self._cleaner = cleaner
        self._pace = pace
        self._clock = clock
        self._may_renew = may_renew
        self._new_id = new_id
        self._jitter = jitter
        self._turnstile = Turnstile(concurrency, self._work_in_turn, zone_of)
        pace.watch(self._turnstile.turns_before)
        self._lookout = Lookout(documents, self._turnstile.__contains__)
        self._grace = Grace(clock)
        self._leases = Leaseholder(
            documents, clock, self._grace, name=name, jitter=jitter, told_rest=self._wake
        )
        self._timers: dict[Hostname, asyncio.TimerHandle] = {}
        self._stop = asyncio.Event()
        self._patience_seconds = 0.0
        self._polled_steady_ms = 0
        self._sync_at_steady_ms = clock.steady_ms()
        self._is_blind = False
        self.polled = asyncio.Event()

    @property
    def silent_ms(self) -> int:
        """How long ago it last read its queues; only once it has `polled`."""
        return self._clock.steady_ms() - self._polled_steady_ms

    async def run(self) -> None:
        """Poll the due queues until `stop`; then let the steps under way end, and hand over.

        To be stopped and not cancelled: a step that has begun outside is to be stored.
        """
        while not self._stop.is_set():
            pause_seconds = await self._poll()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause_seconds):
                    await self._stop.wait()
        under_way = self._turnstile.tasks
        if under_way:
            await asyncio.wait(under_way, timeout=self._patience_seconds)
        for task in under_way:
            task.cancel()

    def stop(self, within_seconds: float) -> None:
        """Make `run` end soon; nothing new is begun from now on.

        `within_seconds`: how long the steps under way may take. What an authority answers later
        to an order is lost: it is placed again.
        """
        self._patience_seconds = within_seconds
        self._stop.set()
        self._turnstile.close()
        for timer in self._timers.values():
            timer.cancel()

    def kick(self, hostname: Hostname, client_id: ClientId) -> None:
        """Work on a client's hostname without waiting for a poll; from the event loop's thread."""
        self._turnstile.enter(hostname, client_id)

    def _wake(self, hostname: Hostname, at_ms: int) -> None:
        """Come back by a timer from a short rest: what was begun goes on before more is begun."""
        pause_seconds = (at_ms - self._clock.now_ms()) / 1000
        if pause_seconds <= LONGEST_TIMER_SECONDS:
            self._come_back(hostname, max(pause_seconds, 0.001))

    def _come_back(self, hostname: Hostname, pause_seconds: float) -> None:
        """Have a hostname that is worked on pass the turnstile again, ahead of its client's."""
        client = self._turnstile.client_of(hostname)

        def enter() -> None:
            self._timers.pop(hostname, None)
            self._turnstile.enter(hostname, client, ahead=True)

        earlier = self._timers.pop(hostname, None)
        if earlier is not None:
            earlier.cancel()
        if not self._stop.is_set():
            timer = asyncio.get_running_loop().call_later(pause_seconds, enter)
            self._timers[hostname] = timer

    async def _poll(self) -> float:
        """Look at the queues; how many seconds to wait before the next time."""
        began_ms = self._clock.steady_ms()
        try:
            await self._look_at_clock()
            seen = await self._lookout.look(self._clock.now_ms())
        except (StoreUnavailable, StoreRefused) as fault:
            self._grace.note_outage()
            if not self._is_blind:
                _log.warning("due queues unreadable", error=str(fault))
            self._is_blind = True
            return POLL_SECONDS
        if self._is_blind:
            _log.info("due queues are read again")
        self._is_blind = False
        self._grace.note_contact()
        self._polled_steady_ms = self._clock.steady_ms()
        self.polled.set()
        for hostname, client in seen:
            if hostname not in self._turnstile:
                self._turnstile.enter(hostname, client)
        took = (self._polled_steady_ms - began_ms) / 1000
        return min(LONGEST_POLL_SECONDS, max(POLL_SECONDS, took * POLL_SHARE))

    async def _look_at_clock(self) -> None:
        steady_ms = self._clock.steady_ms()
        if steady_ms >= self._sync_at_steady_ms:
            await self._clock.sync()
            self._sync_at_steady_ms = steady_ms + SYNC_EVERY_MS

    async def _work_in_turn(self, hostname: Hostname) -> None:
        with tracing.work(hostname), acting_as(self._actor), bound_contextvars(hostname=hostname):
            await self._work_bounded(hostname)

    async def _work_bounded(self, hostname: Hostname) -> None:
        """Work on a hostname; whatever comes of it stays with this hostname."""
        try:
            await self._work(hostname)
        except (LeaseLost, Contended) as reason:
            if isinstance(reason, LeaseLost):
                measures.lease_lost()
            _log.info("work given up", hostname=hostname)
        except StoreUnavailable:
            self._grace.note_outage()
            _log.warning("work interrupted", hostname=hostname)
            self._come_back(hostname, STORE_RETRY_SECONDS)
        except Exception:  # noqa: BLE001 (a broken document must not stop the others)
            _log.exception("work broke", hostname=hostname)
            await self._put_off(hostname)

    async def _put_off(self, hostname: Hostname) -> None:
        """Move a hostname that cannot be worked on out of the way of those behind it."""
        with contextlib.suppress(StoreRefused, StoreUnavailable):
            await self._documents.postpone(hostname, self._clock.now_ms() + BROKEN_PAUSE_MS)

    async def _work(self, hostname: Hostname) -> None:
        document = await self._leases.lease(hostname)
        while document is not None and document.lease is not None:
            if self._stop.is_set():
                await self._leases.hand_over(document)
                return
            item = agenda.next_item(document, self._clock.now_ms())
            if item.work is Work.STEP:
                document = await self._step(document)
            elif item.work is Work.RENEW:
                document = await self._renew(document)
            elif item.work is Work.PAY and item.debt is not None:
                document = await self._pay(document, item.debt)
            elif item.work is Work.ASK_RENEWAL_INFO:
                document = await self._ask_renewal_info(document)
            else:
                document = await self._rest(document, {})

    async def _rest(self, document: Document, fields: Mapping[str, object]) -> Document:
        return await self._leases.write(
            document, lambda current: self._leases.change(current, fields, keep=False)
        )

    async def _step(self, document: Document) -> Document:
        issuance, holder = agenda.issuance_of(document), document.holder
        if issuance is None or holder is None:
            raise LeaseLost(document.hostname)
        bind_contextvars(issuance=issuance.issuance_id)
        if issuance.begins_anew and not await self._may_renew(holder, document.hostname):
            pause_ms = renewal.policy_pause_ms(agenda.certificate_of(document))
            due_at_ms = self._clock.now_ms() + pause_ms
            later = replace(issuance, due_at_ms=due_at_ms, barred=True)
            return await self._rest(document, {"issuance": later.to_json()})
        step = machine.advance(issuance, events.Due(), self._moment())
        left: Debt | None = None
        try:
            while step.command is not None and not self._stop.is_set():
                command, issuance = step.command, step.issuance
                step, event = await self._carried_out(document, holder, command, issuance)
                left = debts.debt_of_step(command, issuance, event) or left
                if not self._may_be_forgotten(document, step, event):
                    document = await self._store_step(document, issuance, step, event)
                    left = None
                if document.lease is not None and self._goes_on_soon(step):
                    step = await self._rested(step)
            if left is not None:  # to stop, before what follows it
                document = await self._store_step(document, issuance, step, event)
                left = None
        except Exception:
            if left is not None:  # also by a step that was to be stored with the next one
                await self._leases.disown(document.hostname, left)
            raise
        return document

    async def _carried_out(
        self, document: Document, holder: Holder, command: events.Command, issuance: Issuance
    ) -> tuple[Step, events.Event]:
        """What comes of a command, and by which event."""
        hostname, was = document.hostname, issuance.state.value
        with tracing.step(command.value, issuance.issuance_id, was) as span:
            call = self._steps.carry_out(command, hostname, holder, issuance)
            event = await self._leases.hold(document, call)
            step = machine.advance(issuance, event, self._moment())
            saw, state = type(event).__name__, step.issuance.state.value
            tracing.step_ended(span, saw, state)
        told = step.issuance.message
        _log.debug("issuance advanced", hostname=hostname, saw=saw, state=state, detail=told)
        return step, event

    def _may_be_forgotten(self, document: Document, step: Step, event: events.Event) -> bool:
        """Whether a step may be stored with what follows it."""
        stored = agenda.issuance_of(document)
        if stored is None or self._stop.is_set() or not self._leases.is_fresh(document):
            return False
        if isinstance(event, events.PropagationSeen) and event.silent:
            return False  # that is told once it is stored
        return machine.may_be_forgotten(stored.state, step, self._moment())

    def _goes_on_soon(self, step: Step) -> bool:
        return not self._stop.is_set() and machine.is_short_rest(step, self._moment())

    async def _rested(self, step: Step) -> Step:
        await asyncio.sleep(max(0, step.issuance.due_at_ms - self._clock.now_ms()) / 1000)
        return machine.advance(step.issuance, events.Due(), self._moment())

    async def _store_step(
        self, document: Document, before: Issuance, step: Step, event: events.Event
    ) -> Document:
        """Store what came of a step; `before` is the issuance that it was made with."""
        issued = isinstance(event, events.CertificateFetched)
        issuance = None if issued else step.issuance

        def decide(current: Document) -> Change:
            more = debts.debts_of_progress(agenda.issuance_of(current), step.issuance)
            owed = debts.with_debts(agenda.debts_of(current), more)
            fields: dict[str, object] = {
                "issuance": issuance and issuance.to_json(),
                "debts": debts.as_stored(owed),
            }
            if isinstance(event, events.CertificateFetched):
                fields["certificate"] = event.certificate.come_of(step.issuance).to_json()
            goes_on = step.command is not None or self._goes_on_soon(step)
            return self._leases.change(current, fields, keep=goes_on)

        stored = await self._leases.write_at_last(document, decide)
        if grants.is_over(before, step.issuance):
            await self._give_back(document, before, event)
        after, now_ms = step.issuance, self._clock.now_ms()
        authority = self._steps.authority_name(after.directory_url or after.failed_at)
        endings.count(after, authority, now_ms, issued=issued)
        if isinstance(event, events.CertificateFetched):
            self._trail.note(deeds.of_issued(document, event.certificate, renewal=after.renewal))
        elif after.state is State.FAILED:
            self._trail.note(deeds.of_failed(document, after))
        if issued:
            self._pace.issued(after, now_ms)
            _log.info(
                "certificate issued", hostname=document.hostname, authority=after.directory_url
            )
        elif after.state in {State.WAITING, State.FAILED}:
            endings.tell_held_up(document.hostname, after, now_ms)
        elif isinstance(event, events.PropagationSeen) and after.state is State.PROPAGATED:
            endings.tell_passed_over(document.hostname, event)
        return stored

    async def _give_back(self, document: Document, issuance: Issuance, event: events.Event) -> None:
        """Return what was granted for nothing; lost if Redis is away just now."""
        if document.holder is None:
            return
        was_placed = grants.may_be_placed(issuance, event)
        with contextlib.suppress(StoreUnavailable, StoreRefused, Contended):
            await self._steps.give_back(
                document.hostname, document.holder, issuance, was_placed=was_placed
            )

    async def _renew(self, document: Document) -> Document:
        certificate, holder = agenda.certificate_of(document), document.holder
        if certificate is None or holder is None:
            raise LeaseLost(document.hostname)
        if await self._may_renew(holder, document.hostname):
            name = renewal_id(certificate.chain_pem)
            issuance = machine.request_renewal(self._new_id(), certificate, name, self._moment())
            fields = {"issuance": issuance.to_json()}
        else:
            pause_ms = renewal.policy_pause_ms(certificate)
            later = replace(certificate, renew_at_ms=self._clock.now_ms() + pause_ms)
            fields = {"certificate": later.to_json()}
        return await self._leases.write(
            document, lambda current: self._leases.change(current, fields, keep=True)
        )

    async def _ask_renewal_info(self, document: Document) -> Document:
        certificate = agenda.certificate_of(document)
        if certificate is None:
            raise LeaseLost(document.hostname)
        asked = await self._leases.hold(document, self._steps.ask_renewal(certificate))

        def decide(current: Document) -> Change:
            held = agenda.certificate_of(current)
            fields = {}
            # Not if it was released, or another has taken its place, meanwhile.
            if held is not None and held.issuance_id == asked.issuance_id:
                fields["certificate"] = held.timed_as(asked).to_json()
            return self._leases.change(current, fields, keep=False)

        return await self._leases.write(document, decide)

    async def _pay(self, document: Document, debt: Debt) -> Document:
        call = self._cleaner.pay(debt, document.hostname)
        payment = await self._leases.hold(document, call)

        def decide(current: Document) -> Change:
            owed = debts.without_debt(agenda.debts_of(current), debt)
            if not payment.paid:
                now_ms, told = self._clock.now_ms(), payment.retry_after_seconds
                owed = (*owed, debts.put_off(debt, now_ms, told))
            return self._leases.change(current, {"debts": debts.as_stored(owed)}, keep=False)

        return await self._leases.write(document, decide)

    def _moment(self) -> Moment:
        return Moment(self._clock.now_ms(), self._jitter())
