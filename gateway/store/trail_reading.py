"""Reading the audit trail: its newest entries, those since a time, and those that come.

Responsible for leaving out what is not asked for and what was written twice, and for telling when
entries are gone. Must not: print, or wait. Called by `gateway audit`.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from gateway.store.keys import AUDIT_KEY
from gateway.store.stream import FIRST_ID, LAST_ID, Extent, Stream

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from gateway.store.connection import Store
    from gateway.store.stream import Line

PAGE: Final = 500

LATE_MS: Final = 60_000
"""How much earlier than its `at` an entry may seem to have been written: clocks differ a little."""

_NAMES_REMEMBERED: Final = 1_000

_NUMBERS_ALWAYS: Final = frozenset({"at"})
_NUMBERS: Final = frozenset({"repeated"})
_TEXTS_ALWAYS: Final = frozenset({"who", "what", "outcome"})
_TEXTS: Final = frozenset(
    {
        "name",
        "ofClient",
        "remote",
        "requestId",
        "hostname",
        "clientId",
        "appId",
        "credentialId",
        "before",
        "after",
        "detail",
    }
)


class Told(NamedTuple):
    """An entry as it was read; `entry` is None where it is in no shape that this release knows."""

    place: str
    written_at_ms: int
    entry: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which entries: of a hostname, of a client (its own doing, or done to it), since a time."""

    since_ms: int | None = None
    hostname: str | None = None
    client_id: str | None = None

    def fits(self, told: Told) -> bool:
        """Whether an entry is one of them; one that can't be read is, unless it would be sought."""
        entry = told.entry
        if entry is None:
            return self.hostname is None and self.client_id is None
        return (
            (self.since_ms is None or entry["at"] >= self.since_ms)
            and self.hostname in {None, entry.get("hostname")}
            and self.client_id in {None, entry.get("clientId"), entry.get("ofClient")}
        )


class TrailReader:
    """One reading. Every method raises `StoreUnavailable` and `StoreRefused`."""

    def __init__(self, store: Store, wanted: Wanted) -> None:
        self._stream = Stream(store, AUDIT_KEY)
        self._wanted = wanted
        self._names: OrderedDict[str, None] = OrderedDict()
        self._reached = FIRST_ID

    async def extent(self) -> Extent:
        """How far the trail reaches."""
        return await self._stream.extent()

    async def newest(self, limit: int) -> list[Told]:
        """The newest that are wanted, the oldest of them first; `coming` goes on behind them."""
        found: list[Told] = []
        place = LAST_ID
        while len(found) < limit:
            lines = await self._stream.before(place, PAGE)
            if place == LAST_ID and lines:
                self._reached = lines[0].place
            found += self._chosen(lines)
            if len(lines) < PAGE or self._is_too_old(lines[-1]):
                break
            place = lines[-1].place
        return found[:limit][::-1]

    async def since(self) -> AsyncIterator[Told]:
        """Those since the time that is wanted, or all; `coming` goes on behind them."""
        if self._wanted.since_ms is not None:
            self._reached = f"{max(0, self._wanted.since_ms - LATE_MS)}-0"
        while True:
            page = await self._next_page()
            for told in self._chosen(page):
                yield told
            if len(page) < PAGE:
                return

    async def coming(self) -> list[Told]:
        """Those that were written behind what was read before, in parts; empty when none was."""
        found: list[Told] = []
        while not found:
            page = await self._next_page()
            found = self._chosen(page)
            if len(page) < PAGE:
                break
        return found

    def was_overtaken(self, extent: Extent) -> bool:
        """Whether entries may have been trimmed that were not read yet."""
        if extent.first is None or self._reached == FIRST_ID:
            return False
        return extent.trimmed > 0 and _numbers(extent.first) > _numbers(self._reached)

    async def _next_page(self) -> list[Line]:
        page = await self._stream.after(self._reached, PAGE)
        if page:
            self._reached = page[-1].place
        return page

    def _is_too_old(self, line: Line) -> bool:
        since_ms = self._wanted.since_ms
        return since_ms is not None and line.written_at_ms < since_ms - LATE_MS

    def _chosen(self, lines: Sequence[Line]) -> list[Told]:
        chosen = []
        for line in lines:
            name = line.name or line.place
            if name in self._names:
                continue
            self._names[name] = None
            if len(self._names) > _NAMES_REMEMBERED:
                self._names.popitem(last=False)
            told = Told(line.place, line.written_at_ms, _read(line.text))
            if self._wanted.fits(told):
                chosen.append(told)
        return chosen


def _read(text: str) -> Mapping[str, Any] | None:
    """An entry's JSON, if each field is of the type that `store.deeds` gives it.

    A later release may have fields of its own, of any of these types.
    """
    try:
        entry = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if type(entry) is not dict or not entry.keys() >= {*_NUMBERS_ALWAYS, *_TEXTS_ALWAYS}:
        return None
    for name, value in entry.items():
        if name in _NUMBERS_ALWAYS or name in _NUMBERS:
            fits = type(value) is int
        elif name in _TEXTS_ALWAYS or name in _TEXTS:
            fits = type(value) is str
        else:
            fits = value is None or type(value) in (bool, int, str)
        if not fits:
            return None
    return entry


def _numbers(place: str) -> tuple[int, int]:
    milliseconds, _, number = place.partition("-")
    return int(milliseconds), int(number)
