"""`calls_per_minute`: one rate for all processes and credentials of a client, and a true wait."""

import time
from collections.abc import AsyncIterator
from itertools import cycle

import pytest
import redis

from gateway.access.gcra import MINUTE_US, Rate
from gateway.access.limits import CallRates
from gateway.contract.names import ClientId
from gateway.store.connection import Store
from gateway.store.keys import client_calls_key, fingerprint
from tests.integration.service.calling import CONTEXT, PROVISION, Caller, World, spec
from tests.lab.redis import RedisProcess

CALLS, INTERVAL_SECONDS = 30, 2.0
NOW_US = 1_800_000_000_000_000


def made(world: World, client_id: str, *patterns: str) -> Caller:
    answer = world.admin.call(PROVISION, action="ensure", spec=spec(client_id, *patterns))
    return Caller(world.url, answer["apiToken"])


def rotated(world: World, client_id: str) -> Caller:
    answer = world.admin.call(
        PROVISION, action="rotate", spec={"clientId": client_id}, overlapSeconds=600
    )
    return Caller(world.url, answer["apiToken"])


def test_all_processes_and_credentials_of_a_client_share_its_rate(
    world: World, urls: tuple[str, str]
) -> None:
    first = made(world, "thirty-calls")
    second = rotated(world, "thirty-calls")
    # Calls with a wrong token are nobody's.
    stranger = Caller(world.url, (first.token or "")[:-4] + "AAAA")
    assert {stranger.refused(CONTEXT)["code"] for _ in range(CALLS)} == {"unauthorized"}
    began = time.monotonic()
    granted = 0
    for caller in cycle([first, second.at(urls[1])]):
        answer = caller.answer(CONTEXT)
        if "error" in answer:
            break
        granted += 1
    came_back = (time.monotonic() - began) / INTERVAL_SECONDS
    assert CALLS <= granted <= CALLS + came_back + 1
    data = answer["error"]["data"]
    assert data["code"] == "overloaded"
    assert 0 < data["retryAfterMs"] <= INTERVAL_SECONDS * 1000
    # As a client does that believes what it is told; the clocks of processes differ by less.
    time.sleep(data["retryAfterMs"] / 1000 + 0.1)
    assert caller.call(CONTEXT)


def test_other_clients_and_the_admin_are_not_concerned(world: World) -> None:
    caller = world.client()
    for _ in range(CALLS + 5):
        assert caller.call(CONTEXT)
        assert world.admin.call(CONTEXT)


@pytest.fixture
async def store(limits_redis: RedisProcess) -> AsyncIterator[Store]:
    store = Store(limits_redis.url)
    yield store
    await store.close()


@pytest.mark.parametrize("rate", [Rate(1, MINUTE_US), Rate(7, MINUTE_US), Rate(5_000, MINUTE_US)])
async def test_script_counts_as_the_rule_does(store: Store, rate: Rate, fresh_label: str) -> None:
    key, stored, now = f"gw:{{c{fresh_label}}}:calls", 0, NOW_US
    for number in range(60):
        wait_us = rate.wait_us(stored, now)
        assert await store.take_call(key, now, rate.interval_us, rate.count) == wait_us
        if not wait_us:
            stored = rate.after_one(stored, now)
        # Now and then to just before, just at and long after the next call.
        now += (0, 0, max(wait_us - 1, 0), 1, rate.interval_us)[number % 5]


@pytest.mark.parametrize("tampered", ["rubbish", "nan", "-inf", "1e400", "0x10", ""])
async def test_tampered_rate_neither_locks_a_client_out_nor_fails(
    store: Store, limits_redis: RedisProcess, tampered: str, fresh_label: str
) -> None:
    key, rate = f"gw:{{c{fresh_label}}}:calls", Rate(2, MINUTE_US)
    with redis.Redis.from_url(limits_redis.url) as connection:
        connection.set(key, tampered)
    assert await store.take_call(key, NOW_US, rate.interval_us, rate.count) <= rate.interval_us
    with redis.Redis.from_url(limits_redis.url) as connection:
        connection.delete(key)
        connection.rpush(key, "no", "string")
    assert await store.take_call(key, NOW_US, rate.interval_us, rate.count) == 0


async def test_use_is_told_without_taking_a_call(store: Store, fresh_label: str) -> None:
    client_id, now_ms = ClientId(fresh_label), NOW_US // 1000
    rates = CallRates(store, lambda _: 3, lambda: now_ms)
    assert await rates.use_of(client_id) == (0, 3)
    await rates.take(client_id)
    for _ in range(4):
        assert await rates.use_of(client_id) == (1, 3)
    await rates.take(client_id)
    assert await rates.use_of(client_id) == (2, 3)


async def test_use_is_told_where_there_is_no_limit_or_somebody_wrote_rubbish(
    store: Store, limits_redis: RedisProcess, fresh_label: str
) -> None:
    client_id = ClientId(fresh_label)
    with redis.Redis.from_url(limits_redis.url) as connection:
        connection.set(client_calls_key(fingerprint(client_id)), "rubbish")
    for per_minute in (0, 3):
        rates = CallRates(store, lambda _, most=per_minute: most, lambda: NOW_US // 1000)
        assert await rates.use_of(client_id) == (0, per_minute)


async def test_rate_of_a_client_that_rests_leaves_nothing_behind(
    store: Store, limits_redis: RedisProcess, fresh_label: str
) -> None:
    key, rate = f"gw:{{c{fresh_label}}}:calls", Rate(600, MINUTE_US)
    await store.take_call(key, NOW_US, rate.interval_us, rate.count)
    with redis.Redis.from_url(limits_redis.url) as connection:
        assert 0 < connection.pttl(key) <= 100 or not connection.exists(key)
