"""TCP connections to DNS servers, kept for a moment for the next question (RFC 7766, 6.2).

A connection carries one message at a time and is lent to nobody else meanwhile, so a server that
hangs still holds up its own zones only, and an answer can't be taken for another's. It is kept only
after an answer that was believed, for two seconds at the most without one: shorter than servers
wait (PowerDNS 5 s, Knot 10 s, BIND 30 s), so it is seldom the server that closes it, and few of
those that a server may have are taken (PowerDNS 20, BIND 150).

Of many questions at once, as many as are kept are under way, and the others wait for one of those
connections, for a moment: a server that answers is as quick over eight as over sixty, and opening
one for each costs a question half its time (64 at once: 0.33 ms to 0.27 for a new name). Whoever
has waited in vain opens one: a server that hangs costs a question that moment.

A server may close at any time, and then nobody knows whether the last message was taken; and one
that answers twice has its second answer taken for the next question's, and not believed. So a kept
connection is for messages that may be sent again, and those are, over a new one; an UPDATE always
has a new one. Rejected: several messages at once on one connection, which saves less than it binds
together. Gain: a sync that changes nothing costs 21% less in `gateway.dns`.

Responsible for connections and their number. Must not read messages (the caller's `accept` says
whether an answer is to be believed). Called by `exchange`.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, TypeVar, cast

from gateway.dns.errors import ReplyInvalid
from gateway.dns.transport import NotAnswered, NotTaken, why_not_taken
from gateway.dns.zones import Endpoint

_Answer = TypeVar("_Answer")

IDLE_SECONDS: Final = 2.0
"""How long a connection is kept that carries nothing."""

LIFE_SECONDS: Final = 30.0
"""How old one may be to be kept: a server that was moved behind its address is found again."""

MOST_KEPT: Final = 8
"""How many of one server are kept that carry nothing, and how many are used before others wait."""

WAIT_SECONDS: Final = 0.05
"""How long a question waits for a connection in use: several turns of a busy event loop."""


class Connections:
    """The connections of one `Exchange`; without `keeps` each message has a new one."""

    def __init__(self, *, keeps: bool) -> None:
        self._most_kept = MOST_KEPT if keeps else 0
        self._servers: dict[Endpoint, _Server] = {}
        self._sweep: asyncio.TimerHandle | None = None

    async def ask(
        self,
        address: Endpoint,
        message: bytes,
        accept: Callable[[bytes], _Answer],
        *,
        again: bool,
        connect_until: float,
        until: float,
    ) -> _Answer:
        """Send a message and return what `accept` makes of the answer. Times are loop times.

        `again`: it may be sent a second time, so a kept connection will do.
        Raises: NotTaken, NoFile, NotAnswered, and whatever `accept` raises.
        """
        if not again or not self._most_kept:
            new = await _Connection.open(address, until=connect_until)
            try:
                return accept(await new.ask(message, until=until))
            finally:
                new.close()
        server = self._servers.get(address)
        if server is None:
            server = self._servers[address] = _Server()
        kept = (
            self._take(server)
            if server.in_use < MOST_KEPT
            else await self._turn(server, connect_until)
        )
        connection: _Connection | None = kept
        fit: _Connection | None = None
        try:
            connection = kept or await _Connection.open(address, until=connect_until)
            try:
                answer = accept(await connection.ask(message, until=until))
            except (_ClosedEarly, ReplyInvalid) as fault:
                if kept is None:
                    raise
                connection.close()  # that may have been a second answer to the last question
                if isinstance(fault, _ClosedEarly):
                    server.close_idle()  # it was started anew, or closes all
                connection = await _Connection.open(address, until=connect_until)
                answer = accept(await connection.ask(message, until=until))
            fit = connection
            return answer
        finally:
            if connection is not None and fit is None:
                connection.close()
            self._pass_on(server, fit)

    def close(self) -> None:
        """Close what is kept, and keep nothing more."""
        self._most_kept = 0
        for server in self._servers.values():
            server.close_idle()
        if self._sweep is not None:
            self._sweep.cancel()

    def _take(self, server: "_Server") -> "_Connection | None":
        """The one that was used last, so that those which nobody needs grow old."""
        server.in_use += 1
        while server.idle:
            connection = server.idle.pop()
            if connection.is_sound:
                return connection
            connection.close()
        return None

    async def _turn(self, server: "_Server", until: float) -> "_Connection | None":
        """A connection that somebody else has used; None after a while, or when it was closed."""
        loop = asyncio.get_running_loop()
        waiting: asyncio.Future[_Connection | None] = loop.create_future()
        server.waiting.append(waiting)
        timer = loop.call_at(min(loop.time() + WAIT_SECONDS, until), server.give_up, waiting)
        try:
            return await waiting
        except asyncio.CancelledError:
            if waiting.done() and not waiting.cancelled():
                self._pass_on(server, waiting.result())
            raise
        finally:
            timer.cancel()

    def _pass_on(self, server: "_Server", connection: "_Connection | None") -> None:
        """Somebody's turn is over, with the connection that is fit to be used again, if any."""
        loop = asyncio.get_running_loop()
        now = loop.time()
        if connection is not None and (
            now >= connection.opened_at + LIFE_SECONDS or not connection.is_sound
        ):
            connection.close()
            connection = None
        while server.waiting:
            waiting = server.waiting.popleft()
            if not waiting.done():
                waiting.set_result(connection)
                return
        server.in_use -= 1
        if connection is None:
            return
        if len(server.idle) >= self._most_kept:
            connection.close()
            return
        connection.idle_since = now
        server.idle.append(connection)
        if self._sweep is None:
            self._sweep = loop.call_later(IDLE_SECONDS, self._close_idle)

    def _close_idle(self) -> None:
        loop = asyncio.get_running_loop()
        since: list[float] = []
        for address, server in tuple(self._servers.items()):
            idle = server.idle
            while idle and loop.time() >= idle[0].idle_since + IDLE_SECONDS:
                idle.pop(0).close()
            if idle:
                since.append(idle[0].idle_since)
            elif not server.in_use:
                del self._servers[address]
        self._sweep = None
        if since:
            self._sweep = loop.call_at(min(since) + IDLE_SECONDS, self._close_idle)


