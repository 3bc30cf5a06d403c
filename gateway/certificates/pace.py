"""How long issuances take here and now: the basis of an honest `retryAfterMs`."""

from __future__ import annotations

from typing import Final

FIRST_GUESS_MS: Final = 1_000
SHORTEST_MS: Final = 100
LONGEST_MS: Final = 60_000
_WEIGHT: Final = 0.2


class Pace:
    """A moving average over the issuances that this process finished."""

    def __init__(self) -> None:
        self._typical_ms = float(FIRST_GUESS_MS)

    def issued(self, took_ms: int) -> None:
        """Take one finished issuance into account."""
        self._typical_ms += _WEIGHT * (took_ms - self._typical_ms)

    def remaining_ms(self, elapsed_ms: int) -> int:
        """An estimate of how much longer an issuance takes that has taken `elapsed_ms`.

        What is left of the typical time; past it, half as long again as it took so far, since what
        is late tends to be later still.
        """
        left_ms = max(self._typical_ms - elapsed_ms, elapsed_ms / 2)
        return int(min(LONGEST_MS, max(SHORTEST_MS, left_ms)))
