"""Hands each request to the application of the configuration that holds when it begins.

Responsible for exchanging the application under a listener that goes on listening, for telling when
the last request of a former one has ended, and for `Connection: close` on every answer while the
process stops: whoever keeps a connection then takes a new one for its next call, elsewhere.
Must not: know what the applications do. Called by `gateway.running`; the HTTP server calls it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_CONNECTION: Final = b"connection"


class Turn:
    """The time for which one application is the current one, and its requests under way."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self._under_way = 0
        self._none = asyncio.Event()
        self._none.set()

    async def ended(self) -> None:
        """Return once no request is under way; final only when another turn has begun."""
        await self._none.wait()

    def begin(self) -> None:
        """Count a request in."""
        self._under_way += 1
        self._none.clear()

    def end(self) -> None:
        """Count a request out."""
        self._under_way -= 1
        if self._under_way == 0:
            self._none.set()


class Switch:
    """An ASGI application over others, one at a time."""

    def __init__(self, app: ASGIApp) -> None:
        self._turn = Turn(app)
        self._is_stopping = False

    def turn_to(self, app: ASGIApp) -> Turn:
        """From now on requests go to `app`; answers the turn that is over."""
        former, self._turn = self._turn, Turn(app)
        return former

    def stop(self) -> None:
        """From now on every answer, also to a request under way, is the last on its connection."""
        self._is_stopping = True

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Have the current application answer a request."""
        turn = self._turn

        async def send_on(message: Message) -> None:
            if self._is_stopping and message["type"] == "http.response.start":
                message["headers"] = _with_close(message.get("headers", ()))
            await send(message)

        turn.begin()
        try:
            await turn.app(scope, receive, send_on)
        finally:
            turn.end()


def _with_close(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    kept = [(name, value) for name, value in headers if name.lower() != _CONNECTION]
    return [*kept, (_CONNECTION, b"close")]
