"""Quotas: how many hostnames a client may hold with a record, and how many with a certificate.

Responsible for judging whether one more may be taken; what is held already is never looked at, goes
on working and is renewed. Must not: take or give up anything. Called by `holdings.hold`, around the
taking of a hostname that was entered in the client's index, and for what is held by now by the
operator's page. Whoever answers calls counts what is refused here: a rehearsal is refused, too.

What counts is what the documents say, not a counter that could drift from them, and what others are
taking right now, which no document says yet. For that a call reserves its place first, in Redis and
in one order for all processes; so of any two calls at once the later one counts the earlier, and no
more are taken than the quota allows. A call that died keeps its place for some seconds.
"""

from __future__ import annotations

import contextlib
import secrets
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final

from gateway.contract import Overloaded
from gateway.contract.names import Hostname
from gateway.store.connection import StoreUnavailable
from gateway.store.documents import READ_AT_ONCE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from gateway.contract.names import ClientId
    from gateway.store.documents import Documents
    from gateway.store.holdings_index import HoldingsIndex

FULL_RETRY_MS: Final = 3_600_000
"""Only giving something up makes room, and nobody knows when."""

CALLS_RETRY_MS: Final = 2_000
"""When it is up to calls under way, whose outcome will be known."""

CALL_MS: Final = 15_000
"""A reservation this old is of a call that died: none takes longer than 10 seconds."""

_BETWEEN: Final = ":"


class Kind(Enum):
    """What a hostname is held with: the fields of a document that say so."""

    RECORD = ("record",)
    CERTIFICATE = ("certificate", "issuance")


class QuotaReached(Overloaded):
    """There is no room. `limit` is what figures call it: `records` or `certificates`."""

    def __init__(self, kind: Kind, retry_after_ms: int, text: str) -> None:
        super().__init__(retry_after_ms, text)
        self.limit = "records" if kind is Kind.RECORD else "certificates"


@dataclass(frozen=True, slots=True)
class Quota:
    """How many of each kind one client may hold; 0 is any number."""

    records: int = 0
    certificates: int = 0

    def of(self, kind: Kind) -> int:
        """The figure for a kind."""
        return self.records if kind is Kind.RECORD else self.certificates


class Quotas:
    """The quotas of all clients. `quota_of` says what one may hold."""

    def __init__(
        self,
        documents: Documents,
        index: HoldingsIndex,
        quota_of: Callable[[ClientId], Quota],
        now_ms: Callable[[], int],
    ) -> None:
        self._documents = documents
        self._index = index
        self._quota_of = quota_of
        self._now_ms = now_ms

    @contextlib.asynccontextmanager
    async def room(
        self, kind: Kind, client_id: ClientId, hostname: Hostname
    ) -> AsyncIterator[None]:
        """Room for one more of a kind, reserved while the block takes it.

        Raises:
            QuotaReached: there is none.
            StoreUnavailable: nobody can tell.
        """
        most = self._quota_of(client_id).of(kind)
        if most == 0:
            yield
            return
        call = _BETWEEN.join((kind.name, hostname, secrets.token_hex(8)))
        try:
            earlier = await self._index.reserve(client_id, call, self._now_ms(), CALL_MS)
            await self._demand(most, kind, client_id, hostname, _hostnames(kind, earlier, call))
            yield
        finally:
            # Otherwise it ends by itself.
            with contextlib.suppress(StoreUnavailable):
                await self._index.give_back(client_id, call)

    async def held(self, client_id: ClientId, at_most: int) -> dict[Kind, int] | None:
        """How many hostnames a client holds with each kind by now.

        None where its index has more than `at_most`: each of them is read to tell.
        """
        names = [name for name, _ in await self._index.newest(client_id, at_most + 1)]
        if len(names) > at_most:
            return None
        held = dict.fromkeys(Kind, 0)
        for start in range(0, len(names), READ_AT_ONCE):
            page = names[start : start + READ_AT_ONCE]
            for kind in Kind:
                held[kind] += sum(await self._documents.are_held(client_id, page, kind.value))
        return held

    async def _demand(
        self,
        most: int,
        kind: Kind,
        client_id: ClientId,
        hostname: Hostname,
        taking: set[Hostname],
    ) -> None:
        others = [name for name, _ in await self._index.entries(client_id) if name != hostname]
        if len(others) < most:
            return  # whatever they are held with: none is missing in the index
        held = 0
        for start in range(0, len(others), READ_AT_ONCE):
            page = others[start : start + READ_AT_ONCE]
            are_held = await self._documents.are_held(client_id, page, kind.value)
            of_page = {name for name, is_held in zip(page, are_held, strict=True) if is_held}
            held += len(of_page)
            taking = taking - of_page
            if held >= most:
                raise QuotaReached(kind, FULL_RETRY_MS, f"{_what(kind, most)}: give one up first.")
        if held + len(taking - {hostname}) >= most:
            text = f"{_what(kind, most)}, if all calls under way come to something."
            raise QuotaReached(kind, CALLS_RETRY_MS, text)


def _hostnames(kind: Kind, calls: Sequence[str], own: str) -> set[Hostname]:
    """What the calls before this one are taking of this kind."""
    before = calls[: calls.index(own)]
    parts = [call.split(_BETWEEN) for call in before]
    return {Hostname(each[1]) for each in parts if each[0] == kind.name and each[1:]}


def _what(kind: Kind, most: int) -> str:
    return f"The client holds as many hostnames with a {kind.name.lower()} as it may ({most})"
