"""The owner markers of the records that documents hold, moved to the keyring's first key.

Part of `certificates.resealing`, which knows no zone: this reads each record's name, and has its
markers replaced where another key made them. A zone that does not answer is not asked for each of
its thousand names: after a few it is given up, and those left are told as failures.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Final

from gateway.certificates.seals import Found, Thing
from gateway.dns.errors import DnsFault
from gateway.dns.outcome import OutcomeKind
from gateway.holdings.hold import owner_of
from gateway.holdings.remembered import remembered_record

if TYPE_CHECKING:
    from gateway.contract.names import Hostname, ZoneName
    from gateway.dns.publisher import Publisher
    from gateway.dns.zones import Zones
    from gateway.store.documents import Document

BOUND_SECONDS: Final = 8.0
GIVEN_UP_AFTER: Final = 3
"""Failures of one zone in a row, each of which may have taken its whole time."""

_DONE: Final = {OutcomeKind.UPDATED, OutcomeKind.UNCHANGED}


class Restamping:
    """For one run. `first_key_id` is the key that makes markers now."""

    def __init__(self, publisher: Publisher, zones: Zones, first_key_id: str) -> None:
        self._publisher = publisher
        self._zones = zones
        self._first_key_id = first_key_id
        self._silences: Counter[ZoneName] = Counter()

    async def look(self, document: Document) -> Found:
        """The keys of the markers that prove the document's record; changes nothing."""
        owner, record = owner_of(document), remembered_record(document)
        if owner is None or record is None:
            return Found()
        zone = self._zones.holding(owner.hostname)
        if zone is not None and self._silences[zone.name] >= GIVEN_UP_AFTER:
            return _failed(owner.hostname, f"The zone {zone.name} did not answer for others.")
        try:
            key_ids = await self._publisher.marker_keys(
                owner, remembered=record, deadline=_deadline()
            )
        except DnsFault as fault:
            self._answered(owner.hostname, passing=fault.retry_after_seconds is not None)
            return _failed(owner.hostname, fault.detail)
        self._answered(owner.hostname)
        return Found(things=tuple((Thing.MARKER, key_id) for key_id in key_ids))

    async def move(self, document: Document) -> Found:
        """Have other keys' markers replaced by the first key's; answers which there were."""
        found = (await self.look(document)).not_under(self._first_key_id)
        owner = owner_of(document)
        if owner is None or not found.things:
            return found
        outcome = await self._publisher.restamp(
            owner, remembered=remembered_record(document), deadline=_deadline()
        )
        if outcome.kind in _DONE:
            return found
        self._answered(owner.hostname, passing=outcome.kind is OutcomeKind.UNAVAILABLE)
        return _failed(owner.hostname, outcome.detail)

    def _answered(self, hostname: Hostname, *, passing: bool = False) -> None:
        """Count the faults in a row that may pass by themselves, which cost the most time."""
        zone = self._zones.holding(hostname)
        if zone is not None:
            self._silences[zone.name] = self._silences[zone.name] + 1 if passing else 0


def _failed(hostname: Hostname, detail: str) -> Found:
    return Found(failures=(f"{hostname}: the marker of its record: {detail}",))


def _deadline() -> float:
    return asyncio.get_running_loop().time() + BOUND_SECONDS
