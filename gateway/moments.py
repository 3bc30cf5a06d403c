"""Moments: which times there are, and how a person reads them.

The words are in one form for the client's side and one for the server's. Must not: import anything
of the package. Used by the SDK, the agent and the command line, and by whatever reads a time that
was stored.
"""

from datetime import UTC, datetime
from typing import Final, TypeGuard

LATEST_MS: Final = 253_402_300_799_000
"""The last second before the year 10000, in epoch milliseconds. No calendar of Python has a later
one, and a certificate that never ends says it (RFC 5280, 4.1.2.5)."""


def is_epoch_ms(value: object) -> TypeGuard[int]:
    """Whether a value is a time in epoch milliseconds that is in the calendar: 1970 to 9999."""
    return type(value) is int and 0 <= value <= LATEST_MS


def nearest_epoch_ms(at_ms: int) -> int:
    """The time itself, or the first or last one that may be stored."""
    return min(max(at_ms, 0), LATEST_MS)


def moment_words(moment: datetime) -> str:
    """An aware moment as UTC to the second."""
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def utc_words(at_ms: int) -> str:
    """An epoch time as UTC for a person, down to the second that it lies in."""
    return moment_words(datetime.fromtimestamp(at_ms // 1000, UTC))


def rfc3339_moment(at_ms: int) -> str:
    """An epoch time as RFC 3339 in UTC, rounded up to the second: never too early."""
    return datetime.fromtimestamp(-(-at_ms // 1000), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
