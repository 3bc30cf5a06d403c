"""Accepting connections: within the bounds, each with the TLS identity of that moment.

The event loop's own way (`create_server`) has no bound and one TLS context for good, and uvloop
0.23 cuts off whoever wants in when the process is out of descriptors. Here a connection beyond the
bounds is closed before anything is spent on it, and without descriptors accepting pauses while the
kernel keeps whoever waits. Called by `server`.
"""

from __future__ import annotations

import asyncio
import errno
from typing import TYPE_CHECKING, Any, Final

import structlog

from gateway.contract.faults import plain

if TYPE_CHECKING:
    import socket
    import ssl
    from collections.abc import Callable

    from gateway.http.listener.admission import Admission
    from gateway.http.listener.idling import Idle
    from gateway.http.listener.patience import Patience

TLS_CLOSE_SECONDS: Final = 1.0
"""A peer that does not answer the end of TLS holds a stop up as long."""

LATE_SECONDS: Final = 0.5
PAUSE_SECONDS: Final = 0.2
AT_ONCE: Final = 64
"""How many are accepted before the loop's other work has its turn."""

SAY_AGAIN_SECONDS: Final = 60.0
SHOWN_CHARACTERS: Final = 200

_EXHAUSTED: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})

_log = structlog.get_logger(__name__)


class Acceptor:
    """Accepts on one listening socket from its making on, until `close`.

    `make_protocol` is given what the protocol has to call once its connection is lost; `context`
    answers the TLS context for a new connection, None for plain HTTP. Takes the place of an
    `asyncio.Server` for uvicorn.
    """

    def __init__(
        self,
        listener: socket.socket,
        make_protocol: Callable[[Callable[[], None]], asyncio.Protocol],
        admission: Admission,
        context: Callable[[], ssl.SSLContext | None],
        patience: Patience,
        idle: Idle,
    ) -> None:
        self._idle = idle
        self._listener = listener
        self._make_protocol = make_protocol
        self._admission = admission
        self._context = context
        self._patience = patience
        self._loop = asyncio.get_running_loop()
        self._beginning: set[asyncio.Task[None]] = set()
        self._is_closed = False
        self._said_at: dict[str, float] = {}
        listener.setblocking(False)
        self._loop.add_reader(listener, self._accept)

    def close(self) -> None:
        """Accept no more; connections go on, those in their handshake too."""
        if not self._is_closed:
            self._is_closed = True
            self._loop.remove_reader(self._listener)

    async def wait_closed(self) -> None:
        """End the handshakes that are still under way, after a moment."""
        if self._beginning:
            _, late = await asyncio.wait(self._beginning, timeout=LATE_SECONDS)
            for task in late:
                task.cancel()

    def accept_all(self) -> None:
        """Accept everybody who waits now, without a turn for the loop's other work."""
        while not self._is_closed and self._accept():
            pass

    def _accept(self) -> bool:
        """Accept some; whether there may be more."""
        for _ in range(AT_ONCE):
            try:
                connection, address = self._listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return False
            except OSError as error:
                if error.errno not in _EXHAUSTED:
                    self._say("accepting failed", error=error.strerror)
                    return False
                self._pause(error)
                return False
            self._take(connection, str(address[0]))
        return True

    def _pause(self, error: OSError) -> None:
        """The listener stays readable: without a pause it would be tried as fast as can be."""
        self._say("out of descriptors, connections wait", error=error.strerror)
        self._loop.remove_reader(self._listener)
        self._loop.call_later(PAUSE_SECONDS, self._go_on)

    def _go_on(self) -> None:
        if not self._is_closed:
            self._loop.add_reader(self._listener, self._accept)

    def _take(self, connection: socket.socket, peer: str) -> None:
        key = self._admission.key_of(peer)
        if self._admission.has_too_many(key):
            # Its own: nobody drives others out beyond what his address may have.
            self._idle.end_longest(key)
        elif self._admission.is_full:
            self._idle.end_longest()
        if not self._admission.enter(key):
            self._say(
                "connection refused, too many", remote=peer, connections=self._admission.total
            )
            connection.close()
            return
        connection.setblocking(False)
        release = _once(lambda: self._leave(key, release))
        task = self._loop.create_task(self._begin(connection, release, peer))
        self._beginning.add(task)
        task.add_done_callback(self._beginning.discard)

        def give_way() -> None:
            release()
            task.cancel()

        self._idle.enter(release, key)
        # Until its protocol says otherwise, of the same connection.
        self._idle.begin(release, give_way)

    def _leave(self, key: str, connection: object) -> None:
        self._admission.leave(key)
        self._idle.leave(connection)

    async def _begin(
        self, connection: socket.socket, release: Callable[[], None], peer: str
    ) -> None:
        context = self._context()
        tls: dict[str, Any] = {}
        if context is not None:
            tls = {
                "ssl": context,
                "ssl_handshake_timeout": self._patience.handshake_seconds,
                "ssl_shutdown_timeout": TLS_CLOSE_SECONDS,
            }
        try:
            await self._loop.connect_accepted_socket(
                lambda: self._make_protocol(release), connection, **tls
            )
        except OSError as error:  # a handshake that failed, or took too long: the peer's affair
            release()
            said = plain(str(error), SHOWN_CHARACTERS)
            _log.debug("connection did not begin", remote=peer, error=said)
        except BaseException:
            release()
            raise

    def _say(self, event: str, **fields: object) -> None:
        """A warning, but not one for each connection of a flood."""
        now = self._loop.time()
        if now - self._said_at.get(event, -SAY_AGAIN_SECONDS) >= SAY_AGAIN_SECONDS:
            self._said_at[event] = now
            _log.warning(event, **fields)


def _once(act: Callable[[], None]) -> Callable[[], None]:
    """The same, carried out at the first call only."""
    left = [act]

    def act_once() -> None:
        while left:
            left.pop()()

    return act_once
