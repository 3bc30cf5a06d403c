"""Leasing hostnames, and writing under the lease.

A lease is part of the hostname's document, under a fencing number that only grows; every write is
a compare-and-swap on that document and demands that the lease is still its own. So a process that
was stopped, cut off or declared dead changes nothing afterwards, and a release deletes an issuance
under its feet. While leased, a hostname is due when its lease lapses: whoever polls the queue then
goes on where the other died.

What came of a step that nobody else knows of is stored however long that takes: with the document
where the lease still holds, as a debt where it does not. Called by `worker`; knows no step.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeVar

import structlog

from gateway.certificates import agenda, debts, leases
from gateway.certificates.agenda import Work
from gateway.certificates.leases import LEASE_MS, MARGIN_MS, RENEW_EVERY_MS, LeaseLost, LeaseOver
from gateway.store.connection import StoreRefused, StoreUnavailable
from gateway.store.documents import Change, Contended, Document, Lease

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Mapping

    from gateway.certificates.leases import Grace
    from gateway.certificates.states import Debt
    from gateway.contract.names import Hostname
    from gateway.store.clock import SharedClock
    from gateway.store.documents import Documents

RETRY_SECONDS: Final = 0.1
"""The least pause, and half of the longest, before what is not stored yet is tried again. Much
shorter than the grace that others leave: whoever knows more is to be first."""

_T = TypeVar("_T")

_log = structlog.get_logger(__name__)


class _Held:
    """A document whose lease is being renewed beside a call."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.is_lost = False

    @property
    def until_ms(self) -> int:
        """Until when things may be sent; 0 when no longer."""
        lease = self.document.lease
        return 0 if lease is None or self.is_lost else lease.until_ms


