"""Where challenges go, remembered from before the order until after it.

A challenge's place is found twice: before an order is spent on it, and after the order, since that
may have taken long. Where it has taken no time to speak of, what was found serves both: one of five
exchanges with DNS servers less for an issuance. Whether the name has become an alias meanwhile, the
record's own update asks. Bounded; called by `steps`.
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

    def take(self, hostname: Hostname, now: float) -> ChallengeTarget | None:
        """The place that was found lately, once; else None."""
        found = self._found.pop(hostname, None)
        return None if found is None or now > found[0] + KEPT_SECONDS else found[1]
