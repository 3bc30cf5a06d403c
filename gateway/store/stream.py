"""A bounded Redis stream: read in pages, what was trimmed of it, and claims on what is told once.

An entry is a text under a name of its own, as `append_entries.lua` writes it. The bound is
approximate, as Redis trims whole blocks. Knows nothing of what the texts say. Called by
`store.trail` and `store.trail_reading`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from gateway.store.faults import StoreRefused

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gateway.store.connection import Store
    from gateway.store.nodes import Command

FIRST_ID: Final = "-"
LAST_ID: Final = "+"

_NAME: Final = "id"
_TEXT: Final = "entry"


class Line(NamedTuple):
    """An entry as it lies in the stream: its place (`milliseconds-number`), name and text."""

    place: str
    name: str
    text: str

    @property
    def written_at_ms(self) -> int:
        """When Redis took it, by Redis's clock."""
        return int(self.place.partition("-")[0])


class Claim(NamedTuple):
    """A name that is to be the first under a key of the caller's own, which ends."""

    key: str
    name: str
    lifetime_ms: int


@dataclass(frozen=True, slots=True)
class Extent:
    """How many entries there are and were, and the first one's place (None in an empty stream)."""

    length: int
    added: int
    first: str | None

    @property
    def trimmed(self) -> int:
        """How many are there no more."""
        return max(0, self.added - self.length)


class Stream:
    """One stream. Every method raises `StoreUnavailable` and `StoreRefused`."""

    def __init__(self, store: Store, key: str) -> None:
        self._store = store
        self._key = key

    async def after(self, place: str, limit: int) -> list[Line]:
        """The entries behind a place, the oldest first; `FIRST_ID` for all there are."""
        start = place if place == FIRST_ID else f"({place}"
        (found,) = await self._ask([("XRANGE", self._key, start, LAST_ID, "COUNT", limit)])
        return _lines(found)

    async def before(self, place: str, limit: int) -> list[Line]:
        """The entries ahead of a place, the newest first; `LAST_ID` for all there are."""
        end = place if place == LAST_ID else f"({place}"
        (found,) = await self._ask([("XREVRANGE", self._key, end, FIRST_ID, "COUNT", limit)])
        return _lines(found)

    async def extent(self) -> Extent:
        """How far it reaches. `added` is the length where Redis (before 7) does not count it."""
        try:
            (found,) = await self._ask([("XINFO", "STREAM", self._key)])
        except StoreRefused:  # no such key, or a user that may not ask
            (length,) = await self._ask([("XLEN", self._key)])
            return Extent(length, length, None)
        told: Mapping[str, Any] = dict(zip(found[::2], found[1::2], strict=True))
        first = told["first-entry"]
        length = told["length"]
        return Extent(length, told.get("entries-added", length), first and first[0])

    async def claim(self, claims: Sequence[Claim]) -> list[bool]:
        """Whether each name is the first that was claimed under its key; repeatable."""
        answers = await self._store.answers_of_each(
            [
                (key, (("SET", key, name, "NX", "PX", lifetime_ms), ("GET", key)))
                for key, name, lifetime_ms in claims
            ]
        )
        return [first == each.name for each, (_, first) in zip(claims, answers, strict=True)]

    async def _ask(self, commands: Sequence[Command]) -> list[Any]:
        (answers,) = await self._store.answers_of_each([(self._key, commands)])
        return cast("list[Any]", answers)


def _lines(found: Sequence[tuple[str, Mapping[str, str]]]) -> list[Line]:
    """Of entries that somebody else wrote, what is missing is empty."""
    return [Line(place, fields.get(_NAME, ""), fields.get(_TEXT, "")) for place, fields in found]
