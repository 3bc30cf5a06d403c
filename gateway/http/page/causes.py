"""Needs of one cause, told once with how many they are: pure.

Two needs have the same cause when the same place is to blame (an authority, a zone) and the same
words are said of it, whatever hostname, time, number or URL stands in them. Must not: know what a
need is about. Called by `needs`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gateway.contract.names import Hostname

ALIKE_SHOWN: Final = 5
"""How many hostnames of one cause are named."""

_ELLIPSIS: Final = "…"
# Each begins where a word does and looks no further than that: a text may be of any length.
_URL: Final = re.compile(r"(?<![a-z])[a-z]+://\S+")
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:[0-9:.]+(Z| UTC)")
_TOKEN: Final = re.compile(r"(?<![0-9A-Za-z_-])(?=[a-z]*[0-9A-Z_-])[0-9A-Za-z_-]{20,}")
_ADDRESS: Final = re.compile(r"\[?[0-9a-f]*([.:][0-9a-f]*){2,}\]?(:\d+)?")
_NUMBER: Final = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class Need:
    """One hostname: what is the matter, since when (epoch ms; None: not known), and why.

    `next` is what is done about it without anybody's help, `attempt_ms` since when the last of
    several attempts goes on. `place` is an authority or a zone, in words, and `zone` the name of
    the zone that is waited for. `is_brief`: it may well end by itself.
    """

    hostname: Hostname
    what: str
    since_ms: int | None
    why: str
    next: str | None = None
    attempt_ms: int | None = None
    place: str | None = None
    zone: str | None = None
    is_brief: bool = False


@dataclass(frozen=True, slots=True)
class Alike:
    """Needs of one cause: the first few, and how many there are."""

    needs: tuple[Need, ...]
    count: int

    @property
    def first(self) -> Need:
        """The most urgent one."""
        return self.needs[0]

    @property
    def more(self) -> int:
        """How many are not among the first few."""
        return self.count - len(self.needs)

    @property
    def cause(self) -> str:
        """Why, in words that hold for each of them."""
        return _without(self.first.why, self.first.hostname)


def alike(needs: Iterable[Need]) -> list[Alike]:
    """Needs by their cause, what most have first; within one the order stays."""
    by_cause: dict[tuple[str | None, str], Alike] = {}
    for need in needs:
        cause = (need.place, shape_of(need.why, need.hostname))
        before = by_cause.get(cause)
        if before is None:
            by_cause[cause] = Alike((need,), 1)
            continue
        told = before.needs if before.count >= ALIKE_SHOWN else (*before.needs, need)
        by_cause[cause] = replace(before, needs=told, count=before.count + 1)
    return sorted(by_cause.values(), key=lambda each: -each.count)


def shape_of(words: str, hostname: Hostname) -> str:
    """What is said, without what differs from hostname to hostname; addresses of servers stay."""
    text = _without(words, hostname)
    for varying in (_URL, _TIME, _TOKEN):
        text = varying.sub(_ELLIPSIS, text)
    return " ".join(
        word if _ADDRESS.match(word) else _NUMBER.sub("0", word) for word in text.split()
    )


def _without(words: str, hostname: Hostname) -> str:
    return words.replace(hostname, _ELLIPSIS)
