"""Times and lengths of time in words: pure. Called by the other views and the command line."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from gateway.moments import utc_words

_UNITS: Final = ((86_400_000, "days"), (3_600_000, "h"), (60_000, "min"), (1_000, "s"))


def time_words(at_ms: int) -> str:
    """A time in UTC, from epoch milliseconds, as the page and the command line spell it.

    Down to the second that it lies in. Whatever number stands there, since others may have written
    it.
    """
    try:
        return utc_words(at_ms)
    except (ValueError, OverflowError, OSError):
        return f"at {at_ms} ms"


def past_words(at_ms: int) -> str:
    """The same as a line of the audit trail begins with it, for programs to sort by.

    Whatever number stands there, since others may have written it.
    """
    try:
        return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        return f"at {at_ms} ms"


def time_and_age(at_ms: int, now_ms: int) -> str:
    """A time in UTC, and how long ago that is."""
    return f"{time_words(at_ms)} ({duration(now_ms - at_ms)} ago)"


def duration(length_ms: int) -> str:
    """In the largest unit of which there are two or more."""
    for unit_ms, word in _UNITS:
        if length_ms >= 2 * unit_ms:
            return f"{length_ms // unit_ms} {word}"
    return f"{max(length_ms, 0) / 1000:.1f} s"
