"""Which connections are idle, the longest first: who gives way when there are too many.

Idle is one without a request: in its TLS handshake, before its first request, between two. Without
this a few addresses could hold all connections there may be, by doing nothing. No I/O of its own.
Filled by `accepting` and `protocol`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class Idle:
    """The idle connections of one listener, each by what it is released with."""

    def __init__(self) -> None:
        self._ends: dict[object, Callable[[], None]] = {}

    def begin(self, connection: object, end: Callable[[], None]) -> None:
        """It is idle from now on; `end` ends it at once."""
        self._ends.pop(connection, None)
        self._ends[connection] = end

    def over(self, connection: object) -> None:
        """It is not idle any more, or gone; repeatable."""
        self._ends.pop(connection, None)

    def end_longest(self) -> None:
        """End the one that has been idle for longest, if any is."""
        for connection in self._ends:
            self._ends.pop(connection)()
            return
