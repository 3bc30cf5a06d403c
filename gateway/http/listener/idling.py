"""Which connections give way when there are too many: who waits for its peer, the longest first.

That is one without a request (in its TLS handshake, before its first request, between two), and one
whose only request is still on its way: whoever sends slowly holds a place as well as one who sends
nothing. Never one whose call is under way. All in one order, so that who has just come goes last,
whatever the others do. Without this a few addresses could hold all connections there may be. No I/O
of its own. Filled by `accepting` and `protocol`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class Idle:
    """The connections of one listener that wait, each by what it is released with."""

    def __init__(self) -> None:
        self._ends: dict[object, Callable[[], None]] = {}
        self._peers: dict[object, str] = {}

    def enter(self, connection: object, peer: str) -> None:
        """There is one more connection; `peer` is what its address counts as."""
        self._peers[connection] = peer

    def leave(self, connection: object) -> None:
        """It is gone; repeatable."""
        self.over(connection)
        self._peers.pop(connection, None)

    def begin(self, connection: object, end: Callable[[], None]) -> None:
        """It waits from now on, for something new; `end` ends it at once."""
        self._ends.pop(connection, None)
        self._ends[connection] = end

    def over(self, connection: object) -> None:
        """It waits no more; repeatable."""
        self._ends.pop(connection, None)

    def end_longest(self, peer: str | None = None) -> None:
        """End the one that has waited for longest, if any does: of all, or of one peer."""
        for connection in self._ends:
            if peer is None or self._peers.get(connection) == peer:
                self._ends.pop(connection)()
                return
