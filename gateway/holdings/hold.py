"""Holds: judging who holds a hostname (pure), and taking and leaving one.

A hostname is held by one ownership at a time, through its record, its certificate or an issuance;
an operator's claim holds it against every client. Foreign DNS records are the third holder, which
only the zone can tell; `records` and `certificates` ask it.
"""

from __future__ import annotations

from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from gateway.certificates import debts
from gateway.certificates.agenda import debts_of, issuance_of
from gateway.contract import Overloaded, Unauthorized
from gateway.dns.owner import Owner
from gateway.holdings.quotas import Kind, Quota, Quotas
from gateway.store.connection import EntryRefused
from gateway.store.documents import Change, Document, Documents, Holder
from gateway.store.faults import KeysApart

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gateway.contract.names import ClientId, Hostname
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
        return self in (Hold.CLAIMED, Hold.ANOTHERS)


class HeldByAnother(Exception):
    """The hostname came to be held by something else while it was being taken."""


def hold_for(document: Document, holder: Holder) -> Hold:
    """Who holds the hostname, as seen by `holder`."""
    if document.claim is not None:
        return Hold.CLAIMED
    if document.holder is None:
        return Hold.FREE
    return Hold.MINE if document.holder == holder else Hold.ANOTHERS


def owner_of(document: Document) -> Owner | None:
    """The ownership that holds the hostname, with its hostname."""
    holder = document.holder
    if holder is None:
        return None
    return Owner(holder.client_id, holder.app_id, document.hostname)


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


def without_certificate(
    document: Document, now_ms: int, also_without: Mapping[str, object] = MappingProxyType({})
) -> Change:
    """Give up the certificate, its key and any issuance under way; what that leaves is owed."""
    owed = _owed_without(document)
    gone = {"certificate": None, "issuance": None, "lease": None, **also_without}
    fields = given_up(document, gone)
    fields["debts"] = owed
    return Change(fields, now_ms if owed else None, touches_due=True)


def _owed_without(document: Document) -> tuple[dict[str, Any], ...]:
    """All that is owed once the issuance is dropped, as a document holds it."""
    try:
        issuance = issuance_of(document)
        more = () if issuance is None else debts.debts_of_release(issuance)
        return debts.as_stored(debts.with_debts(debts_of(document), more))
    except (KeyError, TypeError, ValueError):
        # Of a newer release, or altered: that must not make it impossible to give up.
        return document.debts


class Holds:
    """Takes and leaves hostnames, keeping each client's index a superset of what it holds.

    One step of Redis finds that the client exists, enters the hostname in its index and changes the
    document, or does none of it: no crash and no lost answer leaves the one without the other, and
    no client is removed in between. What a call that gives the hostname up takes out of the index
    right after that, it puts back itself (`forget`). It is one wait for Redis' disk; three steps
    were three, and a tenth of the CPU of a call for a new name.

    Where Redis has slots, they are two steps. The index goes first, so that it has an entry too
    many if the second one never comes; and is entered again afterwards, since a call that gave the
    hostname up may have taken the entry out meanwhile, and the client may have been removed upon
    that: then all of it is given up.
    """

    def __init__(
        self,
        documents: Documents,
        index: HoldingsIndex,
        now_ms: Callable[[], int],
        quota_of: Callable[[ClientId], Quota] = lambda _: Quota(),
    ) -> None:
        self._documents = documents
        self._index = index
        self._now_ms = now_ms
        self._quota_of = quota_of
        self._quotas = Quotas(documents, index, quota_of, now_ms)

    async def take(
        self,
        hostname: Hostname,
        holder: Holder,
        choose: Callable[[Document], Change],
        *,
        instead_of: Holder | None = None,
        newly: Kind | None = None,
        seen: Document | None = None,
    ) -> Document:
        """Hold a hostname, or go on holding it, with the change that `choose` (pure) wants.

        `instead_of` is a holder that gives way; the caller has its index forget it afterwards.
        `newly` is what the client comes to hold of it: its quota must have room. `seen` is its
        document as the caller has read it, free or the holder's own (`Documents.change`).

        Raises:
            HeldByAnother: nothing was changed.
            Overloaded: the client may hold no more of these; nothing was changed.
            Unauthorized: the client was removed meanwhile.
        """

        def decide(document: Document) -> Change:
            gives_way = document.claim is None and document.holder == instead_of
            if hold_for(document, holder).is_conflict and not gives_way:
                raise HeldByAnother(hostname)
            change = choose(document)
            fields = {**change.fields, "holder": holder}
            return Change(fields, change.due_ms, change.touches_due)

        is_limited = newly is not None and self._quota_of(holder.client_id).of(newly) > 0
        # Of calls at once the later ones count what the earlier ones entered before they reserved.
        if is_limited or self._index.is_apart:
            await self._enter(hostname, holder)
        if newly is None or not is_limited:
            return await self._take(hostname, holder, decide, seen)
        try:
            async with self._quotas.room(newly, holder.client_id, hostname):
                return await self._take(hostname, holder, decide, seen)
        except Overloaded:
            await self.forget(await self._documents.read(hostname), holder)
            raise

    async def _take(
        self,
        hostname: Hostname,
        holder: Holder,
        decide: Callable[[Document], Change],
        seen: Document | None,
    ) -> Document:
        if not self._index.is_apart:
            entry = self._index.entry(holder.client_id, self._now_ms())
            try:
                return await self._documents.change(hostname, decide, seen, entry)
            except EntryRefused:
                raise Unauthorized from None
            except KeysApart:  # it has slots, though its URL names no Cluster
                await self._enter(hostname, holder)
        document = await self._documents.change(hostname, decide, seen)
        try:
            await self._enter(hostname, holder)
        except Unauthorized:
            await self._give_up(hostname, holder)
            raise
        return document

    async def _enter(self, hostname: Hostname, holder: Holder) -> None:
        """Enter the index. Raises Unauthorized when there is no such client (any more)."""
        if not await self._index.enter(holder.client_id, hostname, self._now_ms()):
            raise Unauthorized

    async def _give_up(self, hostname: Hostname, holder: Holder) -> None:
        """Take back all that a client came to hold of a hostname after it was removed."""

        def decide(document: Document) -> Change | None:
            if document.holder != holder:
                return None
            return without_certificate(document, self._now_ms(), {"record": None})

        await self._documents.change(hostname, decide)

    async def forget(self, document: Document, holder: Holder) -> None:
        """Leave the index if the document shows that the client holds the hostname no more."""
        client_id = holder.client_id
        if _client_of(document) != client_id:
            await self._index.leave(client_id, document.hostname, self._now_ms())
            # Taken again before the entry was gone, be it for another `appId`: it must be there.
            if _client_of(await self._documents.read(document.hostname)) == client_id:
                await self._index.enter(client_id, document.hostname, self._now_ms())


def _client_of(document: Document) -> ClientId | None:
    return None if document.holder is None else document.holder.client_id