class Leaseholder:
    """The leases of one worker, called `name`.

    `told_rest` is called whenever a hostname was given up because there is nothing to do for it
    until then (epoch milliseconds).
    """

    def __init__(
        self,
        documents: Documents,
        clock: SharedClock,
        grace: Grace,
        *,
        name: str,
        jitter: Callable[[], float],
        told_rest: Callable[[Hostname, int], None],
    ) -> None:
        self._documents = documents
        self._clock = clock
        self._grace = grace
        self._name = name
        self._jitter = jitter
        self._told_rest = told_rest

    async def lease(self, hostname: Hostname) -> Document | None:
        """Lease a hostname that has work due; None when it has none, or is another worker's."""
        if not self._clock.is_set:
            await self._clock.sync()

        def decide(document: Document) -> Change | None:
            now_ms = self._clock.now_ms()
            if self._is_anothers(document.lease, now_ms):
                return None
            item = agenda.next_item(document, now_ms)
            if item.work is Work.REST:
                return Change({"lease": None}, item.until_ms, touches_due=True)
            fence = max(document.fence + 1, now_ms)
            lease = Lease(self._name, fence, now_ms + LEASE_MS)
            return Change({"lease": lease, "fence": fence}, lease.until_ms, touches_due=True)

        document = await self._documents.change(hostname, decide)
        self._tell_of_rest(document)
        mine = document.lease is not None and document.lease.worker == self._name
        return document if mine else None

    def is_fresh(self, document: Document) -> bool:
        """Whether its lease need not be renewed before another call."""
        until_ms = document.lease.until_ms if document.lease is not None else 0
        return self._clock.now_ms() <= until_ms - LEASE_MS + RENEW_EVERY_MS

    def change(self, current: Document, fields: Mapping[str, object], *, keep: bool) -> Change:
        """The change with the lease renewed, or given up when there is nothing more to do now."""
        now_ms = self._clock.now_ms()
        if not keep:
            after = replace(current, **fields)  # type: ignore[arg-type]
            item = agenda.next_item(after, now_ms)
            if item.work is Work.REST:
                return Change({**fields, "lease": None}, item.until_ms, touches_due=True)
        lease = Lease(self._name, current.fence, now_ms + LEASE_MS)
        return Change({**fields, "lease": lease}, lease.until_ms, touches_due=True)

    async def write(self, document: Document, decide: Callable[[Document], Change]) -> Document:
        """Commit under the lease.

        Raises:
            LeaseLost: when the document is no longer leased under this fencing number.
        """
        fence = document.fence

        def decide_fenced(current: Document) -> Change:
            lease = current.lease
            if lease is None or lease.worker != self._name or lease.fence != fence:
                raise LeaseLost(current.hostname)
            return decide(current)

        stored = await self._documents.commit(document, decide(document))
        if stored is None:
            stored = await self._documents.change(document.hostname, decide_fenced)
        self._tell_of_rest(stored)
        return stored

    async def write_at_last(
        self, document: Document, decide: Callable[[Document], Change]
    ) -> Document:
        """Commit under the lease what nobody else knows, however long that cannot be done.

        Raises LeaseLost.
        """
        return await self._at_last(document.hostname, lambda: self.write(document, decide))

    async def disown(self, hostname: Hostname, left: Debt) -> None:
        """Enter what a step has left outside as a debt, unless the issuance under way needs it."""

        def decide(current: Document) -> Change | None:
            known = agenda.debts_of(current)
            owed = debts.with_debts(known, (left,))
            if owed == known or debts.is_relied_on(left, agenda.issuance_of(current)):
                return None
            now_ms = self._clock.now_ms()
            # Whoever holds the lease looks at the debts before giving it up.
            leased = current.lease is not None and not leases.has_lapsed(current.lease, now_ms)
            return Change({"debts": debts.as_stored(owed)}, now_ms, touches_due=not leased)

        await self._at_last(hostname, lambda: self._documents.change(hostname, decide))

    async def hold(self, document: Document, call: Coroutine[None, None, _T]) -> _T:
        """Await a call, renewing the lease as long as it takes.

        A call that has begun is waited for, whatever becomes of the lease and of Redis: what came
        of it is stored, or entered as a debt. But once the lease has lapsed it sends nothing more.

        Raises:
            LeaseOver: the call was about to send something then.
        """
        held = _Held(document)

        def guard() -> None:
            if self._clock.now_ms() > held.until_ms - MARGIN_MS:
                raise LeaseOver(document.hostname)

        # A task to renew only for calls that take so long: one for each call was a fifteenth of an
        # issuance's processor time.
        renewing: list[asyncio.Task[None]] = []
        loop = asyncio.get_running_loop()
        timer = loop.call_later(
            RENEW_EVERY_MS / 1000,
            lambda: renewing.append(loop.create_task(self._renew(held))),
        )
        try:
            with leases.guarded_by(guard):
                result = await call
        finally:
            timer.cancel()
            for task in renewing:
                task.cancel()
        caller = asyncio.current_task()
        if caller is not None and caller.cancelling():
            # The call outlasted that; what came of it is not for a process that ends.
            raise asyncio.CancelledError
        return result

    async def _renew(self, held: _Held) -> None:
        """Renew a lease over and over, until this task is cancelled."""
        while True:
            try:
                held.document = await self.write(
                    held.document, lambda now: self.change(now, {}, keep=True)
                )
            except LeaseLost:
                held.is_lost = True
                return
            except StoreUnavailable:
                self._grace.note_outage()
            except (Contended, StoreRefused):
                hostname = held.document.hostname
                _log.warning("lease not renewed", hostname=hostname, exc_info=True)
            await asyncio.sleep(RENEW_EVERY_MS / 1000)

    async def hand_over(self, document: Document) -> None:
        """Give the lease up so that another worker goes on at once."""
        await self.write(
            document, lambda _: Change({"lease": None}, self._clock.now_ms(), touches_due=True)
        )

    def _is_anothers(self, lease: Lease | None, now_ms: int) -> bool:
        if lease is None or lease.worker == self._name:
            return False
        return not leases.has_lapsed(lease, now_ms) or not self._grace.is_over()

    def _tell_of_rest(self, document: Document) -> None:
        if document.lease is not None:
            return
        now_ms = self._clock.now_ms()
        item = agenda.next_item(document, now_ms)
        at_ms = item.until_ms if item.work is Work.REST else now_ms
        if at_ms is not None:
            self._told_rest(document.hostname, at_ms)

    async def _at_last(self, hostname: Hostname, write: Callable[[], Awaitable[_T]]) -> _T:
        """Write until it is done, or this process ends."""
        is_told = False
        while True:
            try:
                return await write()
            except StoreUnavailable:
                self._grace.note_outage()
                reason = "waiting for Redis to store a step"
            except Contended:
                reason = "waiting for others to store a step"
            except StoreRefused as refused:
                reason = f"{refused}; trying again to store a step"
            if not is_told:
                _log.warning(reason, hostname=hostname)
                is_told = True
            await asyncio.sleep(RETRY_SECONDS * (1 + self._jitter()))
