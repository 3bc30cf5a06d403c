"""The worker: finds hostnames with work due, leases each, and carries it out step by step.

A lease is part of the hostname's document, under a fencing number that only grows; every write of
the worker is a compare-and-swap on that document and demands that the lease is still its own. So a
worker that was stopped, cut off or declared dead changes nothing afterwards, and a release deletes
an issuance under its feet. While leased, a hostname is due when its lease lapses: whoever polls the
queue then goes on where the other died.

Nothing sleeps inside a step. Between steps a hostname is only an entry in the due queue (and, for
waits shorter than a poll, a timer in this process), so ten thousand issuances in flight hold
neither threads nor tasks.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeVar

import structlog

from gateway.certificates import agenda, debts, events, machine
from gateway.certificates.agenda import Work
from gateway.certificates.machine import Moment, Step
from gateway.certificates.states import Debt, Issuance, State
from gateway.store.connection import StoreRefused, StoreUnavailable
from gateway.store.documents import Change, Contended, Document, Lease

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Mapping

    from gateway.certificates.cleanup import Cleaner
    from gateway.certificates.pace import Pace
    from gateway.certificates.steps import Steps
    from gateway.contract.names import Hostname
    from gateway.store.documents import Documents, Holder

LEASE_MS: Final = 12_000
"""How long a dead worker's hostnames wait for another. Renewed while a step runs."""

STOP_BOUND_SECONDS: Final = 6.0
STORE_RETRY_SECONDS: Final = 1.0
BROKEN_PAUSE_MS: Final = 60_000

POLL_SECONDS: Final = 0.5
POLL_LIMIT_PER_BUCKET: Final = 16
NOT_RENEWED_PAUSE_MS: Final = 6 * 3_600_000

_T = TypeVar("_T")

_log = structlog.get_logger(__name__)


class LeaseLost(Exception):
    """The hostname is another worker's now, or its issuance was released."""


