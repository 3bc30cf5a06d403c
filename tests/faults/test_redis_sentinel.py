"""The primary of a Sentinel pair goes in the middle of issuances, and its replica takes over."""

from collections.abc import Callable, Iterator

import pytest

from tests.faults.faultlab import SETTLING_LIMIT_SECONDS
from tests.faults.redislab import UNAVAILABLE, RedisLab, running_redis_lab
from tests.lab.process import wait_until
from tests.lab.redis import RedisProcess
from tests.lab.redis_sentinel import SentinelSet, start_sentinel_set

HOSTNAMES = 20

Deed = Callable[[RedisProcess], None]

WAYS: dict[str, tuple[Deed, Deed]] = {
    "killed": (lambda primary: primary.kill(), lambda primary: primary.start()),
    # It still believes to be the primary when it wakes.
    "asleep": (lambda primary: primary.process.pause(), lambda primary: primary.process.resume()),
}


@pytest.fixture(scope="module")
def sentinel_lab() -> Iterator[RedisLab]:
    with running_redis_lab(start_sentinel_set) as sentinel_lab:
        yield sentinel_lab


@pytest.mark.parametrize("way", WAYS)
def test_each_is_ordered_once_through_a_failover(
    sentinel_lab: RedisLab, way: str, tables: list[str]
) -> None:
    leave, come_back = WAYS[way]
    redis = sentinel_lab.lab.redis
    assert isinstance(redis, SentinelSet)
    hostnames = [sentinel_lab.fresh_hostname() for _ in range(HOSTNAMES)]
    primary = redis.primary()
    sentinel_lab.begin(hostnames)
    cut_off = sentinel_lab.under_way(hostnames)
    with sentinel_lab.called_meanwhile() as seen:
        leave(primary)
        try:
            wait_until(lambda: redis.primary() is not primary, "failover", SETTLING_LIMIT_SECONDS)
            sentinel_lab.finish(hostnames)
        finally:
            come_back(primary)
    assert not seen.faults
    assert set(seen.codes) == {UNAVAILABLE, "ready"}
    assert cut_off
    redis.wait_until_whole()
    sentinel_lab.finish(hostnames)  # nothing was taken back by the old primary's return
    sentinel_lab.assert_each_ordered_once(hostnames)
    tables.append(
        f"{HOSTNAMES} hostnames, {cut_off} under way as a Sentinel primary was {way}: "
        f"{HOSTNAMES} certificates, {HOSTNAMES} orders"
    )


def test_half_a_pair_with_a_silent_sentinel_issues_as_if_it_were_whole(
    sentinel_lab: RedisLab, tables: list[str]
) -> None:
    redis = sentinel_lab.lab.redis
    assert isinstance(redis, SentinelSet)
    redis.wait_until_whole()
    hostnames = [sentinel_lab.fresh_hostname() for _ in range(HOSTNAMES)]
    replica, silent = redis.replica(), list(redis.sentinels.values())[-1]
    replica.kill()
    silent.pause()
    try:
        with sentinel_lab.called_meanwhile() as seen:
            sentinel_lab.begin(hostnames)
            sentinel_lab.finish(hostnames)
    finally:
        silent.resume()
        replica.start()
    assert not seen.faults
    assert set(seen.codes) == {"ready"}
    redis.wait_until_whole()
    sentinel_lab.assert_each_ordered_once(hostnames)
    tables.append(
        f"{HOSTNAMES} hostnames on half a Sentinel pair, one Sentinel silent: "
        f"{HOSTNAMES} certificates and orders"
    )
