"""Reading the audit trail: its newest entries, those since a time, those that come, and by pages.

Responsible for leaving out what is not asked for and what was written twice (by releases before
this one), and for telling when entries are gone. Must not: print, or wait. Called by `gateway
audit`, `store.lately` and the operator's page.
"""

from __future__ import annotations

import json
import re
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from gateway.contract.faults import quoted
from gateway.moments import is_epoch_ms
from gateway.store.keys import AUDIT_KEY
from gateway.store.stream import FIRST_ID, LAST_ID, Extent, Stream

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping, Sequence

    from gateway.store.connection import Store
    from gateway.store.stream import Line

PAGE: Final = 500

LATE_MS: Final = 60_000
"""How much earlier than its `at` an entry may seem to have been written: clocks differ a little."""

SCANNED_AT_MOST: Final = 10_000
"""How many entries one page is looked for in, unless its reader says otherwise."""

_NAMES_REMEMBERED: Final = 1_000

_PLACE: Final = re.compile(r"(0|[1-9][0-9]{0,18})-(0|[1-9][0-9]{0,18})")
_HIGHEST: Final = 2**63 - 1

_TIMES_ALWAYS: Final = frozenset({"at"})
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
        at_ms = told.written_at_ms if entry is None else entry["at"]
        if self.since_ms is not None and at_ms < self.since_ms:
            return False
        if entry is None:
            return self.hostname is None and self.client_id is None
        return self.hostname in {None, entry.get("hostname")} and self.client_id in {
            None,
            entry.get("clientId"),
            entry.get("ofClient"),
        }


class TrailPage(NamedTuple):
    """Entries from the newest to the oldest; `older` is where to go on, None where none is left.

    `is_cut`: as many were looked through as one page may, and there may be more of them behind.
    """

    entries: list[Told]
    older: str | None
    is_cut: bool


def place_in(text: str) -> str:
    """A place in the trail that somebody has sent, as Redis takes it.

    Raises:
        ValueError: it is none; with a sentence.
    """
    found = _PLACE.fullmatch(text)
    numbers = (0, 0) if found is None else (int(found[1]), int(found[2]))
    if numbers == (0, 0) or max(numbers) > _HIGHEST:
        told = f"A place in the audit trail is as 1795000000000-0, and not {quoted(text)}."
        raise ValueError(told)
    return text


class TrailReader:
    """One reading, of the trail or of another such stream.

    Every method raises `StoreUnavailable` and `StoreRefused`. `before` goes by the place that it is
    given; the others go on where the last of them was.
    """

    def __init__(self, store: Store, wanted: Wanted, key: str = AUDIT_KEY) -> None:
        self._stream = Stream(store, key)
        self._wanted = wanted
        self._names = _Names()
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
            found += self._chosen(lines, self._names)
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
            for told in self._chosen(page, self._names):
                yield told
            if len(page) < PAGE:
                return

    async def coming(self) -> list[Told]:
        """Those that were written behind what was read before, in parts; empty when none was."""
        found: list[Told] = []
        while not found:
            page = await self._next_page()
            found = self._chosen(page, self._names)
            if len(page) < PAGE:
                break
        return found

    async def before(
        self, place: str | None, limit: int, scan_bound: int = SCANNED_AT_MOST
    ) -> TrailPage:
        """The newest that are wanted ahead of a place, or of all there are: `limit` at most.

        `scan_bound` entries at most are read for it, whatever is wanted.

        Raises:
            ValueError: the place is none.
        """
        end = LAST_ID if place is None else place_in(place)
        found: list[Told] = []
        names = _Names()
        for asked in _parts(limit + 1, scan_bound):
            lines = await self._stream.before(end, asked)
            found += self._chosen(lines, names)
            is_last = len(lines) < asked or self._is_too_old(lines[-1])
            if len(found) > limit or (len(found) == limit and not is_last):
                return TrailPage(found[:limit], found[limit - 1].place, is_cut=False)
            if is_last:
                return TrailPage(found, None, is_cut=False)
            end = lines[-1].place
        return TrailPage(found, end, is_cut=True)

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

    def _chosen(self, lines: Sequence[Line], names: _Names) -> list[Told]:
        chosen = []
        for line in lines:
            if not names.is_new(line.name or line.place):
                continue
            told = Told(line.place, line.written_at_ms, _read(line.text))
            if self._wanted.fits(told):
                chosen.append(told)
        return chosen


def _parts(first: int, all_of: int) -> Iterator[int]:
    """How many entries are read at once: what may do, then whole pages; `all_of` together."""
    asked = min(first, PAGE, all_of)
    while all_of > 0:
        yield asked
        all_of -= asked
        asked = min(PAGE, all_of)


class _Names:
    """The names of entries that were read last."""

    def __init__(self) -> None:
        self._names: OrderedDict[str, None] = OrderedDict()

    def is_new(self, name: str) -> bool:
        """Whether a name comes for the first time; it is remembered."""
        if name in self._names:
            return False
        self._names[name] = None
        if len(self._names) > _NAMES_REMEMBERED:
            self._names.popitem(last=False)
        return True


def _read(text: str) -> Mapping[str, Any] | None:
    """An entry's JSON, if its time is one and each field of the type that `store.deeds` gives it.

    A later release may have fields of its own, of any of these types.
    """
    try:
        entry = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if type(entry) is not dict or not entry.keys() >= {*_TIMES_ALWAYS, *_TEXTS_ALWAYS}:
        return None
    for name, value in entry.items():
        if name in _TIMES_ALWAYS:
            fits = is_epoch_ms(value)
        elif name in _NUMBERS:
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
