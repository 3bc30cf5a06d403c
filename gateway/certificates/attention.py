"""Which hostnames need a person, by what is the matter: a bounded list of each, most urgent first.

Pure, and of one size however many hostnames there are. Must not: judge a document;
`certificates.census` does, and tells what concerns it.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from enum import StrEnum
from typing import Any, Final

LISTED_AT_MOST: Final = 100
"""How many hostnames are listed of each kind. The census has the number of all."""

_LONGEST_HOSTNAME: Final = 253


class Concern(StrEnum):
    """What is the matter with a hostname, and which of several comes first."""

    FAILED = "failed"
    """Its issuance failed; the longest ago first."""

    WAITING = "waiting"
    """Its issuance says what it waits for, or is not finished for minutes; the oldest first."""

    NEAR_END = "near_end"
    """Its certificate is due for renewal, and a tenth of its lifetime or nothing is left; the
    earliest end first."""

    UNREADABLE = "unreadable"
    """This release cannot read its document; by name."""

    OWING = "owing"
    """What is to be cleaned up outside could not be, several times; the most tries first."""


class AttentionLists:
    """The hostnames of each concern, as they are added in any order."""

    def __init__(self) -> None:
        self._foremost: dict[Concern, list[tuple[int, str]]] = {each: [] for each in Concern}

    def add(self, concern: Concern, hostname: str, rank: int) -> None:
        """List a hostname; the lower its rank the more urgent. What is too long for one is not."""
        foremost, entry = self._foremost[concern], (rank, hostname)
        if len(hostname) > _LONGEST_HOSTNAME:
            return
        place = bisect_left(foremost, entry)
        if place < LISTED_AT_MOST and foremost[place : place + 1] != [entry]:
            insort(foremost, entry, lo=place)
            del foremost[LISTED_AT_MOST:]

    def lists(self) -> dict[str, list[str]]:
        """By concern, each hostname once."""
        return {
            concern.value: list(dict.fromkeys(hostname for _, hostname in foremost))
            for concern, foremost in self._foremost.items()
        }


def are_lists(value: Any) -> bool:
    """Whether a JSON value is what `lists` answers."""
    return (
        isinstance(value, dict)
        and value.keys() == {concern.value for concern in Concern}
        and all(map(_is_list, value.values()))
    )


def _is_list(value: Any) -> bool:
    return (
        isinstance(value, list)
        and len(value) <= LISTED_AT_MOST
        and all(isinstance(each, str) and len(each) <= _LONGEST_HOSTNAME for each in value)
    )
