"""What a Redis would still know after a restart, and how many replicas have a copy.

Responsible for asking every server (CONFIG, or INFO where CONFIG is forbidden), replicas included,
since each can become the primary, and for judging the answers. Must not: change a setting, or
touch a key. Called by `gateway check`, and by `running` at the start.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from redis.exceptions import RedisError, ResponseError

from gateway.store.faults import StoreUnavailable
from gateway.store.nodes import Node
from gateway.store.places import Kind, read_place
from gateway.store.topology import topology_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from gateway.store.places import Place

_ANSWER_LIMIT_SECONDS: Final = 3.0
_REPLICA: Final = re.compile(r"slave\d+")


@dataclass(frozen=True, slots=True)
class Persistence:
    """How a Redis keeps its data. None: it would not tell. `node` is its address."""

    version: str
    appends: bool
    append_sync: str | None
    has_snapshots: bool | None
    last_write_failed: bool
    max_memory_bytes: int
    eviction_policy: str
    node: str = ""
    is_primary: bool = True
    replicas: int = 0


class Loss(StrEnum):
    """What a restart, a crash or a full memory would take away."""

    NOTHING = "nothing"
    UNKNOWN = "unknown"
    LAST_SECONDS = "last seconds"
    SINCE_SNAPSHOT = "since the last snapshot"
    EVERYTHING = "everything"
    EVICTED = "evicted"
    NOT_WRITTEN = "not written"


async def read_persistence(url: str) -> list[Persistence]:
    """Ask every Redis at `url`, primaries first.

    Raises StoreUnavailable, also when one alone does not answer, with a reason that holds no
    password.
    """
    place = read_place(url)
    try:
        async with asyncio.timeout(_ANSWER_LIMIT_SECONDS), _primaries(place) as primaries:
            read = await asyncio.gather(*(_read(node) for node in primaries))
            found = [persistence for persistence, _ in read]
            replicas = [replica for _, replicas in read for replica in replicas]
            if place.kind is not Kind.SINGLE:
                found += await asyncio.gather(*(_read_replica(place, each) for each in replicas))
    except (RedisError, OSError) as error:
        text = str(error) or f"no answer within {_ANSWER_LIMIT_SECONDS:g} s"
        raise StoreUnavailable(text) from error
    return found


@contextlib.asynccontextmanager
async def _primaries(place: Place) -> AsyncIterator[list[Node]]:
    topology = topology_of(place)
    try:
        await topology.find()
        yield topology.primaries()
    finally:
        await topology.close()


async def _read_replica(place: Place, address: tuple[str, int]) -> Persistence:
    node = Node(address, place.node_url(address))
    try:
        persistence, _ = await _read(node)
    finally:
        await node.close()
    return persistence


async def _read(node: Node) -> tuple[Persistence, list[tuple[str, int]]]:
    """What one Redis tells, and the addresses of the replicas that follow it."""
    (info,) = await node.exchange([("INFO",)])
    if isinstance(info, ResponseError):
        raise info
    (config,) = await node.exchange([("CONFIG GET", "append*", "save")])
    if isinstance(config, ResponseError):  # forbidden by an ACL, or by the service that runs it
        config = {}
    listed = [value for name, value in info.items() if _REPLICA.fullmatch(name)]
    replicas = [(one["ip"], int(one["port"])) for one in listed if one["state"] == "online"]
    return _persistence(str(node), info, config, len(replicas)), replicas


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


def _persistence(
    node: str, info: Mapping[str, Any], config: Mapping[Any, Any], replicas: int
) -> Persistence:
    states = ("aof_last_write_status", "aof_last_bgrewrite_status", "rdb_last_bgsave_status")
    return Persistence(
        version=str(info.get("redis_version", "of an unknown version")),
        appends=info.get("aof_enabled") == 1,
        append_sync=config.get("appendfsync"),
        has_snapshots=config["save"] != "" if "save" in config else None,
        last_write_failed=any(info.get(state, "ok") != "ok" for state in states),
        max_memory_bytes=int(info.get("maxmemory", 0)),
        eviction_policy=str(info.get("maxmemory_policy", "noeviction")),
        node=node,
        is_primary=info.get("role") == "master",
        replicas=replicas,
    )
