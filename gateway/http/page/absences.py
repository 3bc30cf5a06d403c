"""Which holders make no calls any more: removed, revoked, or without a live token.

Must not: keep a page from being shown; where a client can't be read, nothing is said of it. Called
by the pages that show who holds what.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway.access.clients import Client, ClientUnreadable
from gateway.access.gate import absence_of, why_not_renewed
from gateway.holdings.own_certificate import THE_GATEWAY
from gateway.http.page.pieces import piece
from gateway.store.documents import Document, Unreadable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gateway.access.clients import ClientStore
    from gateway.access.gate import Absence
    from gateway.contract.names import ClientId, Hostname


async def absences_of(
    clients: ClientStore, documents: Sequence[Document | Unreadable], now_ms: int
) -> Mapping[ClientId, Absence]:
    """Why the holders of these documents make no calls, of those that make none."""
    found = await _holders(clients, documents)
    absences = {client_id: absence_of(client, now_ms) for client_id, client in found.items()}
    return {client_id: why for client_id, why in absences.items() if why is not None}


async def denials_of(
    clients: ClientStore, documents: Sequence[Document | Unreadable], now_ms: int
) -> Mapping[Hostname, str]:
    """Why no new certificate is ordered for these hostnames, where their holders may have none."""
    found = await _holders(clients, documents)
    denials = {
        document.hostname: why_not_renewed(found[holder.client_id], document.hostname, now_ms)
        for document in documents
        if isinstance(document, Document)
        and (holder := document.holder) is not None
        and holder.client_id in found
    }
    return {hostname: why for hostname, why in denials.items() if why is not None}


async def _holders(
    clients: ClientStore, documents: Sequence[Document | Unreadable]
) -> dict[ClientId, Client | None]:
    """The clients that hold these; None of one that is gone. Without those that can't be read."""
    holders = [each.holder for each in documents if isinstance(each, Document) and each.holder]
    client_ids = list(dict.fromkeys(each.client_id for each in holders if each != THE_GATEWAY))
    if not client_ids:
        return {}
    read = (await piece(clients.some, client_ids)).value
    if read is None:
        return {}
    unreadable = {each.client_id for each in read if isinstance(each, ClientUnreadable)}
    known = {each.client_id: each for each in read if isinstance(each, Client)}
    return {each: known.get(each) for each in client_ids if each not in unreadable}
