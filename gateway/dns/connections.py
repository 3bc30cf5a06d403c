"""TCP connections to DNS servers, kept for a moment for the next question (RFC 7766, 6.2).

A connection carries one message at a time and is lent to nobody else meanwhile, so a server that
hangs still holds up its own zones only, and an answer can't be taken for another's. It is kept only
after an answer that was believed, for two seconds at the most without one: shorter than servers
wait (PowerDNS 5 s, Knot 10 s, BIND 30 s), so it is seldom the server that closes it, and few of
those that a server may have are taken (PowerDNS 20, BIND 150).

A server may close at any time, and then nobody knows whether the last message was taken. So a kept
connection is for messages that may be sent again, and those are, over a new one; an UPDATE always
has a new one. Rejected: several messages at once on one connection, which saves less than it binds
together. Gain: a sync that changes nothing costs 21% less in `gateway.dns`.

Responsible for connections and their number. Must not read messages (the caller's `accept` says
whether an answer is to be believed). Called by `exchange`.
"""

import asyncio
from collections.abc import Callable
from typing import Final, TypeVar, cast

from gateway.dns.transport import NotAnswered, NotTaken, why_not_taken
from gateway.dns.zones import Endpoint

_Answer = TypeVar("_Answer")

IDLE_SECONDS: Final = 2.0
"""How long a connection is kept that carries nothing."""

LIFE_SECONDS: Final = 30.0
"""How old one may be to be kept: a server that was moved behind its address is found again."""

MOST_KEPT: Final = 8
"""How many of one server are kept that carry nothing."""


class Connections:
    """The connections of one `Exchange`; without `keeps` each message has a new one."""

    def __init__(self, *, keeps: bool) -> None:
        self._most_kept = MOST_KEPT if keeps else 0
        self._kept: dict[Endpoint, list[_Connection]] = {}
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
        kept = self._take(address) if again else None
        while True:
            connection = kept or await _Connection.open(address, until=connect_until)
            try:
                answer = accept(await connection.ask(message, until=until))
            except BaseException as fault:
                connection.close()
                if kept is None or not isinstance(fault, _ClosedEarly):
                    raise
            else:
                self._keep(connection, address)
                return answer
            kept = None
            self._close_kept(address)  # the server was started anew, or closes all

    def close(self) -> None:
        """Close what is kept, and keep nothing more."""
        self._most_kept = 0
        for address in tuple(self._kept):
            self._close_kept(address)
        if self._sweep is not None:
            self._sweep.cancel()

    def _take(self, address: Endpoint) -> "_Connection | None":
        """The one that was used last, so that those which nobody needs grow old."""
        kept = self._kept.get(address)
        while kept:
            connection = kept.pop()
            if connection.is_sound:
                return connection
            connection.close()
        return None

    def _keep(self, connection: "_Connection", address: Endpoint) -> None:
        loop = asyncio.get_running_loop()
        kept = self._kept.setdefault(address, []) if self._most_kept else []
        is_old = loop.time() >= connection.opened_at + LIFE_SECONDS
        if is_old or len(kept) >= self._most_kept or not connection.is_sound:
            connection.close()
            return
        connection.idle_since = loop.time()
        kept.append(connection)
        if self._sweep is None:
            self._sweep = loop.call_later(IDLE_SECONDS, self._close_idle)

    def _close_idle(self) -> None:
        loop = asyncio.get_running_loop()
        for address, kept in tuple(self._kept.items()):
            while kept and loop.time() >= kept[0].idle_since + IDLE_SECONDS:
                kept.pop(0).close()
            if not kept:
                del self._kept[address]
        oldest = min((kept[0].idle_since for kept in self._kept.values()), default=None)
        self._sweep = None
        if oldest is not None:
            self._sweep = loop.call_at(oldest + IDLE_SECONDS, self._close_idle)

    def _close_kept(self, address: Endpoint) -> None:
        for connection in self._kept.pop(address, ()):
            connection.close()


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
