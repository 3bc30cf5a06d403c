"""One Redis server: its connections, and several commands on one of them.

Responsible for the time limits of a connection, for how many there are, and for what goes together
with others on one line (`store.lines`): the short commands that calls are made of. All else has a
connection of its own for as long as it takes. Must not: know which keys lie here, or try again
elsewhere; `store.routing` does. Called by `store.topology` and `store.routing`.

Two things of redis-py (8.1) are left out. Its BlockingConnectionPool lets a caller that has just
come take a connection from those who wait, who then run into their time limit while Redis is well:
here they wait in order. And with a `socket_timeout` it writes under `asyncio.wait_for`, which
before Python 3.12 loses a cancellation that comes together with its result: here `asyncio.timeout`
bounds each exchange, so that time limits and cancellations from outside hold.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import redis.asyncio as aioredis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import (
    ConnectionError as RedisConnectionError,
    RedisError,
    ResponseError,
    TimeoutError as RedisTimeoutError,
)

from gateway import measures, tracing
from gateway.ending import end
from gateway.store.faults import UNREACHABLE, NotPrimary, judged
from gateway.store.lines import Line

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from redis.asyncio.connection import AbstractConnection

    from gateway.store.places import Address

CONNECT_TIMEOUT_SECONDS: Final = 1.5
COMMAND_TIMEOUT_SECONDS: Final = 2.0
MAX_CONNECTIONS: Final = 64

PRIMARY_ROLE: Final = "master"
"""As ROLE has it."""

Command = tuple[str | int | float, ...]
"""A command as Redis knows it, its words one by one."""

_SHARING: Final = frozenset({"EVAL", "EVALSHA", "HGETALL", "HMGET", "MGET", "SET"})
"""What holds nothing up, and is answered shortly."""

_MOST_SHARING: Final = 4
"""More commands at once than these would have others wait for their answers."""


class Node:
    """A Redis server. Connections are opened when first needed.

    A command on a connection that has died is sent once more on a fresh one; every command of the
    gateway stands that. One that `must_be_primary` is asked for its role on each fresh connection:
    a failover kills the connections to the former one, which then answers reads as a replica, and
    as late as that is.
    """

    def __init__(self, address: Address, url: str, *, must_be_primary: bool = False) -> None:
        self.address = address
        self.is_left = False
        """Whether no key lies here any more: who still waits for a connection asks elsewhere."""

        self._line: Line | None = None
        self._lines: list[Line] = []
        """The line, and former ones on which somebody still waits."""

        self._opening: asyncio.Task[None] | None = None
        self._places = asyncio.Semaphore(MAX_CONNECTIONS)
        self._client = aioredis.Redis.from_url(
            url,
            max_connections=MAX_CONNECTIONS,
            socket_connect_timeout=CONNECT_TIMEOUT_SECONDS,
            socket_timeout=None,
            retry=Retry(NoBackoff(), 1),
            decode_responses=True,
            # What is no UTF-8 comes and goes as it is: it must not break the reading of an answer.
            encoding_errors="surrogateescape",
            protocol=2,
            redis_connect_func=_greet_primary if must_be_primary else None,
        )

    def __str__(self) -> str:
        host, port = self.address
        return f"{host}:{port}" if port else host

    def send(self, commands: Sequence[Command]) -> asyncio.Future[list[Any]] | None:
        """Send what `may_share` at once, with what others send in this turn of the event loop.

        None where there is no line yet. What comes of it is `told`, or goes on by `answers_after`.
        """
        line = self._line
        if line is None or not line.is_open or not may_share(commands):
            return None
        return line.exchange(commands)

    def told(self, commands: Sequence[Command], answers: list[Any], began: float) -> list[Any]:
        """What commands came to that were sent, as `exchange` answers."""
        self.tell(commands, began)
        return _as_told(commands, answers)

    async def answers_after(
        self, fault: BaseException, commands: Sequence[Command], began: float
    ) -> list[Any]:
        """The same after waiting for them has failed, as `exchange` answers and raises."""
        if isinstance(fault, RedisConnectionError):
            # One that has died meanwhile is no reason to fail.
            return await self._share_anew(commands)
        # A caller whose time is over has waited for it as well.
        self.tell(commands, began, _kind_of(fault) if isinstance(fault, UNREACHABLE) else "")
        raise fault

    async def exchange(self, commands: Sequence[Command]) -> list[Any]:
        """Send commands on one connection; what each came to, a refusal as an exception.

        Raises one of `faults.UNREACHABLE` when the server does not answer.
        """
        if may_share(commands):
            began, answers = measures.moment(), self.send(commands)
            if answers is None:
                return await self._share_anew(commands)
            try:
                return self.told(commands, await answers, began)
            except (RedisError, asyncio.CancelledError) as fault:
                return await self.answers_after(fault, commands, began)
        async with self._places:
            if self.is_left:
                raise self._left()
            with _Timing(self, commands):
                async with asyncio.timeout(COMMAND_TIMEOUT_SECONDS):
                    return await self._exchange(commands)

    async def _share_anew(self, commands: Sequence[Command]) -> list[Any]:
        with _Timing(self, commands):
            async with asyncio.timeout(COMMAND_TIMEOUT_SECONDS):
                line = await self._open_line()
                return _as_told(commands, await line.exchange(commands))

    def tell(self, commands: Sequence[Command], began: float, fault: str = "") -> None:
        """Count and trace an exchange that has ended."""
        command, seconds = str(commands[0][0]), measures.moment() - began
        if fault:
            measures.redis_failed(fault)
        measures.redis_asked(command, seconds)
        tracing.redis_asked(command, len(commands), self.address, seconds, fault)

    async def _open_line(self) -> Line:
        """The line, opened where there is none; who comes at the same time waits for the same."""
        has_joined, opened = False, 0
        while self._line is None or not self._line.is_open:
            if self.is_left:
                raise self._left()
            if opened > 1:
                raise RedisConnectionError(f"{self} closes each connection at once")
            joins = self._opening is not None
            if self._opening is None:
                self._opening = asyncio.create_task(self._connect_line())
                self._opening.add_done_callback(self._opened)
            opening = self._opening
            # Not awaited itself: who gives up must not end it for the others.
            await asyncio.wait({opening})
            # One that began before may have failed of what is over by now: once more.
            if has_joined or not joins:
                opening.result()
                opened += 1
            has_joined = joins
        return self._line

    async def _connect_line(self) -> None:
        connection = self._client.connection_pool.make_connection()  # type: ignore[no-untyped-call]
        try:
            async with asyncio.timeout(COMMAND_TIMEOUT_SECONDS):
                await connection.connect()
        except BaseException:
            await connection.disconnect(nowait=True)
            raise
        self._line = Line(connection, COMMAND_TIMEOUT_SECONDS)
        if self.is_left:  # meanwhile
            self._line.part()
        self._lines = [line for line in self._lines if not line.has_ended] + [self._line]

    def _opened(self, opening: asyncio.Task[None]) -> None:
        self._opening = None
        if not opening.cancelled():
            opening.exception()  # whoever waited knows

    def _left(self) -> RedisConnectionError:
        return RedisConnectionError(f"{self} is no primary any more")

    async def _exchange(self, commands: Sequence[Command]) -> list[Any]:
        if len(commands) == 1:
            try:
                return [await self._client.execute_command(*_as_bytes(commands[0]))]  # type: ignore[no-untyped-call]
            except ResponseError as refusal:
                return [refusal]
        pipeline = self._client.pipeline(transaction=False)
        for command in commands:
            pipeline.execute_command(*_as_bytes(command))
        return await pipeline.execute(raise_on_error=False)

    async def ask(self, command: Command) -> Any:
        """Send one command. Raises StoreUnavailable and StoreRefused."""
        try:
            (answer,) = await self.exchange([command])
        except (RedisError, OSError) as error:
            raise judged(error) from error
        if isinstance(answer, ResponseError):
            raise judged(answer) from answer
        return answer

    async def hang_up(self) -> None:
        """Close the connections that nobody uses, and the line once nobody waits on it."""
        if self._line is not None:
            self._line.part()
        await self._client.connection_pool.disconnect(inuse_connections=False)

    async def close(self) -> None:
        """Close every connection. May be repeated."""
        if self._opening is not None:
            await end(self._opening)
        for line in self._lines:
            await line.close()
        await self._client.aclose()
        await self._client.connection_pool.disconnect()


class _Timing:
    """Tells how long an exchange has taken, whatever came of it."""

    __slots__ = ("_began", "_commands", "_node")

    def __init__(self, node: Node, commands: Sequence[Command]) -> None:
        self._node = node
        self._commands = commands
        self._began = measures.moment()

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        fault = _kind_of(error) if isinstance(error, UNREACHABLE) else ""
        self._node.tell(self._commands, self._began, fault)


def may_share(commands: Sequence[Command]) -> bool:
    """Whether commands go together with those of others: they hold nothing up."""
    if len(commands) == 1:  # mostly
        return commands[0][0] in _SHARING
    return len(commands) <= _MOST_SHARING and all(each[0] in _SHARING for each in commands)


async def _greet_primary(connection: AbstractConnection) -> None:
    """Log in, and hang up on what is no primary; redis-py calls it on each fresh connection."""
    await connection.on_connect()
    await connection.send_command("ROLE")
    role, *_ = await connection.read_response()
    if role != PRIMARY_ROLE:
        raise NotPrimary("Redis is not a primary yet, or not any more")


def _as_told(commands: Sequence[Command], answers: list[Any]) -> list[Any]:
    for place, command in enumerate(commands):
        if command[0] == "HGETALL" and type(answers[place]) is list:
            answers[place] = _in_pairs(answers[place])
    return answers


def _in_pairs(answer: Sequence[str]) -> dict[str, str]:
    """A hash, which RESP2 lists in pairs, as redis-py gives it on the connections of its own."""
    words = iter(answer)
    return dict(zip(words, words, strict=True))


def _as_bytes(command: Command) -> Sequence[Any]:
    """A command as it is sent: what was read and is no UTF-8 goes back as the bytes that it was."""
    return [
        word.encode(errors="surrogateescape")
        if isinstance(word, str) and not word.isascii()
        else word
        for word in command
    ]


def _kind_of(error: BaseException) -> str:
    return "timeout" if isinstance(error, (TimeoutError, RedisTimeoutError)) else "connection"
