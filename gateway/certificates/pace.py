"""How long issuances take here and now: the basis of an honest `retryAfterMs`.

Told apart are the wait for a turn, which grows with those ahead, and the work from the order on,
which hardly does. One that is requested is told both, and one that has an order what is left of the
work. One median from the request to the certificate was the alternative: after a thousand at once
the next one, by itself, was told what the last of those had waited.

Called by the worker, which teaches it, and by whoever answers calls.
"""

from __future__ import annotations

from collections import deque
from statistics import median
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from gateway.certificates.states import Issuance
    from gateway.contract.names import Hostname

FIRST_GUESS_MS: Final = 1_000
SHORTEST_MS: Final = 100
LONGEST_MS: Final = 60_000
REMEMBERED: Final = 9

LATE_SHARE: Final = 8
"""What is late is expected to take an eighth of its time longer. So it is fetched that much later
at the most, and asked for twenty times while its age grows tenfold."""


class Pace:
    """The median of the last issuances that this process finished, from the order on.

    Not their mean: one that a dead name server held up for minutes says nothing of the next.
    """

    def __init__(self) -> None:
        self._took_ms: deque[int] = deque((FIRST_GUESS_MS,), maxlen=REMEMBERED)
        self._turns_before: Callable[[Hostname], float | None] = lambda _: None

    def watch(self, turns_before: Callable[[Hostname], float | None]) -> None:
        """Learn where to see for how many turns a hostname waits, each as long as an issuance."""
        self._turns_before = turns_before

    def issued(self, issuance: Issuance, now_ms: int) -> None:
        """Take one finished issuance into account."""
        self._took_ms.append(now_ms - _worked_since_ms(issuance))

    def whole_ms(self, hostname: Hostname) -> int:
        """An estimate for one that is requested now."""
        return _bounded(median(self._took_ms) * (1 + (self._turns_before(hostname) or 0)))

    def remaining_ms(self, hostname: Hostname, issuance: Issuance, now_ms: int) -> int:
        """An estimate of how much longer an issuance takes that is under way.

        What is left of the typical time; past it, some of what it took so far, since what is late
        tends to be later still.
        """
        typical_ms, elapsed_ms = median(self._took_ms), now_ms - _worked_since_ms(issuance)
        late_ms = elapsed_ms / LATE_SHARE
        if issuance.ordered_at_ms is not None:
            return _bounded(max(typical_ms - elapsed_ms, late_ms))
        # Of those that are seen to wait with it, most may stand behind it.
        turns = self._turns_before(hostname)
        at_most_ms = late_ms if turns is None else min(late_ms, typical_ms * (1 + turns))
        return _bounded(max(typical_ms, at_most_ms))


def _worked_since_ms(issuance: Issuance) -> int:
    """Since when it is at work, as far as that is known; an outage in between does not count."""
    return max(issuance.begun_at_ms, issuance.ordered_at_ms or 0)


def _bounded(estimate_ms: float) -> int:
    return int(min(LONGEST_MS, max(SHORTEST_MS, estimate_ms)))
