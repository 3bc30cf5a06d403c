"""The Redis of a process: an embedded one from its start to its end, or the one that is named.

Responsible for which one it is, and for a store alone on it. Must not: look at what it holds;
`gateway.wiring` does. Called by `gateway.wiring`, `gateway.running` and the commands that need
Redis and nothing else.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from gateway.clocks import now_ms, steady_ms
from gateway.store.clock import SharedClock
from gateway.store.connection import Store
from gateway.store.embedded import STOP_SECONDS, EmbeddedRedis

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from gateway.config import Settings


@contextlib.asynccontextmanager
async def open_redis(
    settings: Settings, *, serves: bool, stop_within: Callable[[], float] = lambda: STOP_SECONDS
) -> AsyncIterator[str]:
    """The URL of the Redis in use, an embedded one running.

    `serves`: for a long-lived process, which keeps an embedded Redis alive. `stop_within`: how many
    seconds the end of an embedded one may take, asked when that begins.

    Raises:
        EmbeddedRedisFault: none could be started.
    """
    if not settings.redis.is_embedded:
        yield settings.redis.url
        return
    embedded = EmbeddedRedis(settings.state_dir)
    await (embedded.start() if serves else embedded.connect_or_start())
    try:
        yield embedded.url
    finally:
        await embedded.stop(stop_within())


@contextlib.asynccontextmanager
async def open_store(settings: Settings) -> AsyncIterator[tuple[Store, SharedClock]]:
    """Redis alone, without a look at what it holds: to read the trail, or to restore a backup.

    Raises:
        EmbeddedRedisFault: no Redis could be started.
        StoreUnavailable: it can't be reached.
    """
    async with open_redis(settings, serves=False) as url:
        store = Store(url, replicas=settings.redis.replicas)
        clock = SharedClock(store, now_ms, steady_ms)
        try:
            await clock.sync()
            yield store, clock
        finally:
            await store.close()
