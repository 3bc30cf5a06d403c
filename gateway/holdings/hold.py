"""Holds: judging who holds a hostname (pure), and taking and leaving one.

A hostname is held by one ownership at a time, through its record, its certificate or an issuance;
an operator's claim holds it against every client. Foreign DNS records are the third holder, which
only the zone can tell; `records` and `certificates` ask it.
"""

from __future__ import annotations

from dataclasses import replace
from enum import Enum
from typing import TYPE_CHECKING

from gateway.contract import Unauthorized

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gateway.contract.names import Hostname
    from gateway.store.documents import Change, Document, Documents, Holder
    from gateway.store.holdings_index import HoldingsIndex


class Hold(Enum):
    """Who holds a hostname, as seen by one ownership."""

    FREE = "free"
    MINE = "mine"
    CLAIMED = "claimed"
    ANOTHERS = "another's"

    @property
    def is_conflict(self) -> bool:
        """Whether it is held against the ownership."""
        return self in {Hold.CLAIMED, Hold.ANOTHERS}


class HeldByAnother(Exception):
    """The hostname came to be held by something else while it was being taken."""


def hold_for(document: Document, holder: Holder) -> Hold:
    """Who holds the hostname, as seen by `holder`."""
    if document.claim is not None:
        return Hold.CLAIMED
    if document.holder is None:
        return Hold.FREE
    return Hold.MINE if document.holder == holder else Hold.ANOTHERS


def is_established(document: Document, holder: Holder) -> bool:
    """Whether this ownership's hold has been judged against the zone already.

    A record that was only about to be published (its outcome is not known yet) proves nothing.
    """
    if document.holder != holder:
        return False
    record = document.record
    published = record is not None and bool(record.get("published"))
    return published or document.certificate is not None or document.issuance is not None


def given_up(document: Document, without: Mapping[str, object]) -> dict[str, object]:
    """The fields to change when `without` is applied; the holder goes with the last of them."""
    after = {
        name: without.get(name, getattr(document, name))
        for name in ("record", "certificate", "issuance")
    }
    is_last = all(value is None for value in after.values())
    return {**without, "holder": None} if is_last else dict(without)


class Holds:
    """Takes and leaves hostnames, keeping each client's index a superset of what it holds."""

    def __init__(
        self, documents: Documents, index: HoldingsIndex, now_ms: Callable[[], int]
    ) -> None:
        self._documents = documents
        self._index = index
        self._now_ms = now_ms

    async def take(
        self, hostname: Hostname, holder: Holder, choose: Callable[[Document], Change]
    ) -> Document:
        """Hold a hostname, or go on holding it, with the change that `choose` (pure) wants.

        Raises:
            HeldByAnother: nothing was changed.
            Unauthorized: the client was removed meanwhile.
        """
        if not await self._index.enter(holder.client_id, hostname, self._now_ms()):
            raise Unauthorized

        def decide(document: Document) -> Change:
            if hold_for(document, holder).is_conflict:
                raise HeldByAnother(hostname)
            change = choose(document)
            return replace(change, fields={**change.fields, "holder": holder})

        document = await self._documents.change(hostname, decide)
        # A call that gave the hostname up may have taken the entry away after it was entered.
        if not await self._index.enter(holder.client_id, hostname, self._now_ms()):
            raise Unauthorized
        return document

    async def forget(self, document: Document, holder: Holder) -> None:
        """Leave the index if the document shows that nothing is held any more."""
        if document.holder != holder:
            await self._index.leave(holder.client_id, document.hostname, self._now_ms())
            # Taken again before the entry was gone: then it must be there.
            if (await self._documents.read(document.hostname)).holder == holder:
                await self._index.enter(holder.client_id, document.hostname, self._now_ms())
