"""The connection to Redis, standalone today: one place for time limits and for what failing means.

Everything below `gateway.store` reaches Redis through `Store`; a Redis that cannot be reached, is
loading, is read-only or answers too late raises `StoreUnavailable`, and nothing else of redis-py's
own errors leaves this package. Knows no domain rule.
"""

from __future__ import annotations

import asyncio
import secrets
from importlib import resources
from typing import TYPE_CHECKING, Any, cast

import redis.asyncio as aioredis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import (
    BusyLoadingError,
    ConnectionError as RedisConnectionError,
    MaxConnectionsError,
    ReadOnlyError,
    RedisError,
    ResponseError,
    TimeoutError as RedisTimeoutError,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Sequence

CONNECT_TIMEOUT_SECONDS = 1.5
COMMAND_TIMEOUT_SECONDS = 2.0
MAX_CONNECTIONS = 64

_UNREACHABLE = (
    RedisConnectionError,
    RedisTimeoutError,
    BusyLoadingError,
    ReadOnlyError,
    MaxConnectionsError,
    OSError,
    asyncio.TimeoutError,
)


class StoreUnavailable(Exception):
    """Redis cannot be reached or cannot take writes now; nothing is known of the last command."""


class StoreRefused(Exception):
    """Redis answered a command with an error: the gateway or Redis's configuration is at fault."""


class Store:
    """Redis as the rest of the gateway sees it: a few reads, and one atomic change of a document.

    `url` is `redis://`, `rediss://` or `unix://`. Connections are opened when first needed; a
    command on one that has died is sent once more on a fresh one (redis-py's own default would go
    on for seconds), which `commit` stands: its second run finds another version and changes
    nothing. Every method raises `StoreUnavailable` when Redis cannot be reached within a few
    seconds and `StoreRefused` when it answers with an error.
    """

    def __init__(self, url: str) -> None:
        pool = aioredis.BlockingConnectionPool.from_url(
            url,
            max_connections=MAX_CONNECTIONS,
            timeout=COMMAND_TIMEOUT_SECONDS,
            socket_connect_timeout=CONNECT_TIMEOUT_SECONDS,
            socket_timeout=COMMAND_TIMEOUT_SECONDS,
            retry=Retry(NoBackoff(), retries=1),
            decode_responses=True,
            protocol=2,
        )
        self._redis = aioredis.Redis(connection_pool=pool)
        self._commit = self._redis.register_script(_lua("commit"))

    async def close(self) -> None:
        """Close every connection; repeatable."""
        await self._redis.aclose()
        await self._redis.connection_pool.disconnect()

    async def ping(self) -> None:
        """One round trip."""
        await _guard(self._redis.ping())

    async def fields(self, key: str) -> dict[str, str]:
        """All fields of a hash; empty when it does not exist."""
        return cast("dict[str, str]", await _guard(self._redis.hgetall(key)))

    async def commit(
        self,
        document_key: str,
        index_key: str,
        *,
        expected_version: str,
        member: str,
        score: str = "",
        drop: str = "",
        sets: dict[str, str] | None = None,
        deletes: Sequence[str] = (),
    ) -> str | None:
        """Run `commit.lua`, which says what each argument means.

        Returns the version that the document was given if it was changed, or None when it was not
        as expected and nothing was changed. After `StoreUnavailable` the change may have been
        made: read again.
        """
        pairs = sets or {}
        new_version = secrets.token_hex(8)
        arguments = [expected_version, new_version, member, score, drop, str(len(pairs))]
        for name, value in pairs.items():
            arguments += (name, value)
        arguments += deletes
        changed = await _guard(self._commit(keys=[document_key, index_key], args=arguments))
        return new_version if changed == 1 else None

    async def due_members(
        self, index_keys: Sequence[str], until: int, limit_each: int
    ) -> list[list[tuple[str, float]]]:
        """For each sorted set, its members with a score up to `until`, lowest first."""
        pipeline = self._redis.pipeline(transaction=False)
        for key in index_keys:
            pipeline.zrange(
                key, "-inf", str(until), byscore=True, offset=0, num=limit_each, withscores=True
            )
        answers = cast("list[list[tuple[str, float]]]", await _guard(pipeline.execute()))
        return [[(member, score) for member, score in answer] for answer in answers]

    async def remove_member(self, index_key: str, member: str, *, up_to_score: float) -> None:
        """Take a member out of a sorted set unless its score has grown past `up_to_score`."""
        await _guard(self._redis.eval(_lua("remove_member"), 1, index_key, member, up_to_score))

    async def raise_score(self, index_key: str, member: str, score: int) -> None:
        """Give a member of a sorted set a higher score; one that is not in it stays out."""
        await _guard(self._redis.zadd(index_key, {member: score}, xx=True, gt=True))

    async def members(self, index_key: str) -> list[tuple[str, float]]:
        """Every member of a sorted set with its score."""
        answer = await _guard(self._redis.zrange(index_key, 0, -1, withscores=True))
        return [(member, score) for member, score in cast("list[tuple[str, float]]", answer)]

    async def set_members(self, key: str) -> set[str]:
        """Every member of a set."""
        return set(cast("set[str]", await _guard(self._redis.smembers(key))))

    async def add_to_set(self, key: str, member: str) -> None:
        """Add a member to a set; repeatable."""
        await _guard(self._redis.sadd(key, member))

    async def remove_from_set(self, key: str, member: str) -> None:
        """Take a member out of a set; repeatable."""
        await _guard(self._redis.srem(key, member))

    async def set_field_once(self, key: str, name: str, value: str) -> None:
        """Set one field of a hash unless it is there already."""
        await _guard(self._redis.hsetnx(key, name, value))

    async def set_field(self, key: str, name: str, value: str) -> None:
        """Set one field of a hash."""
        await _guard(self._redis.hset(key, name, value))

    async def delete_field(self, key: str, name: str) -> None:
        """Delete one field of a hash; repeatable."""
        await _guard(self._redis.hdel(key, name))


async def _guard(call: Any) -> object:
    try:
        return await cast("Awaitable[object]", call)
    except _UNREACHABLE as error:
        raise StoreUnavailable("Redis cannot be reached") from error
    except ResponseError as error:
        raise _judged(error) from error
    except RedisError as error:
        raise StoreUnavailable(f"Redis failed: {type(error).__name__}") from error


def _judged(error: ResponseError) -> Exception:
    """Tell answers that pass by themselves (a failover, a full disk) from refusals."""
    word = str(error).split(" ", 1)[0]
    if word in {"MISCONF", "MASTERDOWN", "NOREPLICAS", "CLUSTERDOWN", "TRYAGAIN", "OOM", "BUSY"}:
        return StoreUnavailable(f"Redis takes no writes now: {word}")
    return StoreRefused(f"Redis refused a command: {word}")


def _lua(name: str) -> str:
    return resources.files("gateway.store").joinpath("lua", f"{name}.lua").read_text("utf-8")
