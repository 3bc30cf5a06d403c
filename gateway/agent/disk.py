"""Threads that wait for the disk in place of the event loop.

Responsible for: a few threads of the agent's own. `asyncio.to_thread` was the alternative: it
shares its threads with the look-ups of names, so that one dead network file system would keep the
agent from the gateway as well, and the interpreter waits for them before it ends. These end with
the process, whatever they hang in. What memories are written by is kept apart from what
certificates are, and from what programs are started by: each may be on a mount that is dead. Used
by whoever reads or writes files, or starts programs, while others go on.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

_T = TypeVar("_T")


class Disk:
    """At most so many threads, begun when there is work. May be used from any event loop."""

    def __init__(self, name: str, threads: int) -> None:
        self._name = name
        self._waiting: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._places = threads

    async def run(self, work: Callable[..., _T], *arguments: object) -> _T:
        """What the work answers or raises. Whoever is cancelled leaves it to its own end."""
        loop = asyncio.get_running_loop()
        came_to: asyncio.Future[_T] = loop.create_future()

        def settle(outcome: Callable[[], None]) -> None:
            if not came_to.cancelled():
                outcome()

        def carry_out() -> None:
            try:
                outcome = partial(came_to.set_result, work(*arguments))
            except BaseException as error:  # noqa: BLE001  (for whoever waits for it)
                outcome = partial(came_to.set_exception, error)
            # The loop may be closed by now: then nobody waits any more.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(settle, outcome)

        self._begin_thread()
        self._waiting.put(carry_out)
        return await came_to

    def _begin_thread(self) -> None:
        if self._places:
            self._places -= 1
            threading.Thread(target=self._work, name=self._name, daemon=True).start()

    def _work(self) -> None:
        while True:
            self._waiting.get()()


FILES: Final = Disk("files", 4)
"""For certificates, the token and the report."""

NOTES: Final = Disk("notes", 1)
"""For what is remembered: one after the other."""

PROGRAMS: Final = Disk("programs", 32)
"""For starting hooks and commands that print an address; of these 8 at once may hang together."""
