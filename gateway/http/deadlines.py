"""Time limits for many things at once, with one timer for all of them.

`asyncio.timeout` sets a timer for each and takes it back, which was a tenth of a call; nearly none
ever ends one. Here they wait in order, and one timer looks at the first when it would be late.
The loop is asked for once: before Python 3.12 that is a system call each time (getpid).
Called by the endpoint and by `switch`.
"""

from __future__ import annotations

import asyncio
import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import TracebackType


class Deadlines:
    """Limits of so many seconds each; None: of any time, until `by` says otherwise."""

    def __init__(self, seconds: float | None) -> None:
        self._seconds = math.inf if seconds is None else seconds
        self._by = math.inf
        self._under_way: dict[Deadline, None] = {}
        """In the order of their ends."""
        self._timer: asyncio.TimerHandle | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def within(self) -> Deadline:
        """A limit around a block, as `asyncio.timeout` is one; raises TimeoutError at its end."""
        return Deadline(self)

    def by(self, at: float) -> None:
        """From now on each ends by this time of the event loop's, those under way too."""
        self._by = at
        for deadline in self._under_way:
            deadline.at = min(deadline.at, at)
        self._set_timer()

    def begin(self, deadline: Deadline) -> asyncio.Task[Any]:
        """For `Deadline`: it is under way, for the current task."""
        loop = self._loop
        if loop is None:
            loop = self._loop = asyncio.get_running_loop()
        at = loop.time() + self._seconds
        deadline.at = at if at < self._by else self._by
        self._under_way[deadline] = None
        if self._timer is None and deadline.at < math.inf:
            self._set_timer()
        return asyncio.current_task(loop)  # type: ignore[return-value]

    def end(self, deadline: Deadline) -> None:
        """For `Deadline`: it is not under way any more; repeatable."""
        self._under_way.pop(deadline, None)

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        first = next(iter(self._under_way), None)
        if first is not None and first.at < math.inf:
            self._timer = asyncio.get_running_loop().call_at(first.at, self._look)

    def _look(self) -> None:
        """Strike whose time is over, then wait for the next one's."""
        now = asyncio.get_running_loop().time()
        self._timer = None
        while (first := next(iter(self._under_way), None)) is not None and first.at <= now:
            self.end(first)
            first.strike()
        self._set_timer()


class Deadline:
    """One limit, of the task that enters it."""

    __slots__ = ("_all", "_before", "_has_struck", "_task", "at")

    def __init__(self, of_all: Deadlines) -> None:
        self._all = of_all
        self._has_struck = False
        self.at = math.inf

    def __enter__(self) -> None:
        task = self._task = self._all.begin(self)
        self._before = task.cancelling()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._all.end(self)
        # As `asyncio.timeout` does: whoever else has cancelled the task is not kept from it.
        if self._has_struck:
            is_ours = self._task.uncancel() <= self._before
            if is_ours and kind is asyncio.CancelledError:
                raise TimeoutError from error

    def strike(self) -> None:
        """Its time is over."""
        self._has_struck = True
        self._task.cancel()
