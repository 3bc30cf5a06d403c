"""The names of a hostname's versions, and which of them may go. Pure.

    0007-20261130T033246Z-3f2a9c01b7de
    |    |                `- the beginning of the certificate's fingerprint
    |    `- when it was written, UTC, for people: a clock that was set back harms nothing
    `- one more than the highest there is: the order, and why no name ever comes twice

Responsible for both, so that they can be tested without a disk. Must not: look at one. Used by
`lineage`.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

_FINGERPRINT_LENGTH: Final = 12
_NAME: Final = re.compile(r"([0-9]{4,18})-[0-9]{8}T[0-9]{6}Z-([0-9a-f]{12})", re.ASCII)


def is_version(name: str) -> bool:
    """Whether this is a name that `next_version` gives."""
    return _NAME.fullmatch(name) is not None


def next_version(present: Iterable[str], fingerprint: str, now_ms: int) -> str:
    """The name after all that are present."""
    number = max(map(_number, present), default=0) + 1
    written = datetime.fromtimestamp(now_ms / 1000, UTC).strftime("%Y%m%dT%H%M%SZ")
    return f"{number:04d}-{written}-{fingerprint[:_FINGERPRINT_LENGTH]}"


def previous_version(present: Iterable[str], live: str) -> str | None:
    """What to go back to by hand: the last one before `live` that is another certificate.

    One with the same certificate differed in who may read it only.
    """
    older = [name for name in present if _number(name) < _number(live)]
    others = [name for name in older if _certificate(name) != _certificate(live)]
    return max(others, key=_number, default=None)


def never_live(present: Iterable[str], live: str | None) -> set[str]:
    """Those after `live`: of a run that was killed before the link, or turned away from by hand.

    Without a live one nobody knows.
    """
    return set() if live is None else {name for name in present if _number(name) > _number(live)}


def outlived(present: Collection[str], live: str | None) -> set[str]:
    """Those that nobody will miss: all before `live` but the one to go back to."""
    if live is None:
        return set()
    kept = {live, previous_version(present, live), *never_live(present, live)}
    return set(present) - kept


def _number(name: str) -> int:
    return int(_parts(name)[0])


def _certificate(name: str) -> str:
    return _parts(name)[1]


def _parts(name: str) -> tuple[str, str]:
    found = _NAME.fullmatch(name)
    if found is None:
        raise ValueError(f"not the name of a version: {name!r}")
    return found[1], found[2]
