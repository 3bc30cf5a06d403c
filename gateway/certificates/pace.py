"""How long issuances take here and now: the basis of an honest `retryAfterMs`."""

from __future__ import annotations

from collections import deque
from statistics import median
from typing import Final

FIRST_GUESS_MS: Final = 1_000
SHORTEST_MS: Final = 100
LONGEST_MS: Final = 60_000
REMEMBERED: Final = 9


class Pace:
    """The median of the last issuances that this process finished.

    Not their mean: one that a dead name server held up for minutes says nothing of the next.
    """

    def __init__(self) -> None:
        self._took_ms: deque[int] = deque((FIRST_GUESS_MS,), maxlen=REMEMBERED)

    def issued(self, took_ms: int) -> None:
        """Take one finished issuance into account."""
        self._took_ms.append(took_ms)

    def remaining_ms(self, elapsed_ms: int) -> int:
        """An estimate of how much longer an issuance takes that has taken `elapsed_ms`.

        What is left of the typical time; past it, half as long again as it took so far, since what
        is late tends to be later still.
        """
        left_ms = max(median(self._took_ms) - elapsed_ms, elapsed_ms / 2)
        return int(min(LONGEST_MS, max(SHORTEST_MS, left_ms)))
