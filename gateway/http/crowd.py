"""Calls at once: how many are under way, of all callers and of each, and who waits for a turn.

Responsible for two things. A bound: what comes while there are too many calls is refused at once,
with a wait that goes by how fast calls have ended lately. And a turn: a process that begins
hundreds of calls in the same moment does none of them in time, and then takes its own slowness for
that of its servers (every time limit on the way, Redis's and the DNS servers', runs out though they
have answered). So beyond the first few, calls are let in one by one, as fast as the event loop
comes round. Calls that only wait for a slow server do not slow the loop down, and keep nobody out.
Callers that were found good lately come first, and some places are theirs alone.

Must not: know who is who; callers come with a name to be counted by. Called by the endpoint.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

from gateway import measures
from gateway.contract import Overloaded

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

PATIENCE_SECONDS: Final = 3.0
"""The longest that a call waits for its turn: what is left of its time must do for its work."""

_AT_ONCE: Final = 32
"""So many calls need no turn: half as many of strangers."""

_CALM_SECONDS: Final = 0.02
"""An event loop that comes round in this time can take one more call."""

_ENOUGH_TO_TELL: Final = 8
"""How quickly calls end while fewer are under way says nothing of how quickly a crowd does."""

_FIRST_GUESS_SECONDS: Final = 0.01
_WEIGHT_OF_LAST: Final = 0.05
_SHORTEST_WAIT_MS: Final = 100
_LONGEST_WAIT_MS: Final = 10_000


@dataclass(frozen=True, slots=True)
class CrowdLimits:
    """How many calls may be under way, those that wait for a turn included; 0: any number."""

    all: int
    each: int


class Crowd:
    """The calls under way. `now_seconds` is a clock that never goes back, read at any moment."""

    def __init__(self, limits: CrowdLimits, now_seconds: Callable[[], float]) -> None:
        self.limits = limits
        self._now_seconds = now_seconds
        self._by_name: dict[str, int] = {}
        self._under_way = self._of_strangers = 0
        self._waiting = 0
        self._known: deque[asyncio.Future[None]] = deque()
        self._strangers: deque[asyncio.Future[None]] = deque()
        self._usher: asyncio.Task[None] | None = None
        self._last_end = now_seconds()
        self._seconds_apart = _FIRST_GUESS_SECONDS
        """How far apart calls have ended lately, where many were under way."""

    def enter(self, name: str, *, is_known: bool) -> bool:
        """For `Place`: begin a call; whether it has to wait for its `turn`."""
        if self._is_full(name, is_known):
            raise self._refusal()
        queue = self._known if is_known else self._strangers
        has_to_wait = bool(queue) or not self._may_begin(queue)
        if self._under_way == 0:
            self._last_end = self._now_seconds()
        self._under_way += 1
        self._of_strangers += not is_known
        self._by_name[name] = self._by_name.get(name, 0) + 1
        return has_to_wait

    def leave(self, name: str, *, is_known: bool) -> None:
        """For `Place`: the call is over."""
        now = self._now_seconds()
        if self._under_way >= _ENOUGH_TO_TELL:
            apart = now - self._last_end
            self._seconds_apart += _WEIGHT_OF_LAST * (apart - self._seconds_apart)
        self._last_end = now
        self._under_way -= 1
        self._of_strangers -= not is_known
        left = self._by_name[name] - 1
        if left:
            self._by_name[name] = left
        else:
            del self._by_name[name]

    async def turn(self, *, is_known: bool) -> None:
        """For `Place`: wait until a call that has begun may go on."""
        queue = self._known if is_known else self._strangers
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        queue.append(turn)
        self._waiting += 1
        if self._usher is None:
            self._usher = asyncio.create_task(self._let_in())
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                await turn
        except TimeoutError:
            raise self._refusal() from None
        finally:
            self._waiting -= 1
            if turn in queue:
                queue.remove(turn)

    def _is_full(self, name: str, is_known: bool) -> bool:
        every, each = self.limits.all, self.limits.each
        if 0 < each <= self._by_name.get(name, 0) or 0 < every <= self._under_way:
            return True
        # While Redis hangs, so do those who would be refused: half of the places are not for them.
        return not is_known and 0 < every <= 2 * self._of_strangers

    def _refusal(self) -> Overloaded:
        """With the time in which those that are under way now will be over, as it looks."""
        measures.limit_reached("concurrency")
        wait_ms = int(self._under_way * self._seconds_apart * 1_000)
        return Overloaded(min(max(wait_ms, _SHORTEST_WAIT_MS), _LONGEST_WAIT_MS))

    def _may_begin(self, queue: deque[asyncio.Future[None]]) -> bool:
        inside = self._under_way - self._waiting
        return inside < (_AT_ONCE if queue is self._known else _AT_ONCE // 2)

    async def _let_in(self) -> None:
        """Let the waiting in, one each time that the loop comes round soon."""
        while queue := self._known or self._strangers:
            began = self._now_seconds()
            await asyncio.sleep(0)
            is_calm = self._now_seconds() - began <= _CALM_SECONDS
            if queue and (is_calm or self._may_begin(queue)):
                turn = queue.popleft()
                if not turn.done():
                    turn.set_result(None)
        self._usher = None


class Place:
    """One call's place in a crowd, for the length of a block that begins with its `turn`.

    `is_known`: the caller was good lately. Entering it raises `Overloaded`: there are too many
    calls. Nearly none `waits` for its turn, and whoever asks that first saves a coroutine.
    """

    __slots__ = ("_crowd", "_is_known", "_name", "waits")

    def __init__(self, crowd: Crowd, name: str, *, is_known: bool) -> None:
        self._crowd = crowd
        self._name = name
        self._is_known = is_known
        self.waits = False

    def __enter__(self) -> Self:
        self.waits = self._crowd.enter(self._name, is_known=self._is_known)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._crowd.leave(self._name, is_known=self._is_known)

    async def turn(self) -> None:
        """Wait for the turn, if need be; raises `Overloaded` where it does not come in time."""
        if self.waits:
            await self._crowd.turn(is_known=self._is_known)
