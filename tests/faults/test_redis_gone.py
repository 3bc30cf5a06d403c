"""One Redis that is gone for a while, in the middle of issuances: killed, asleep, or cut off."""

from collections.abc import Callable, Iterator

import pytest

from tests.faults.redislab import UNAVAILABLE, RedisLab, running_redis_lab
from tests.lab.redis_relay import RelayedRedis, start_relayed_redis

HOSTNAMES = 16

Deed = Callable[[RelayedRedis], None]

WAYS: dict[str, tuple[Deed, Deed]] = {
    "killed": (lambda redis: redis.server.kill(), lambda redis: redis.server.start()),
    "asleep": (
        lambda redis: redis.server.process.pause(),
        lambda redis: redis.server.process.resume(),
    ),
    "cut off": (lambda redis: redis.relay.kill(), lambda redis: redis.start_relay()),
    "silent": (lambda redis: redis.relay.pause(), lambda redis: redis.relay.resume()),
}


@pytest.fixture(scope="module")
def redis_lab() -> Iterator[RedisLab]:
    with running_redis_lab(start_relayed_redis) as redis_lab:
        yield redis_lab


def redis_of(redis_lab: RedisLab) -> RelayedRedis:
    redis = redis_lab.lab.redis
    assert isinstance(redis, RelayedRedis)
    return redis


@pytest.mark.parametrize("way", WAYS)
def test_calls_are_unavailable_and_work_goes_on_when_redis_is_back(
    redis_lab: RedisLab, way: str
) -> None:
    leave, come_back = WAYS[way]
    hostnames = [redis_lab.fresh_hostname() for _ in range(HOSTNAMES)]
    redis_lab.begin(hostnames)
    assert redis_lab.under_way(hostnames)
    leave(redis_of(redis_lab))
    try:
        assert redis_lab.codes() == {UNAVAILABLE}
        assert redis_lab.codes() == {UNAVAILABLE}
    finally:
        come_back(redis_of(redis_lab))
    redis_lab.finish(hostnames)
    redis_lab.assert_each_ordered_once(hostnames)
