"""Host names' addresses by the system's resolver, so that a slow one delays only who waits for it.

Responsible for: a thread of its own for each name that is looked up, and no second one for the same
name meanwhile. Must not remember what was found: the resolver does. Called by `exchange`.

Why not the event loop's `getaddrinfo`: it takes one of the few threads that all share, for as long
as the resolver tries, half a minute and more; a handful of names whose servers are dead would have
them all, and with them whatever else needs a thread, making keys too. A daemon thread does not hold
up the end of the process either.
"""

import asyncio
import contextlib
import socket
import threading
from collections.abc import Callable
from typing import Any

Resolve = Callable[[str], list[str]]


def by_system(host: str) -> list[str]:
    """Ask the system's resolver, blocking. Raises: OSError, UnicodeError."""
    found: list[tuple[Any, ...]] = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return [str(sockaddr[0]) for *_, sockaddr in found]


class Lookups:
    """The lookups under way in one event loop."""

    def __init__(self, resolve: Resolve = by_system) -> None:
        self._resolve = resolve
        self._under_way: dict[str, asyncio.Future[list[str]]] = {}

    async def addresses(self, host: str, *, until: float) -> list[str]:
        """A host's addresses; none if there are none by `until`, a loop time. May be repeated."""
        try:
            async with asyncio.timeout_at(until):
                return await asyncio.shield(self._under_way.get(host) or self._begin(host))
        except TimeoutError:
            return []

    def _begin(self, host: str) -> asyncio.Future[list[str]]:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[list[str]] = loop.create_future()

        def end(found: list[str]) -> None:
            del self._under_way[host]
            answer.set_result(found)

        def look_up() -> None:
            found: list[str] = []
            try:
                with contextlib.suppress(OSError, UnicodeError):  # no such name, no resolver
                    found = self._resolve(host)
            finally:
                with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
                    loop.call_soon_threadsafe(end, found)

        try:
            threading.Thread(target=look_up, name=f"lookup {host}", daemon=True).start()
        except RuntimeError:  # the machine has no thread left
            answer.set_result([])
        else:
            self._under_way[host] = answer
        return answer
