"""What a Redis would still know after a restart.

Responsible for asking it (CONFIG, or INFO where CONFIG is forbidden) and for judging the answers.
Must not: change a setting, or touch a key. Called by `gateway check`, and
by `running` at the start.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError, ResponseError

from gateway.store.connection import StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Mapping

_ANSWER_LIMIT_SECONDS: Final = 3.0


@dataclass(frozen=True, slots=True)
class Persistence:
    """How a Redis keeps its data. None: it would not tell."""

    version: str
    appends: bool
    append_sync: str | None
    has_snapshots: bool | None
    last_write_failed: bool
    max_memory_bytes: int
    eviction_policy: str


class Loss(StrEnum):
    """What a restart, a crash or a full memory would take away."""

    NOTHING = "nothing"
    UNKNOWN = "unknown"
    LAST_SECONDS = "last seconds"
    SINCE_SNAPSHOT = "since the last snapshot"
    EVERYTHING = "everything"
    EVICTED = "evicted"
    NOT_WRITTEN = "not written"


async def read_persistence(url: str) -> Persistence:
    """Ask the Redis at `url`. Raises StoreUnavailable with a reason that holds no password."""
    client = Redis.from_url(
        url,
        socket_timeout=_ANSWER_LIMIT_SECONDS,
        socket_connect_timeout=_ANSWER_LIMIT_SECONDS,
        retry=Retry(NoBackoff(), 0),
        decode_responses=True,
        protocol=2,
    )
    try:
        async with client:
            info = await client.info()
            try:
                config = dict(await client.config_get("append*", "save"))
            except ResponseError:  # forbidden by an ACL, or by the service that runs it
                config = {}
    except (RedisError, OSError) as error:
        raise StoreUnavailable(str(error)) from error
    return _persistence(info, config)


def losses(persistence: Persistence) -> list[Loss]:
    """What may be lost, worst first; never empty."""
    found = []
    if persistence.last_write_failed:
        found.append(Loss.NOT_WRITTEN)
    if persistence.max_memory_bytes > 0 and persistence.eviction_policy != "noeviction":
        found.append(Loss.EVICTED)
    found.append(_loss_at_restart(persistence))
    return [loss for loss in found if loss is not Loss.NOTHING] or [Loss.NOTHING]


def _loss_at_restart(persistence: Persistence) -> Loss:
    if persistence.appends:
        by_sync = {None: Loss.UNKNOWN, "always": Loss.NOTHING}
        return by_sync.get(persistence.append_sync, Loss.LAST_SECONDS)
    by_snapshots = {None: Loss.UNKNOWN, True: Loss.SINCE_SNAPSHOT, False: Loss.EVERYTHING}
    return by_snapshots[persistence.has_snapshots]


def _persistence(info: Mapping[str, Any], config: Mapping[Any, Any]) -> Persistence:
    states = ("aof_last_write_status", "aof_last_bgrewrite_status", "rdb_last_bgsave_status")
    return Persistence(
        version=str(info.get("redis_version", "of an unknown version")),
        appends=info.get("aof_enabled") == 1,
        append_sync=config.get("appendfsync"),
        has_snapshots=config["save"] != "" if "save" in config else None,
        last_write_failed=any(info.get(state, "ok") != "ok" for state in states),
        max_memory_bytes=int(info.get("maxmemory", 0)),
        eviction_policy=str(info.get("maxmemory_policy", "noeviction")),
    )
