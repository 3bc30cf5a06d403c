"""Where challenges go, remembered from before the order until after it.

A challenge's place is looked at three times: before an order is spent on it, after the order, since
that may have taken long, and before its record is added. Where no time to speak of has passed, what
was found serves all three: two of six exchanges with DNS servers less for an issuance. Whether the
name has become an alias meanwhile, the record's own update asks. Bounded; called by `steps`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from gateway.contract.names import Hostname
    from gateway.dns.challenges import ChallengeTarget

KEPT_SECONDS: Final = 2.0

MAX_KEPT: Final = 256
"""Of so many hostnames; without its own, one is looked for again."""


class Places:
    """What was found lately. `now` is a loop time, in seconds."""

    def __init__(self) -> None:
        self._found: dict[Hostname, tuple[float, ChallengeTarget]] = {}

    def keep(self, hostname: Hostname, place: ChallengeTarget, now: float) -> None:
        """Remember the place that was found just now."""
        self._found.pop(hostname, None)
        self._found[hostname] = now, place
        if len(self._found) > MAX_KEPT:
            del self._found[next(iter(self._found))]

    def at(self, hostname: Hostname, now: float) -> ChallengeTarget | None:
        """The place that was found lately; else None."""
        found = self._found.get(hostname)
        return None if found is None or now > found[0] + KEPT_SECONDS else found[1]

    def take(self, hostname: Hostname, now: float) -> ChallengeTarget | None:
        """The same, once."""
        place = self.at(hostname, now)
        self._found.pop(hostname, None)
        return place
