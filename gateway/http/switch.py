"""Hands each request to the application of the configuration that holds when it begins.

Responsible for exchanging the application under a listener that goes on listening, for telling when
the last request of a former one has ended, and for what a stop means to requests: `Connection:
close` on every answer, so that whoever keeps a connection takes a new one for its next call,
elsewhere, and an end to bodies that go on arriving.
Must not: know what the applications do. Called by `gateway.running`; the HTTP server calls it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from gateway.http.deadlines import Deadlines

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterable

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

ARRIVING_SECONDS: Final = 5.0
"""How long a request may go on arriving once the process stops; its answer needs time as well."""

_CONNECTION: Final = b"connection"


class Turn:
    """The time for which one application is the current one, and its requests under way."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self.under_way = 0
        self._none: asyncio.Event | None = None

    async def ended(self) -> None:
        """Return once no request is under way; final only when another turn has begun."""
        while self.under_way:
            if self._none is None:
                self._none = asyncio.Event()
            await self._none.wait()

    def end(self) -> None:
        """Count a request out."""
        self.under_way -= 1
        if self._none is not None and self.under_way == 0:
            self._none.set()
            self._none = None


class Switch:
    """An ASGI application over others, one at a time."""

    def __init__(self, app: ASGIApp) -> None:
        self._turn = Turn(app)
        self._is_stopping = False
        self._arriving = Deadlines(None)

    def turn_to(self, app: ASGIApp) -> Turn:
        """From now on requests go to `app`; answers the turn that is over."""
        former, self._turn = self._turn, Turn(app)
        return former

    def stop(self, arriving_seconds: float = ARRIVING_SECONDS) -> None:
        """From now on every answer, also to a request under way, is the last on its connection.

        A request that is not whole after that time looks as if its client had gone.
        """
        self._is_stopping = True
        self._arriving.by(asyncio.get_running_loop().time() + arriving_seconds)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Have the current application answer a request."""
        turn = self._turn

        def send_on(message: Message) -> Awaitable[None]:
            if self._is_stopping and "headers" in message:
                message["headers"] = _with_close(message["headers"])
            return send(message)

        async def receive_on() -> Message:
            try:
                with self._arriving.within():
                    return await receive()
            except TimeoutError:
                return {"type": "http.disconnect"}

        turn.under_way += 1
        try:
            await turn.app(scope, receive_on, send_on)
        finally:
            turn.end()


def _with_close(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    kept = [(name, value) for name, value in headers if name.lower() != _CONNECTION]
    return [*kept, (_CONNECTION, b"close")]
