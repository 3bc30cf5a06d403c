"""Redis's own time, on each kind of Redis."""

import time

import pytest
import redis

from gateway.store.connection import Store
from gateway.store.faults import StoreRefused
from tests.lab.redis import RedisProcess

SAME_MACHINE_MS = 60_000


async def test_every_kind_of_redis_tells_its_time(store: Store) -> None:
    told_ms = await store.time_ms()
    assert abs(told_ms - time.time() * 1000) < SAME_MACHINE_MS


async def test_user_without_the_right_to_ask_is_refused(redis_server: RedisProcess) -> None:
    with redis.Redis.from_url(redis_server.url) as connection:
        connection.acl_setuser("timeless", enabled=True, passwords=["+word"], keys=["*"],
                               commands=["+@all", "-time"])  # fmt: skip
    store = Store(redis_server.url.replace("://", "://timeless:word@"))
    try:
        with pytest.raises(StoreRefused):
            await store.time_ms()
    finally:
        await store.close()
        with redis.Redis.from_url(redis_server.url) as connection:
            connection.acl_deluser("timeless")
