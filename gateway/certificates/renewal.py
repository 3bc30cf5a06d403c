"""When a certificate is renewed, and when its client is told to ask again: pure.

Both are shares of the lifetime, so one rule is right for certificates of an hour, of 6 days and of
90 days. The renewal starts before the time clients are told, so that it is normally done when they
ask; it is spread over a tenth of that time, so that certificates issued together are not renewed
together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

SPREAD: Final = 0.1
"""Share of the time until renewal over which renewals are spread, towards earlier."""

GRACE: Final = 0.15
"""Share of the time from renewal to expiry that a renewal gets before clients ask."""


@dataclass(frozen=True, slots=True)
class RenewalTimes:
    """Epoch milliseconds: when the worker starts, and when clients are told to ask again."""

    renew_at_ms: int
    renew_after_ms: int


def renewal_times(
    valid_from_ms: int, valid_until_ms: int, share: float, jitter: float
) -> RenewalTimes:
    """The times for one certificate.

    `share` (0 to 1, exclusive) is the part of the lifetime after which renewal starts at the
    latest, `jitter` (0 to 1) a random number.
    """
    lifetime_ms = valid_until_ms - valid_from_ms
    latest_ms = lifetime_ms * share
    start_ms = latest_ms * (1 - SPREAD * jitter)
    told_ms = latest_ms + (lifetime_ms - latest_ms) * GRACE
    return RenewalTimes(valid_from_ms + int(start_ms), valid_from_ms + int(told_ms))
