"""`/operator/clients/<id>`: one client's policy, credentials, limits and holdings.

Each part that can't be read is a sentence in its place. Must not: change anything, or show what
could be a token. Called through `frame`.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gateway.holdings.quotas import Kind
from gateway.http.page.client_paths import client_id_of
from gateway.http.page.faults import PageFault
from gateway.http.page.pieces import piece
from gateway.http.page.shapes import Page, Shown, path_to

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gateway.access.clients import Client
    from gateway.contract.names import ClientId, CredentialId
    from gateway.http.page.parts import PageParts
    from gateway.http.page.shapes import Visit

HOLDINGS_SHOWN: Final = 50
COUNTED_AT_MOST: Final = 2_000
"""Where a client may hold more, they are not counted by kind: each is read for that."""


@dataclass(frozen=True, slots=True)
class CredentialRow:
    """One credential. Times are epoch milliseconds; the last use is known to the minute.

    `is_gone`: the client has it no more, and of it no more is known than its last use.
    """

    credential_id: str
    created_at_ms: int | None
    expires_at_ms: int | None
    is_live: bool
    last_used_ms: int | None
    is_gone: bool = False


@dataclass(frozen=True, slots=True)
class QuotaRow:
    """How many hostnames a client holds with something, and may; 0 is any number.

    `held` is None where there are too many to count.
    """

    what: str
    held: int | None
    most: int


class OneClient:
    """The page of a client."""

    def __init__(self, parts: PageParts) -> None:
        self._parts = parts

    def pages(self) -> tuple[Page, ...]:
        """Where it is."""
        return (Page("/clients/{client}", "client.html", self.show),)

    async def show(self, visit: Visit) -> Shown:
        """What there is to tell of it."""
        parts, client_id = self._parts, client_id_of(visit)
        client = await known_client(parts, client_id)
        uses, rate, quotas, newest, counts = await asyncio.gather(
            piece(parts.last_uses.of, client_id),
            piece(parts.rates.use_of, client_id),
            piece(self._quotas, client_id),
            piece(parts.holdings.newest, client_id, HOLDINGS_SHOWN),
            piece(parts.holdings.counts, [client_id]),
        )
        return Shown(
            {
                "client": client,
                "credentials": credential_rows(client, uses.value or {}, visit.now_ms),
                "uses_fault": uses.fault,
                "rate": rate,
                "quotas": quotas,
                "newest": newest,
                "holds": counts.value[0] if counts.value else None,
            }
        )

    async def _quotas(self, client_id: ClientId) -> list[QuotaRow]:
        quota = self._parts.quota_of(client_id)
        held = await self._parts.quotas.held(client_id, COUNTED_AT_MOST)
        return [
            QuotaRow(what, None if held is None else held[kind], quota.of(kind))
            for what, kind in (("a record", Kind.RECORD), ("a certificate", Kind.CERTIFICATE))
        ]


async def known_client(parts: PageParts, client_id: ClientId) -> Client:
    """A client that there is.

    Raises:
        PageFault: there is none (404).
        ClientUnreadable: what Redis has of it is in no shape that this release knows.
    """
    stored = await parts.clients.by_id(client_id)
    if stored is None:
        link = path_to("audit", client=client_id), "What the audit trail has of it"
        raise PageFault(404, f"There is no client {client_id}.", link=link)
    return stored.client


def credential_rows(
    client: Client, used: Mapping[CredentialId, int], now_ms: int
) -> list[CredentialRow]:
    """The credentials at `now_ms`, the newest first; then those that are gone. Pure."""
    known = {each.credential_id for each in client.credentials}
    gone = sorted((at_ms, name) for name, at_ms in used.items() if name not in known)
    return [
        *(
            CredentialRow(
                each.credential_id,
                each.created_at_ms,
                each.expires_at_ms,
                each.is_live_at(now_ms),
                used.get(each.credential_id),
            )
            for each in reversed(client.credentials)
        ),
        *(
            CredentialRow(name, None, None, is_live=False, last_used_ms=at_ms, is_gone=True)
            for at_ms, name in reversed(gone)
        ),
    ]
