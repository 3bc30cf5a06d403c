"""`/operator/clients`: the clients by id, a page at a time.

Responsible for what was asked for, and for one row a client. Must not: change anything. Called
through `frame`.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gateway.access.clients import Client
from gateway.contract.bounds import GATEWAY_CLIENT_HOSTNAME_CONTRACT as BOUNDS
from gateway.http.page.pieces import piece
from gateway.http.page.shapes import Page, Shown, path_to

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gateway.contract.names import CredentialId
    from gateway.http.page.parts import PageParts
    from gateway.http.page.shapes import Visit

SHOWN: Final = 50
_PATTERNS_SHOWN: Final = 3


@dataclass(frozen=True, slots=True)
class Row:
    """One client. `more_patterns` counts those that are not shown.

    `holds` is None where that is not known; `last_used_ms` then too, and where no use is noted.
    """

    client_id: str
    client_type: str
    patterns: tuple[str, ...]
    more_patterns: int
    live: int
    expired: int
    last_used_ms: int | None
    holds: int | None
    is_use_known: bool = True


class Clients:
    """The list."""

    def __init__(self, parts: PageParts) -> None:
        self._parts = parts

    def pages(self) -> tuple[Page, ...]:
        """Where it is."""
        return (Page("/clients", "clients.html", self.show),)

    async def show(self, visit: Visit) -> Shown:
        """A page of the list."""
        longest = BOUNDS.max_app_id_characters
        prefix, after = visit.query.text("prefix"), visit.query.raw("after")
        is_too_long = len(prefix) > longest
        found = await self._parts.clients.page(prefix[: longest + 1], after, SHOWN)
        clients = [each for each in found.clients if isinstance(each, Client)]
        rows = await self._rows(clients, visit.now_ms)
        context = {
            "prefix": prefix,
            "fault": f"A client's id has {longest} characters at most." if is_too_long else None,
            "rows": [rows.get(each.client_id, each) for each in found.clients],
            "count": (await piece(self._parts.clients.count)).value,
            "first_url": path_to("clients", prefix=prefix) if after else None,
            "next_url": (
                None
                if found.after is None
                else path_to("clients", prefix=prefix, after=found.after)
            ),
        }
        return Shown(context, 400 if is_too_long else 200)

    async def _rows(self, clients: Sequence[Client], now_ms: int) -> dict[str, Row]:
        client_ids = [client.client_id for client in clients]
        counts, uses = await asyncio.gather(
            piece(self._parts.holdings.counts, client_ids),
            piece(self._parts.last_uses.of_each, client_ids),
        )
        holds = dict(zip(client_ids, counts.value or (), strict=False))
        used = uses.value
        return {
            each.client_id: row_of(
                each,
                now_ms,
                holds.get(each.client_id),
                None if used is None else used.get(each.client_id, {}),
            )
            for each in clients
        }


def row_of(
    client: Client, now_ms: int, holds: int | None, used: Mapping[CredentialId, int] | None
) -> Row:
    """The row of a client at `now_ms`, by when its credentials were used last, if known. Pure."""
    live = sum(each.is_live_at(now_ms) for each in client.credentials)
    return Row(
        client_id=client.client_id,
        client_type=client.client_type,
        patterns=client.hostname_patterns[:_PATTERNS_SHOWN],
        more_patterns=max(0, len(client.hostname_patterns) - _PATTERNS_SHOWN),
        live=live,
        expired=len(client.credentials) - live,
        # Of a credential that was revoked since, too.
        last_used_ms=max((used or {}).values(), default=None),
        holds=holds,
        is_use_known=used is not None,
    )
