"""One Redis server: its connections, and several commands on one of them.

Responsible for the time limits of a connection and for how many there are. Must not: know which
keys lie here, or try again elsewhere; `store.routing` does. Called by `store.topology` and
`store.routing`.

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
from gateway.store.faults import UNREACHABLE, judged

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gateway.store.places import Address

CONNECT_TIMEOUT_SECONDS: Final = 1.5
COMMAND_TIMEOUT_SECONDS: Final = 2.0
MAX_CONNECTIONS: Final = 64

Command = tuple[str | int | float, ...]
"""A command as Redis knows it, its words one by one."""


class Node:
    """A Redis server. Connections are opened when first needed.

    A command on a connection that has died is sent once more on a fresh one; every command of the
    gateway stands that.
    """

    def __init__(self, address: Address, url: str) -> None:
        self.address = address
        self.is_left = False
        """Whether no key lies here any more: who still waits for a connection asks elsewhere."""

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
        )

    def __str__(self) -> str:
        host, port = self.address
        return f"{host}:{port}" if port else host

    async def exchange(self, commands: Sequence[Command]) -> list[Any]:
        """Send commands on one connection; what each came to, a refusal as an exception.

        Raises one of `faults.UNREACHABLE` when the server does not answer.
        """
        async with self._places:
            if self.is_left:
                raise RedisConnectionError(f"{self} is no primary any more")
            began, fault = measures.moment(), ""
            try:
                async with asyncio.timeout(COMMAND_TIMEOUT_SECONDS):
                    return await self._exchange(commands)
            except UNREACHABLE as error:
                fault = _kind_of(error)
                measures.redis_failed(fault)
                raise
            finally:
                command, seconds = str(commands[0][0]), measures.moment() - began
                measures.redis_asked(command, seconds)
                tracing.redis_asked(command, len(commands), self.address, seconds, fault)

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
        """Close the connections that nobody uses."""
        await self._client.connection_pool.disconnect(inuse_connections=False)

    async def close(self) -> None:
        """Close every connection. May be repeated."""
        await self._client.aclose()
        await self._client.connection_pool.disconnect()


def _as_bytes(command: Command) -> Sequence[Any]:
    """A command as it is sent: what was read and is no UTF-8 goes back as the bytes that it was."""
    return [
        word.encode(errors="surrogateescape")
        if isinstance(word, str) and not word.isascii()
        else word
        for word in command
    ]


def _kind_of(error: Exception) -> str:
    return "timeout" if isinstance(error, (TimeoutError, RedisTimeoutError)) else "connection"
