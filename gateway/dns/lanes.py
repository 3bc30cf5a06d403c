"""Which updates are under way to each primary of a zone, and which wait for those to end.

Responsible for the turns: an update waits while another is under way, `MOST_WAIT_SECONDS` at the
most, and what waits sets out together soon after its end, in as few groups as have room. So a
server that is quick is sent little at a time, one that is slow (or far away, or dead) as much at
once as there is, and nobody stands behind a message that hangs. Must not know what an update is,
nor send it. Called by `joining`; each `Exchange` has its own.
"""

import asyncio
import contextvars
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

import dns.name
from dns.rcode import Rcode

from gateway.dns.errors import DnsFault
from gateway.dns.replies import Peer

MOST_WAIT_SECONDS: Final = 0.01
"""How long an update waits for others: BIND takes 3 ms for a message, with an idle disk."""

PAUSE_SECONDS: Final = 0.004
"""How long those that wait go on waiting when their way is free, for who is about to decide.

New names, 64 at once, take 8% less processor time for it. One that comes alone never waits.
"""

MOST_JOINED: Final = 16
"""How many updates set out as one."""

APART_SECONDS: Final = 10.0
"""For how long nothing is joined for a server that gave some joined updates another answer than yes
or a prerequisite's no."""


@dataclass(slots=True, eq=False, kw_only=True)
class Waiting:
    """One caller's update of one name, and what comes of it. `deadline` is a loop time."""

    name: dns.name.Name
    deadline: float
    result: asyncio.Future[Rcode] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )
    context: contextvars.Context = field(default_factory=contextvars.copy_context)
    has_left: bool = False
    """Whether it may be in a message that was sent."""

    def answer(self, rcode: Rcode) -> None:
        """Tell the caller, if it still waits."""
        if not self.result.done():
            self.result.set_result(rcode)

    def fail(self, fault: DnsFault) -> None:
        """The same of a fault."""
        if not self.result.done():
            self.result.set_exception(fault)


SendTogether = Callable[[Sequence[Waiting]], Coroutine[None, None, None]]


class Lane:
    """The way to one primary of one zone."""

    def __init__(self) -> None:
        self._under_way = 0
        self._waiting: list[Waiting] = []
        self._send_together: SendTogether | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._apart_until = 0.0

    @property
    def is_free(self) -> bool:
        """May an update set out at once, by itself?"""
        is_idle = not (self._under_way or self._waiting)
        return is_idle or asyncio.get_running_loop().time() < self._apart_until

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Something is under way while the block runs."""
        self._under_way += 1
        try:
            yield
        finally:
            self._under_way -= 1
            if self._waiting and not self._under_way:
                self._set_out_soon()

    def wait(self, waiting: Waiting, send_together: SendTogether) -> None:
        """Have one sent with others, in a task of their own."""
        self._waiting.append(waiting)
        self._send_together = send_together
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(MOST_WAIT_SECONDS, self._set_out)

    def keep_apart(self) -> None:
        """The server was not good at several updates in one: for a while it gets one at a time."""
        self._apart_until = asyncio.get_running_loop().time() + APART_SECONDS

    def _set_out_soon(self) -> None:
        """After a pause: who decides in it comes along. Never later than it would have been."""
        loop = asyncio.get_running_loop()
        at = loop.time() + PAUSE_SECONDS
        if self._timer is not None:
            at = min(at, self._timer.when())
            self._timer.cancel()
        self._timer = loop.call_at(at, self._set_out)

    def _set_out(self) -> None:
        waiting, self._waiting, self._timer = self._waiting, [], None
        send_together = self._send_together
        loop = asyncio.get_running_loop()
        for group in grouped(waiting):
            if send_together is not None:
                # Whatever is told meanwhile, a log line or a trace, is the first one's.
                task = loop.create_task(send_together(group), context=group[0].context)
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)


def grouped(waiting: Sequence[Waiting]) -> list[list[Waiting]]:
    """Those whose callers still wait, in groups that have each name once at the most."""
    groups: list[dict[tuple[bytes, ...], Waiting]] = []
    for each in waiting:
        if each.result.done():
            continue
        # Told apart by bytes: a hash of a Name takes a step for each character.
        labels = tuple(map(bytes.lower, each.name.labels))
        group = next(
            (some for some in groups if len(some) < MOST_JOINED and labels not in some), None
        )
        if group is None:
            group = {}
            groups.append(group)
        group[labels] = each
    return [list(group.values()) for group in groups]


class Lanes:
    """One for each primary of each zone, by the key that signs as well: few."""

    def __init__(self) -> None:
        self._lanes: dict[Peer, Lane] = {}

    def to(self, peer: Peer) -> Lane:
        """The lane there."""
        lane = self._lanes.get(peer)
        if lane is None:
            lane = self._lanes[peer] = Lane()
        return lane
