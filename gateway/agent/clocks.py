"""The clocks, the chance and the pace that an agent goes by, and times as an operator reads them.

Responsible for nothing but being one argument instead of four. Made by the command line; tests make
their own.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from gateway.contract.responses import MAX_MILLISECONDS
from gateway.moments import moment_words

if TYPE_CHECKING:
    from collections.abc import Callable

SECOND_MS: Final = 1_000
MINUTE_MS: Final = 60 * SECOND_MS
HOUR_MS: Final = 60 * MINUTE_MS
DAY_MS: Final = 24 * HOUR_MS


LAST_NOW_MS: Final = MAX_MILLISECONDS - 30 * DAY_MS
"""By a clock that is beyond all calendars it stays this; what is added to it is within them."""


def machine_now_ms() -> int:
    """The time by this machine's clock, in epoch milliseconds."""
    return within_calendars(time.time_ns() // 1_000_000)


def within_calendars(now_ms: int) -> int:
    """The time itself, or the nearest one that can be written as a date."""
    return min(max(now_ms, 0), LAST_NOW_MS)


def machine_steady_ms() -> int:
    """Milliseconds of a clock that nobody sets: good for pauses, worth nothing after a restart.

    It goes on while the machine sleeps, so that a pause is over when its time is over.
    """
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000


def moment(at_ms: int) -> str:
    """Epoch milliseconds as UTC to the second."""
    return moment_words(datetime.fromtimestamp(at_ms / 1000, UTC))


@dataclass(frozen=True, slots=True)
class Pace:
    """How soon things are done again, and how long they may take.

    `first_pause_ms` and `first_hook_pause_ms`: after a first failure; they double. `look_ms`: how
    often files and clock are looked at, so that a pair that was broken by hand, or a machine that
    slept, is noticed within it; costs reading four small files. `call_seconds`: for one call; a
    gateway answers within 10, and the agent comes back by itself anyway. `hook_grace_seconds`: what
    a running hook has when the agent is told to stop.
    """

    first_pause_ms: int = SECOND_MS
    first_hook_pause_ms: int = 10 * SECOND_MS
    look_ms: int = MINUTE_MS
    call_seconds: float = 20.0
    hook_grace_seconds: float = 10.0


@dataclass(frozen=True, slots=True)
class Clocks:
    """`now_ms`: epoch time, which may jump. `steady_ms`: for pauses. `jitter`: from 0 to 1."""

    now_ms: Callable[[], int] = machine_now_ms
    steady_ms: Callable[[], int] = machine_steady_ms
    jitter: Callable[[], float] = random.random
    pace: Pace = Pace()
