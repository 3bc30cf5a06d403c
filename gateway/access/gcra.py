"""How many calls there may be in a time: a rate over a clock value, kept as one number.

The generic cell rate algorithm: the number is the moment at which the rate is *whole* again, all of
its calls unused. Each call moves it on by the share of one; it may lie one period ahead at most. So
calls come back one by one, and whoever has to wait can be told for how long. Counting in windows of
a minute was the alternative: twice as many pass around the end of one, and the wait is a guess.

Pure. Called by `access.limits`, whose Lua script counts the same way where processes share a rate,
and by `http.flood`, which counts in memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

SECOND_US: Final = 1_000_000
MINUTE_US: Final = 60 * SECOND_US


@dataclass(frozen=True, slots=True)
class Rate:
    """`count` calls (at least 1) in each period, all of them at once if none came before.

    All times are microseconds of one clock; a moment that is not known yet is 0.
    """

    count: int
    period_us: int

    @property
    def interval_us(self) -> int:
        """After how long one more call comes back, rounded up: never more than `count` a period."""
        return -(-self.period_us // self.count)

    def whole_at(self, stored_us: int, now_us: int) -> int:
        """When the rate is whole again, by what was stored: from now to a period from now.

        A stored moment may lie further off when a clock was wrong, or the rate was changed.
        """
        return min(max(stored_us, now_us), now_us + self.interval_us * self.count)

    def used(self, stored_us: int, now_us: int) -> int:
        """How many calls have not come back yet, from 0 to `count`."""
        return -(-(self.whole_at(stored_us, now_us) - now_us) // self.interval_us)

    def wait_us(self, stored_us: int, now_us: int, spare: int = 0) -> int:
        """How long until there is a call for whoever has to leave `spare` of them to others."""
        usable = max(self.count - spare, 1)
        after = self.whole_at(stored_us, now_us) + self.interval_us
        return max(0, after - now_us - self.interval_us * usable)

    def after_one(self, stored_us: int, now_us: int) -> int:
        """When it is whole again after one more call; one too many counts for nothing."""
        return self.whole_at(self.whole_at(stored_us, now_us) + self.interval_us, now_us)


def in_ms(wait_us: int) -> int:
    """A wait as answers tell it: rounded up, so that whoever waits so long comes in time."""
    return -(-wait_us // 1_000)
