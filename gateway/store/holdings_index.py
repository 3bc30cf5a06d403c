"""Each client's index of hostnames, for listing and for removing a client.

The index is entered in the step that takes a hostname, or, where Redis has slots, before that and
again after it; it is left after the hostname is given up. So it never misses a hostname that is
held; a crash may leave an entry too many, which whoever reads it checks against the hostname's
document. Entering demands in the same atomic step that the client still exists, and a client is
dropped only while its index is empty: so no call that was admitted before a removal can take hold
of anything after it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gateway.contract.names import Hostname
from gateway.moments import LATEST_MS
from gateway.store import keys
from gateway.store.connection import Entry

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gateway.contract.names import ClientId
    from gateway.store.connection import Store

_ANY_SCORE: Final = 1 << 53
"""Later than any time."""


class HoldingsIndex:
    """The hostnames of each client. Every method raises `StoreUnavailable` without Redis."""

    def __init__(self, store: Store) -> None:
        self._store = store

    @property
    def is_apart(self) -> bool:
        """Whether no step can change a hostname's document and enter the hostname as well."""
        return self._store.has_slots

    def entry(self, client_id: ClientId, now_ms: int) -> Entry:
        """The entry of a hostname, for the step that takes it, unless the index `is_apart`."""
        mark = keys.fingerprint(client_id)
        return Entry(keys.client_key(mark), keys.client_holdings_key(mark), str(now_ms))

    async def enter(self, client_id: ClientId, hostname: Hostname, now_ms: int) -> bool:
        """Enter a hostname; False when there is no such client (any more)."""
        mark = keys.fingerprint(client_id)
        entered = await self._store.commit(
            keys.client_key(mark),
            keys.client_holdings_key(mark),
            expected_version="*",
            member=hostname,
            score=str(now_ms),
        )
        return entered is not None

    async def leave(self, client_id: ClientId, hostname: Hostname, entered_until_ms: int) -> None:
        """Take a hostname out, unless it was entered anew after `entered_until_ms`; repeatable."""
        key = keys.client_holdings_key(keys.fingerprint(client_id))
        await self._store.remove_member(key, hostname, up_to_score=entered_until_ms)

    async def reserve(
        self, client_id: ClientId, call: str, now_ms: int, lifetime_ms: int
    ) -> list[str]:
        """Have a call that takes something seen by others; all such calls, first to last."""
        key = keys.client_taking_key(keys.fingerprint(client_id))
        return await self._store.reserve(key, call, now_ms, lifetime_ms)

    async def give_back(self, client_id: ClientId, call: str) -> None:
        """A call takes nothing any more; repeatable."""
        key = keys.client_taking_key(keys.fingerprint(client_id))
        await self._store.remove_member(key, call, up_to_score=_ANY_SCORE)

    async def entries(self, client_id: ClientId) -> list[tuple[Hostname, int]]:
        """Every hostname entered, with the epoch milliseconds of its (last) entry."""
        key = keys.client_holdings_key(keys.fingerprint(client_id))
        return _timed(await self._store.members(key))

    async def newest(self, client_id: ClientId, limit: int) -> list[tuple[Hostname, int]]:
        """The hostnames entered last, the newest first, as `entries` tells them."""
        key = keys.client_holdings_key(keys.fingerprint(client_id))
        return _timed(await self._store.highest_members(key, limit))

    async def page(
        self, client_id: ClientId, after: Hostname | None, limit: int
    ) -> list[tuple[Hostname, int]] | None:
        """As `newest`, of those that come behind `after`; None when that is not entered any more.

        What is entered or left meanwhile moves the others: one may be told twice.
        """
        key = keys.client_holdings_key(keys.fingerprint(client_id))
        rank = -1 if after is None else await self._store.rank_from_highest(key, after)
        if rank is None:
            return None
        return _timed(await self._store.highest_members(key, limit, rank + 1))

    async def counts(self, client_ids: Sequence[ClientId]) -> list[int]:
        """How many hostnames are entered for each client, in the same order."""
        names = [keys.client_holdings_key(keys.fingerprint(each)) for each in client_ids]
        return await self._store.member_counts(names)


def _timed(members: Sequence[tuple[str, float]]) -> list[tuple[Hostname, int]]:
    """Hostnames with the times that their scores are; infinity, which others may enter, is none."""
    return [(Hostname(hostname), int(min(max(score, 0), LATEST_MS))) for hostname, score in members]
