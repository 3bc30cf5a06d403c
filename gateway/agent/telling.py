"""When a fault is worth a line in the log: at first, when it changes, hourly, and when it is over.

Responsible for keeping a log readable in the morning after a night without a gateway. Pure: times
come in. Must not: write the line. Used by `contact` for what all ownerships share, and by `service`
for each keeper.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from gateway.agent.clocks import HOUR_MS, MINUTE_MS

_AGAIN_MS: Final = HOUR_MS
_CHANGED_MS: Final = MINUTE_MS
"""Faults in turn, or one whose words differ each time, get a line a minute and no more."""


class Word(Enum):
    """What is to be said now."""

    BEGUN = "begun"
    STILL = "still"
    OVER = "over"


@dataclass(frozen=True, slots=True)
class Telling:
    """One place where something may be wrong. `since_ms` is epoch time; None while all is well.

    What was said when is kept in steady milliseconds, so that a clock set anew silences nothing.
    """

    since_ms: int | None = None
    _sentence: str | None = None
    _said_steady_ms: int = 0

    def note(
        self, sentence: str | None, now_ms: int, steady_ms: int
    ) -> tuple[Telling, Word | None]:
        """Take note of a fault, or that there is none; answers what to keep and what to say."""
        if sentence is None:
            return Telling(), None if self.since_ms is None else Word.OVER
        if self.since_ms is None:
            return Telling(now_ms, sentence, steady_ms), Word.BEGUN
        wait_ms = _AGAIN_MS if sentence == self._sentence else _CHANGED_MS
        if steady_ms - self._said_steady_ms < wait_ms:
            return self, None
        return Telling(self.since_ms, sentence, steady_ms), Word.STILL
