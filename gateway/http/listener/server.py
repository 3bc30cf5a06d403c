"""The HTTP server on a listening socket: uvicorn's, with our protocol and our way of accepting.

Called by `gateway.listening`.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from typing import TYPE_CHECKING, Any, cast

import uvicorn

from gateway.http.listener.accepting import Acceptor
from gateway.http.listener.draining import drain
from gateway.http.listener.idling import Idle
from gateway.http.listener.patience import DEFAULT_PATIENCE
from gateway.http.listener.protocol import Protocol

if TYPE_CHECKING:
    import socket
    import ssl
    from collections.abc import Callable, Iterator, Sequence

    from gateway.http.listener.admission import Admission
    from gateway.http.listener.patience import Patience


class Server(uvicorn.Server):
    """Serves one application on one socket until `should_exit` is set.

    `app` is any ASGI application; `headers` go on every response there is, the server's own
    refusals included. `admission` and `context` are as `Acceptor` has them.
    """

    def __init__(
        self,
        app: Any,
        *,
        headers: Sequence[tuple[str, str]],
        grace_seconds: float,
        admission: Admission,
        context: Callable[[], ssl.SSLContext | None],
        patience: Patience = DEFAULT_PATIENCE,
    ) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                http=Protocol,
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                headers=list(headers),
                server_header=False,
                # Whom to believe about a caller's address is decided elsewhere.
                proxy_headers=False,
                timeout_keep_alive=patience.keep_alive_seconds,
            )
        )
        self._acceptors: list[Acceptor] = []
        self._idle = Idle()
        self._grace_seconds = grace_seconds
        self._admission = admission
        self._context = context
        self._patience = patience

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals alone.

        uvicorn 0.54 raises the signal again once it has stopped, which would end the process before
        the worker has handed over.
        """
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept on the sockets given; `serve` calls it."""
        self._acceptors = [
            Acceptor(
                listener,
                self._protocol,
                self._admission,
                self._context,
                self._patience,
                self._idle,
            )
            for listener in sockets or ()
        ]
        # uvicorn calls `close` and `wait_closed` of it, and nothing else.
        self.servers = cast("list[asyncio.Server]", self._acceptors)
        self.started = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop accepting, then end every connection, politely; `serve` calls it."""
        loop = asyncio.get_running_loop()
        begun = loop.time()
        await drain(
            self._acceptors,
            sockets or (),
            self.server_state.connections,
            self._patience.parting_seconds,
        )
        left_seconds = self._grace_seconds - (loop.time() - begun)
        self.config.timeout_graceful_shutdown = max(1, math.floor(left_seconds))
        await super().shutdown(sockets)

    def _protocol(self, on_lost: Callable[[], None]) -> asyncio.Protocol:
        return Protocol(self.config, self.server_state, on_lost, self._patience, self._idle)
