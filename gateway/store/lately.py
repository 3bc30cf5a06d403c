"""What happened lately, as the trail's writers keep it beside the trail: for an overview at once.

Responsible for reading the notable entries, the conflicts, and the counts of days; each is bounded,
however long the trail is. Something else in the place of one reads as nothing, and the next entry
replaces it. Must not: decide what is notable (`store.notable` does), or read the trail itself.
Called by the operator's page.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from gateway.store.faults import WrongType
from gateway.store.keys import CONFLICTS_KEY, NOTABLE_KEY, audit_day_key
from gateway.store.notable import Counted, is_conflict
from gateway.store.trail_reading import LATE_MS, TrailPage, TrailReader, Wanted
from gateway.store.trail_writing import BESIDE_BOUND, DAYS_KEPT, day_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gateway.store.connection import Store
    from gateway.store.trail_reading import Told

_DAY_MS: Final = 86_400_000
_LOOKED_THROUGH: Final = 200
"""How many conflicts are read at once."""

_NUMBER: Final = re.compile(r"[0-9]{1,18}")


@dataclass(frozen=True, slots=True)
class DayCounts:
    """What one day (ISO 8601, UTC) came to, as many as the trail has had entries of it.

    A conflict that goes on is an entry once in ten minutes and process.
    """

    day: str
    issued: int = 0
    renewed: int = 0
    failed: int = 0
    conflicts: int = 0


class ConflictsTold(NamedTuple):
    """Conflicts, from the newest to the oldest; `is_cut`: older ones may be kept no more."""

    told: list[Told]
    is_cut: bool = False


class Lately:
    """Reads what is kept beside the trail. Every method raises `StoreUnavailable`, `StoreRefused`.

    `is_kept`: whether the configuration keeps a trail. Without one, nothing new is kept here
    either.
    """

    def __init__(self, store: Store, *, is_kept: bool) -> None:
        self._store = store
        self.is_kept = is_kept

    async def notable(self, limit: int, before: str | None = None) -> TrailPage:
        """The newest notable entries (ahead of a place), from the newest to the oldest.

        Raises:
            ValueError: the place is none.
        """
        return await self._page(NOTABLE_KEY, before, limit)

    async def conflicts(self, since_ms: int, hostname: str | None = None) -> ConflictsTold:
        """The newest conflict of each ownership at each hostname (or at one) since a time."""
        newest: dict[tuple[str, ...], Told] = {}
        place: str | None = None
        looked_at = 0
        while looked_at < 2 * BESIDE_BOUND:
            page = await self._page(CONFLICTS_KEY, place, _LOOKED_THROUGH)
            looked_at += len(page.entries)
            for told in page.entries:
                entry = told.entry
                if entry is None or not _is_conflict(entry) or entry["at"] < since_ms:
                    continue
                if hostname in {None, entry["hostname"]}:
                    newest.setdefault(_asker_at(entry), told)
            place = page.older
            if page.entries and page.entries[-1].written_at_ms < since_ms - LATE_MS:
                return ConflictsTold(list(newest.values()))
            if place is None:
                break
        # A stream that never was full has lost none.
        return ConflictsTold(list(newest.values()), is_cut=looked_at >= BESIDE_BOUND)

    async def days(self, count: int, now_ms: int) -> list[DayCounts]:
        """The last `count` days (`DAYS_KEPT` at most) up to today, the oldest first."""
        ago = range(min(count, DAYS_KEPT) - 1, -1, -1)
        days = [day_of(now_ms - each * _DAY_MS) for each in ago]
        names = [each.value for each in Counted]
        found = await self._store.some_fields_of_each([audit_day_key(day) for day in days], names)
        return [_counts(day, fields or {}) for day, fields in zip(days, found, strict=True)]

    async def _page(self, key: str, before: str | None, limit: int) -> TrailPage:
        try:
            return await TrailReader(self._store, Wanted(), key).before(before, limit)
        except WrongType:
            return TrailPage([], None, is_cut=False)


def _asker_at(entry: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(str(entry.get(name)) for name in ("hostname", "clientId", "appId"))


def _is_conflict(entry: Mapping[str, Any]) -> bool:
    return is_conflict(entry["what"], entry["outcome"]) and "hostname" in entry


def _counts(day: str, fields: Mapping[str, str]) -> DayCounts:
    """A day's counts; what is no number is none."""
    count = {name: int(text) for name, text in fields.items() if _NUMBER.fullmatch(text)}
    return DayCounts(
        day,
        issued=count.get(Counted.ISSUED, 0),
        renewed=count.get(Counted.RENEWED, 0),
        failed=count.get(Counted.FAILED, 0),
        conflicts=count.get(Counted.CONFLICT, 0),
    )
