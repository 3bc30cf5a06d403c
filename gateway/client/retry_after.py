"""When what stands before a gateway says to come back. Pure.

Responsible for the two forms of `Retry-After` (RFC 9110): seconds, and a date. Used by `exchange`.
"""

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

_LONGEST_SECONDS: Final = 99_999_999
"""Three years; who says more has not meant it."""

_LONGEST_DATE: Final = 64


def wait_ms(retry_after: str, date: str, now: datetime) -> int | None:
    """The milliseconds that a `Retry-After` asks for; None if it cannot be read.

    A date is held against the answer's own `Date` where that can be read: this machine's clock,
    which says `now`, may be wrong. One that has passed is no wait.
    """
    if retry_after.isascii() and retry_after.isdigit():
        is_read = len(retry_after) <= len(str(_LONGEST_SECONDS))
        return int(retry_after) * 1000 if is_read else None
    until = _moment(retry_after)
    if until is None:
        return None
    seconds = (until - (_moment(date) or now)).total_seconds()
    return max(round(seconds * 1000), 0) if seconds <= _LONGEST_SECONDS else None


def _moment(text: str) -> datetime | None:
    try:
        moment = parsedate_to_datetime(text[:_LONGEST_DATE])
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