@dataclass(slots=True, eq=False)
class _Server:
    """One server's connections: those that carry nothing, how many turns are taken, who waits."""

    idle: "list[_Connection]" = field(default_factory=list)
    in_use: int = 0
    waiting: "deque[asyncio.Future[_Connection | None]]" = field(default_factory=deque)

    def give_up(self, waiting: "asyncio.Future[_Connection | None]") -> None:
        """One has waited long enough: its turn is one more than there should be."""
        if not waiting.done():
            self.in_use += 1
            waiting.set_result(None)

    def close_idle(self) -> None:
        """Close all that carry nothing."""
        while self.idle:
            self.idle.pop().close()


_CLOSED: Final = "closed the TCP connection without an answer"


class _ClosedEarly(NotAnswered):
    """The server has closed the connection instead of answering."""


class _Connection(asyncio.Protocol):
    """One connection, with at most one message under way. `opened_at`, `idle_since`: loop times."""

    def __init__(self) -> None:
        self.opened_at = self.idle_since = asyncio.get_running_loop().time()
        self._transport: asyncio.Transport | None = None
        self._arrived = bytearray()
        self._answer: asyncio.Future[bytes] | None = None
        self._timer: asyncio.TimerHandle | None = None

    @classmethod
    async def open(cls, address: Endpoint, *, until: float) -> "_Connection":
        """Raises: NotTaken, NoFile."""
        loop = asyncio.get_running_loop()
        try:
            if loop.time() >= until:  # it has waited for another one
                raise TimeoutError
            async with asyncio.timeout_at(until):
                _, connection = await loop.create_connection(cls, address.host, address.port)
        except TimeoutError:
            raise NotTaken("took no TCP connection in time") from None
        except OSError as error:
            raise why_not_taken(error) from error
        return connection

    @property
    def is_sound(self) -> bool:
        """Is it open, with nothing on it that nobody has asked for?"""
        is_open = self._transport is not None and not self._transport.is_closing()
        return is_open and not self._arrived

    def ask(self, message: bytes, *, until: float) -> asyncio.Future[bytes]:
        """Send a message; answers the answer, or is ended by NotAnswered.

        A future with a timer: `asyncio.timeout` and a coroutine to wait in take 0.01 ms more.
        """
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[bytes] = loop.create_future()
        if self._transport is None or self._transport.is_closing():
            answer.set_exception(_ClosedEarly(_CLOSED))
            return answer
        self._answer = answer
        self._timer = loop.call_at(until, self._end, NotAnswered("gave no answer over TCP in time"))
        self._transport.write(len(message).to_bytes(2, "big") + message)
        return answer

    def close(self) -> None:
        """Close it at once. May be repeated."""
        if self._timer is not None:
            self._timer.cancel()
        if self._transport is not None:
            self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by the loop."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Called by the loop."""
        arrived = self._arrived
        arrived += data
        end = 2 + int.from_bytes(arrived[:2], "big")
        if self._answer is None or self._answer.done():
            self.close()  # it says more than was asked
        elif len(arrived) >= max(end, 2):
            answer = bytes(arrived[2:end])
            del arrived[:end]
            self._end(answer)

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by the loop, when either side has closed it."""
        self._end(_ClosedEarly(_CLOSED))

    def _end(self, result: bytes | NotAnswered) -> None:
        answer, self._answer = self._answer, None
        if self._timer is not None:
            self._timer.cancel()
        if answer is None or answer.done():
            return
        if isinstance(result, bytes):
            answer.set_result(result)
        else:
            answer.set_exception(result)
