"""How a task ends, and within how long a process that is to stop: one budget for all of it.

Whatever hangs then (a thread, a disk, Redis, the event loop), the process is gone when the budget
is: whoever has asked for the stop kills soon after, and counts that as a crash. The budget is of
`gateway.running`; whatever of the server has a task of its own ends it with `end`.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from typing import TYPE_CHECKING, Any, Final

import structlog

if TYPE_CHECKING:
    from collections.abc import Callable

STOP_SECONDS: Final = 9.8
"""Docker kills after 10."""

KEPT_SECONDS: Final = 0.3
"""So much of it is left for the interpreter's own end."""

CUT_SHORT: Final = 1
"""The exit code of a process that did not end by itself."""

CANCEL_SECONDS: Final = 0.2

_SAYING_SECONDS: Final = 0.1

_log = structlog.get_logger(__name__)


async def end(task: asyncio.Task[Any]) -> None:
    """Cancel a task until it has ended: one cancellation may be lost (see `Worker.run`)."""
    while not task.done():
        task.cancel()
        await asyncio.wait({task}, timeout=CANCEL_SECONDS)


class Budget:
    """The time for a stop; it runs from `begin`. `end_process` ends the process at once."""

    def __init__(
        self,
        within_seconds: float = STOP_SECONDS,
        end_process: Callable[[int], object] = os._exit,
    ) -> None:
        self._within_seconds = within_seconds
        self._end_process = end_process
        self._ends_at: float | None = None

    def begin(self) -> None:
        """The process is to stop; counts once."""
        if self._ends_at is None:
            self._ends_at = time.monotonic() + self._within_seconds
            timer = threading.Timer(self._within_seconds, self._cut_short)
            timer.daemon = True
            timer.start()

    def left_seconds(self) -> float:
        """How long what is still to be wound up may take."""
        if self._ends_at is None:
            return self._within_seconds
        return max(0.0, self._ends_at - time.monotonic() - KEPT_SECONDS)

    def _cut_short(self) -> None:
        # Whoever hangs may do so while it writes to the log.
        saying = threading.Thread(target=_say_cut_short, daemon=True)
        saying.start()
        saying.join(_SAYING_SECONDS)
        self._end_process(CUT_SHORT)


def _say_cut_short() -> None:
    _log.error("the stop took too long and was cut short")
