"""Writing into Redis what a zone proves: an ownership's record, and with it the hold.

The zone is read before and after. A record that was withdrawn in between is taken back out of
Redis: its owner, who found nothing there to give up, would never do it. Called by `rebuilding` and
`handing_over`; never changes a zone.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from gateway.dns.errors import DnsFault
from gateway.holdings.hold import given_up
from gateway.holdings.remembered import kept_record
from gateway.store.documents import Change, Document, Holder

if TYPE_CHECKING:
    from collections.abc import Callable

    from gateway.contract import DnsRecord
    from gateway.dns.owner import Owner
    from gateway.dns.survey import Surveyor
    from gateway.dns.zones import Zones
    from gateway.holdings.hold import Holds
    from gateway.store.documents import Documents

BOUND_SECONDS: Final = 8.0


class Restoring:
    """Serves any number of hostnames at once. Every method raises `StoreUnavailable`."""

    def __init__(
        self,
        documents: Documents,
        holds: Holds,
        surveyor: Surveyor,
        zones: Zones,
        new_id: Callable[[], str],
    ) -> None:
        self._documents = documents
        self._holds = holds
        self._surveyor = surveyor
        self._zones = zones
        self._new_id = new_id

    async def restore(
        self,
        owner: Owner,
        record: DnsRecord,
        choose: Callable[[Document], Change],
        *,
        instead_of: Holder | None = None,
    ) -> bool:
        """Remember a proven record; False when it was gone from the zone afterwards.

        `choose` (pure) makes the rest of the change from the document, or all of it when it sets
        the record too, and may refuse by raising.
        `instead_of` is a holder that gives way.

        Raises:
            HeldByAnother: nothing was changed.
            Unauthorized: there is no such client.
        """
        holder = Holder(owner.client_id, owner.app_id)
        edition = self._new_id()
        kept = kept_record(record, edition, published=True)

        def with_record(document: Document) -> Change:
            change = choose(document)
            fields = {"record": kept, **change.fields}
            return Change(fields, change.due_ms, touches_due=change.touches_due)

        document = await self._holds.take(
            owner.hostname, holder, with_record, instead_of=instead_of
        )
        if instead_of is not None and instead_of != holder:
            await self._holds.forget(document, instead_of)
        if await self._is_there(owner):
            return True
        await self._take_back(owner, holder, edition)
        return False

    async def _is_there(self, owner: Owner) -> bool:
        zone = self._zones.holding(owner.hostname)
        if zone is None:
            return True
        deadline = asyncio.get_running_loop().time() + BOUND_SECONDS
        try:
            sight = await self._surveyor.look(
                zone, owner.hostname, (owner,), None, deadline=deadline
            )
        except DnsFault:
            # It was there a moment ago, and nothing says otherwise.
            return True
        # With another value it is the owner's all the same, who is about to remember that one.
        return sight.owner == owner

    async def _take_back(self, owner: Owner, holder: Holder, edition: str) -> None:
        def decide(now: Document) -> Change | None:
            is_ours = now.record is not None and now.record.get("edition") == edition
            if now.holder != holder or not is_ours:
                return None
            return Change(given_up(now, {"record": None}))

        after = await self._documents.change(owner.hostname, decide)
        await self._holds.forget(after, holder)
