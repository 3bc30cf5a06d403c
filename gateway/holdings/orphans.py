"""Orphans: intents to publish a record that nothing came of, or can come of.

A hostname is taken for a record before the zone is touched, so a crash in between holds it until
its owner calls again, which may be never. When another ownership asks for the hostname, an intent
that is older than any call is judged by the zone, and given up if nothing is at the name.

An intent of any age gives way to the ownership whose own record the zone carries (Redis was
emptied, or an operator put the record back): it can only come to a conflict, and must not make that
ownership's calls come to one meanwhile.

Where the record did get into the zone, the hostname is rightly held. Where something else lies
there, nobody else could have the hostname either. A call whose intent was given up, and that goes
on, finds that it holds nothing any more, and takes out again what it published (`records`).
Called by `records` and `certificates`.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from gateway.dns.outcome import OutcomeKind
from gateway.dns.owner import Owner
from gateway.holdings.hold import given_up
from gateway.store.documents import Change, Document

if TYPE_CHECKING:
    from collections.abc import Callable

    from gateway.dns.publisher import Publisher
    from gateway.holdings.hold import Holds
    from gateway.store.documents import Documents, Holder

ORPHAN_AGE_MS: Final = 30_000
"""Three times the longest call."""

ZONE_BOUND_SECONDS: Final = 2.0


def is_intent(document: Document) -> bool:
    """Whether all that holds the hostname is an intent to publish a record."""
    record = document.record
    is_published = record is None or record["published"]
    return not (is_published or document.certificate or document.issuance)


def is_orphan(document: Document, now_ms: int) -> bool:
    """Whether all that holds the hostname is an intent that no call can still be carrying out."""
    record = document.record
    if record is None or not is_intent(document):
        return False
    # An intent of an older release does not say since when it is one.
    since_ms: int = record.get("sinceMs", now_ms)
    return now_ms - since_ms > ORPHAN_AGE_MS


class Orphans:
    """Gives orphans up. Raises `StoreUnavailable`."""

    def __init__(
        self,
        documents: Documents,
        holds: Holds,
        publisher: Publisher,
        now_ms: Callable[[], int],
    ) -> None:
        self._documents = documents
        self._holds = holds
        self._publisher = publisher
        self._now_ms = now_ms

    async def without_orphan(self, document: Document, asker: Owner) -> Document:
        """The document as it is once an orphan in it is given up; the same where there is none."""
        holder = document.holder
        if holder is None or document.claim is not None or not is_intent(document):
            return document
        if not await self._is_vain(document, holder, asker):
            return document

        def decide(now: Document) -> Change | None:
            is_same = now.holder == holder and is_intent(now) and now.record == document.record
            return Change(given_up(now, {"record": None})) if is_same else None

        after = await self._documents.change(document.hostname, decide)
        await self._holds.forget(after, holder)
        return after

    async def _is_vain(self, document: Document, holder: Holder, asker: Owner) -> bool:
        """Does the zone say that nothing came of the intent, or that it is the asker's name?"""
        owner = Owner(holder.client_id, holder.app_id, document.hostname)
        deadline = asyncio.get_running_loop().time() + ZONE_BOUND_SECONDS
        if is_orphan(document, self._now_ms()):
            outcome = await self._publisher.inspect(owner, deadline=deadline)
            if outcome.kind is OutcomeKind.FREE:
                return True
        outcome = await self._publisher.inspect(asker, deadline=deadline)
        return outcome.kind is OutcomeKind.OURS
