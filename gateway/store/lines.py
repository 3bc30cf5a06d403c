"""A line to a Redis server: one connection that many callers use at the same time.

Responsible for the order on it. What is asked in one turn of the event loop is written together at
its end, each caller's commands in one piece; answers come in that order, and whoever has given up
is passed over. So nobody takes a connection out of a pool for a read, and many share the cost of
one system call.

An answer that is late says that the server hangs or is cut off. A line that waits for one takes
nothing more (`is_open`), and ends when nobody waits on it. What holds up a connection (WAIT) must
not be sent here, nor what has a long answer.

The connection, with its TLS and login, is redis-py's (8.1), which has no way of its own to send
before the last answer was read: its transport and the reading of errors are taken from it.
Must not: open a connection, or send anything again. Called by `store.nodes`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Any, Final

import hiredis
from redis.exceptions import (
    ConnectionError as RedisConnectionError,
    InvalidResponse,
    TimeoutError as RedisTimeoutError,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from redis.asyncio.connection import AbstractConnection

    from gateway.store.nodes import Command

_INCOMPLETE: Final = object()
"""What the reader answers while there is no whole answer."""


class _Exchange:
    """Some commands of one caller: how many answers are due and until when, and those that came."""

    __slots__ = ("answers", "due", "late_at", "result")

    def __init__(self, result: asyncio.Future[list[Any]], due: int, late_at: float) -> None:
        self.result = result
        self.due = due
        self.late_at = late_at
        self.answers: list[Any] = []


class Line(asyncio.Protocol):
    """A line over a connection that is open and logged in; from now on nobody else uses it.

    `limit_seconds` is how long an answer may take.
    """

    def __init__(self, connection: AbstractConnection, limit_seconds: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._limit_seconds = limit_seconds
        self._connection = connection
        self._transport = connection._writer.transport  # type: ignore[union-attr]
        self._reader = hiredis.Reader(
            protocolError=InvalidResponse,
            replyError=connection._parser.parse_error,
            encoding=connection.encoder.encoding,
            errors=connection.encoder.encoding_errors,
            notEnoughData=_INCOMPLETE,
        )
        self._waiting: deque[_Exchange] = deque()
        self._unsent: list[bytes] = []
        self._watch: asyncio.TimerHandle | None = None
        self._lost: asyncio.Future[None] = self._loop.create_future()
        self.is_open = not self._transport.is_closing()
        if self.is_open:
            self._transport.set_protocol(self)
        else:
            self.connection_lost(None)

    def exchange(self, commands: Sequence[Command]) -> asyncio.Future[list[Any]]:
        """Send commands while the line is open: what each comes to, a refusal as an exception.

        The future fails with redis-py's ConnectionError when the connection is lost or the server
        is still loading, with its TimeoutError when the answer is late. It may be cancelled.
        """
        try:
            packed = list(map(hiredis.pack_command, commands))  # type: ignore[arg-type]  # of one word, it says
        except UnicodeEncodeError:
            packed = [hiredis.pack_command(_as_bytes(command)) for command in commands]
        if not self._unsent:
            self._loop.call_soon(self._send)
        self._unsent += packed
        result: asyncio.Future[list[Any]] = self._loop.create_future()
        late_at = self._loop.time() + self._limit_seconds
        self._waiting.append(_Exchange(result, len(packed), late_at))
        if self._watch is None:
            self._watch = self._loop.call_at(late_at, self._look_for_late)
        return result

    @property
    def has_ended(self) -> bool:
        """Whether the connection is gone."""
        return self._lost.done()

    def part(self) -> None:
        """Take nothing more, and end once nobody waits. May be repeated."""
        self.is_open = False
        if all(exchange.result.done() for exchange in self._waiting):
            self._transport.abort()

    async def close(self) -> None:
        """End at once, whoever waits; return when it has ended. May be repeated."""
        self.is_open = False
        self._transport.abort()
        await asyncio.wait({self._lost})

    def data_received(self, data: bytes) -> None:
        """Hand out the answers that have come."""
        try:
            self._reader.feed(data)
            while (answer := self._reader.gets()) is not _INCOMPLETE:
                self._hand_out(answer)
        except (InvalidResponse, IndexError):  # nothing that Redis says, or that anybody asked
            self._transport.abort()
        if not self.is_open and not self._waiting:
            self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell everybody who waits."""
        self.is_open = False
        if self._watch is not None:
            self._watch.cancel()
        for exchange in self._waiting:
            if not exchange.result.done():
                exchange.result.set_exception(RedisConnectionError("The connection was lost"))
        self._waiting.clear()
        # redis-py warns of a connection that nobody has closed.
        self._connection._close()  # type: ignore[no-untyped-call]
        if not self._lost.done():
            self._lost.set_result(None)

    def _send(self) -> None:
        unsent, self._unsent = self._unsent, []
        # What has ended must not be written to: uvloop 0.23 fails then, and so does asyncio's TLS.
        if not self.has_ended:
            self._transport.write(b"".join(unsent))

    def _hand_out(self, answer: Any) -> None:
        exchange = self._waiting[0]
        exchange.answers.append(answer)
        if len(exchange.answers) < exchange.due:
            return
        self._waiting.popleft()
        if exchange.result.done():
            return
        for each in exchange.answers:
            if isinstance(each, RedisConnectionError):  # it loads its file
                exchange.result.set_exception(each)
                return
        exchange.result.set_result(exchange.answers)

    def _look_for_late(self) -> None:
        """Give up what is late; look again when the next one will be.

        What nobody waits for any more is due like all else: a server that hangs must be found out
        though each caller gives up sooner.
        """
        self._watch = None
        now = self._loop.time()
        for exchange in self._waiting:
            if exchange.late_at > now:
                self._watch = self._loop.call_at(exchange.late_at, self._look_for_late)
                return
            self.is_open = False
            if not exchange.result.done():
                text = f"No answer within {self._limit_seconds:g} s"
                exchange.result.set_exception(RedisTimeoutError(text))
        if not self.is_open:
            self._transport.abort()


def _as_bytes(command: Command) -> Any:
    """A command with what was read and is no UTF-8, which goes back as the bytes that it was."""
    return tuple(
        word.encode(errors="surrogateescape") if isinstance(word, str) else word for word in command
    )