class Worker:
    """Works on all hostnames of one Redis, beside any number of other workers.

    `name` tells this process from others. `may_renew` says whether a holder may still have
    certificates renewed, and failed issuances begun anew. `concurrency` bounds the hostnames
    worked on at once.
    """

    def __init__(
        self,
        documents: Documents,
        steps: Steps,
        cleaner: Cleaner,
        pace: Pace,
        *,
        name: str,
        may_renew: Callable[[Holder, Hostname], Awaitable[bool]],
        new_id: Callable[[], str],
        now_ms: Callable[[], int],
        jitter: Callable[[], float],
        concurrency: int,
    ) -> None:
        self._documents = documents
        self._steps = steps
        self._cleaner = cleaner
        self._pace = pace
        self._name = name
        self._may_renew = may_renew
        self._new_id = new_id
        self._now_ms = now_ms
        self._jitter = jitter
        self._places = asyncio.Semaphore(concurrency)
        self._active: dict[Hostname, asyncio.Task[None]] = {}
        self._again: set[Hostname] = set()
        self._stop = asyncio.Event()
        self.polled = asyncio.Event()
        self.last_poll_ms = 0

    async def run(self) -> None:
        """Poll the due queues until `stop`; then let the steps under way end, and hand over.

        To be stopped and not cancelled: before Python 3.12 `asyncio.wait_for`, under which redis-py
        8 writes, loses a cancellation that comes together with its result.
        """
        while not self._stop.is_set():
            await self._poll()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(POLL_SECONDS):
                    await self._stop.wait()
        if self._active:
            await asyncio.wait(self._active.values(), timeout=STOP_BOUND_SECONDS)
        for task in list(self._active.values()):
            task.cancel()

    def stop(self) -> None:
        """Make `run` end soon; nothing new is begun from now on."""
        self._stop.set()

    def kick(self, hostname: Hostname) -> None:
        """Work on a hostname now, without waiting for a poll; from the event loop's thread."""
        if self._stop.is_set():
            return
        if hostname in self._active:
            self._again.add(hostname)
            return
        task = asyncio.create_task(self._work_in_turn(hostname))
        self._active[hostname] = task
        task.add_done_callback(lambda _: self._ended(hostname))

    def _ended(self, hostname: Hostname) -> None:
        del self._active[hostname]
        if hostname in self._again:
            self._again.discard(hostname)
            self.kick(hostname)

    async def _poll(self) -> None:
        try:
            hostnames = await self._documents.due(self._now_ms(), POLL_LIMIT_PER_BUCKET)
        except (StoreUnavailable, StoreRefused) as fault:
            _log.warning("due queues unreadable", error=str(fault))
            return
        self.last_poll_ms = self._now_ms()
        self.polled.set()
        for hostname in hostnames:
            if hostname not in self._active:
                self.kick(hostname)

    async def _work_in_turn(self, hostname: Hostname) -> None:
        async with self._places:
            try:
                await self._work(hostname)
            except (LeaseLost, Contended):
                _log.info("work given up", hostname=hostname)
            except StoreUnavailable:
                _log.warning("work interrupted", hostname=hostname)
                asyncio.get_running_loop().call_later(STORE_RETRY_SECONDS, self.kick, hostname)
            except Exception:  # noqa: BLE001 (a broken document must not stop the others)
                _log.exception("work broke", hostname=hostname)
                await self._put_off(hostname)

    async def _put_off(self, hostname: Hostname) -> None:
        """Move a hostname that cannot be worked on out of the way of those behind it."""
        with contextlib.suppress(StoreRefused, StoreUnavailable):
            await self._documents.postpone(hostname, self._now_ms() + BROKEN_PAUSE_MS)

    async def _work(self, hostname: Hostname) -> None:
        document = await self._lease(hostname)
        while document is not None and document.lease is not None:
            if self._stop.is_set():
                await self._hand_over(document)
                return
            item = agenda.next_item(document, self._now_ms())
            if item.work is Work.STEP:
                document = await self._step(document)
            elif item.work is Work.RENEW:
                document = await self._renew(document)
            elif item.work is Work.PAY and item.debt is not None:
                document = await self._pay(document, item.debt)
            else:
                document = await self._write(
                    document, lambda current: self._change(current, {}, keep=False)
                )

    async def _lease(self, hostname: Hostname) -> Document | None:
        def decide(document: Document) -> Change | None:
            now_ms = self._now_ms()
            lease = document.lease
            if lease is not None and lease.worker != self._name and lease.until_ms > now_ms:
                return None
            item = agenda.next_item(document, now_ms)
            if item.work is Work.REST:
                return Change(due_ms=item.until_ms, touches_due=True)
            fence = max(document.fence + 1, now_ms)
            lease = Lease(self._name, fence, now_ms + LEASE_MS)
            return Change({"lease": lease, "fence": fence}, lease.until_ms, touches_due=True)

        document = await self._documents.change(hostname, decide)
        mine = document.lease is not None and document.lease.worker == self._name
        return document if mine else None

    async def _step(self, document: Document) -> Document:
        issuance = agenda.issuance_of(document)
        holder = document.holder
        if issuance is None or holder is None:
            raise LeaseLost(document.hostname)
        if issuance.state is State.FAILED and not await self._may_renew(holder, document.hostname):
            later = replace(issuance, due_at_ms=self._now_ms() + NOT_RENEWED_PAUSE_MS)
            fields = {"issuance": later.to_json()}
            return await self._write(
                document, lambda current: self._change(current, fields, keep=False)
            )
        step = machine.advance(issuance, events.Due(), self._moment())
        while step.command is not None and not self._stop.is_set():
            command, issuance = step.command, step.issuance
            call = self._steps.carry_out(command, document.hostname, holder, issuance)
            event = await self._under_lease(document, call)
            step = machine.advance(issuance, event, self._moment())
            _log.debug(
                "issuance advanced",
                hostname=document.hostname,
                saw=type(event).__name__,
                state=step.issuance.state.value,
                detail=step.issuance.message,
            )
            left = debts.debt_of_step(command, issuance, event)
            document = await self._store_step(document, step, event, left)
        return document

    async def _under_lease(self, document: Document, call: Coroutine[None, None, _T]) -> _T:
        """Await a call, renewing the lease as long as it takes.

        A call that has begun is waited for, whatever becomes of the lease and of Redis: what came
        of it is stored, or entered as a debt.
        """
        task = asyncio.create_task(call)
        try:
            while not (await asyncio.wait({task}, timeout=LEASE_MS / 3000))[0]:
                with contextlib.suppress(LeaseLost, Contended, StoreUnavailable):
                    await self._write(
                        document, lambda current: self._change(current, {}, keep=True)
                    )
            return task.result()
        finally:
            task.cancel()

    async def _store_step(
        self, document: Document, step: Step, event: events.Event, left: Debt | None
    ) -> Document:
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
                fields["certificate"] = event.certificate.to_json()
            return self._change(current, fields, keep=step.command is not None)

        try:
            stored = await self._write_at_last(document, decide)
        except LeaseLost:
            if left is not None:
                await self._disown(document.hostname, left)
            raise
        if issued:
            self._pace.issued(self._now_ms() - step.issuance.begun_at_ms)
            _log.info("certificate issued", hostname=document.hostname)
        elif step.issuance.state in {State.WAITING, State.FAILED}:
            self._report(document.hostname, step.issuance)
        return stored

    async def _disown(self, hostname: Hostname, left: Debt) -> None:
        """Enter what a step has left outside as a debt, unless the issuance under way needs it."""

        def decide(current: Document) -> Change | None:
            known = agenda.debts_of(current)
            owed = debts.with_debts(known, (left,))
            if owed == known or debts.is_relied_on(left, agenda.issuance_of(current)):
                return None
            fields = {"debts": debts.as_stored(owed)}
            now_ms = self._now_ms()
            # Whoever holds the lease looks at the debts before giving it up.
            leased = current.lease is not None and current.lease.until_ms > now_ms
            return Change(fields, now_ms, touches_due=not leased)

        await self._documents.change(hostname, decide)

    async def _renew(self, document: Document) -> Document:
        certificate = agenda.certificate_of(document)
        holder = document.holder
        if certificate is None or holder is None:
            raise LeaseLost(document.hostname)
        if await self._may_renew(holder, document.hostname):
            issuance = machine.request(self._new_id(), self._moment(), renewal=True)
            fields: dict[str, object] = {"issuance": issuance.to_json()}
        else:
            later = replace(certificate, renew_at_ms=self._now_ms() + NOT_RENEWED_PAUSE_MS)
            fields = {"certificate": later.to_json()}
        return await self._write(document, lambda current: self._change(current, fields, keep=True))

    async def _pay(self, document: Document, debt: Debt) -> Document:
        paid = await self._under_lease(document, self._cleaner.pay(debt))

        def decide(current: Document) -> Change:
            owed = debts.without_debt(agenda.debts_of(current), debt)
            if not paid:
                owed = (*owed, debts.put_off(debt, self._now_ms()))
            fields = {"debts": debts.as_stored(owed)}
            return self._change(current, fields, keep=False)

        return await self._write(document, decide)

    async def _hand_over(self, document: Document) -> None:
        """Give the lease up so that another worker goes on at once."""
        await self._write(
            document, lambda _: Change({"lease": None}, self._now_ms(), touches_due=True)
        )

    def _change(self, current: Document, fields: Mapping[str, object], *, keep: bool) -> Change:
        """The change with the lease renewed, or given up when there is nothing more to do now."""
        now_ms = self._now_ms()
        if not keep:
            after = replace(current, **fields)  # type: ignore[arg-type]
            item = agenda.next_item(after, now_ms)
            if item.work is Work.REST:
                self._wake(current.hostname, item.until_ms)
                return Change({**fields, "lease": None}, item.until_ms, touches_due=True)
        lease = Lease(self._name, current.fence, now_ms + LEASE_MS)
        return Change({**fields, "lease": lease}, lease.until_ms, touches_due=True)

    async def _write(self, document: Document, decide: Callable[[Document], Change]) -> Document:
        """Commit under the lease.

        Raises:
            LeaseLost: when the document is no longer leased under this fencing number.
        """
        fence = document.fence
        stored = await self._documents.commit(document, decide(document))
        if stored is not None:
            return stored

        def decide_fenced(current: Document) -> Change:
            lease = current.lease
            if lease is None or lease.worker != self._name or lease.fence != fence:
                raise LeaseLost(current.hostname)
            return decide(current)

        return await self._documents.change(document.hostname, decide_fenced)

    async def _write_at_last(
        self, document: Document, decide: Callable[[Document], Change]
    ) -> Document:
        """Commit under the lease what nobody else knows, however long Redis is away."""
        while True:
            try:
                return await self._write(document, decide)
            except StoreUnavailable:
                if self._stop.is_set():
                    raise
            _log.warning("waiting for Redis to store a step", hostname=document.hostname)
            await asyncio.sleep(STORE_RETRY_SECONDS)

    def _wake(self, hostname: Hostname, at_ms: int | None) -> None:
        """Come back by a timer when that is sooner than the next poll."""
        if at_ms is None:
            return
        pause_seconds = (at_ms - self._now_ms()) / 1000
        if pause_seconds < 2 * POLL_SECONDS:
            asyncio.get_running_loop().call_later(max(pause_seconds, 0.001), self.kick, hostname)

    def _moment(self) -> Moment:
        return Moment(self._now_ms(), self._jitter())

    def _report(self, hostname: Hostname, issuance: Issuance) -> None:
        _log.warning(
            "issuance held up",
            hostname=hostname,
            state=issuance.state.value,
            reason=issuance.reason and issuance.reason.value,
            detail=issuance.message,
            in_seconds=(issuance.due_at_ms - self._now_ms()) / 1000,
        )
