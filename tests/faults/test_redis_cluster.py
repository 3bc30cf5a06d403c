"""A Cluster's slots move to another node, with the keys of the issuances that run."""

import secrets
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from redis.crc import key_slot

from gateway.store.keys import host_key
from tests.faults.faultlab import ZONE
from tests.faults.redislab import RedisLab, running_redis_lab
from tests.lab.process import wait_until
from tests.lab.redis import RedisProcess, ask_redis
from tests.lab.redis_cluster import RedisCluster, start_redis_cluster

HOSTNAMES = 30
MOVED_SLOTS = 1300  # six of the buckets that hostnames fall into


@pytest.fixture(scope="module")
def cluster_lab() -> Iterator[RedisLab]:
    # Three primaries without replicas: no write can wait for one.
    with running_redis_lab(start_redis_cluster, {"GATEWAY_REDIS__REPLICAS": "0"}) as cluster_lab:
        yield cluster_lab


def moving_hostname() -> str:
    """One whose slot is among those that are moved: the first node's lowest."""
    while True:
        hostname = f"t{secrets.token_hex(6)}.{ZONE}"
        if key_slot(host_key(hostname).encode()) < MOVED_SLOTS:
            return hostname


def test_each_is_ordered_once_while_its_slot_moves(
    cluster_lab: RedisLab, tables: list[str]
) -> None:
    redis = cluster_lab.lab.redis
    assert isinstance(redis, RedisCluster)
    # The gateways have never heard of this one.
    joined = redis.add_empty_node()
    hostnames = [moving_hostname() for _ in range(HOSTNAMES)]
    with cluster_lab.called_meanwhile() as seen, ThreadPoolExecutor(1) as thread:
        resharding = thread.submit(redis.reshard, redis.nodes[0], joined, MOVED_SLOTS)
        wait_until(lambda: redis.slots_of(joined) > 0, "the first slot has moved")
        cluster_lab.begin(hostnames)
        under_way = 0 if resharding.done() else cluster_lab.under_way(hostnames)
        resharding.result()
        cluster_lab.finish(hostnames)
    assert redis.slots_of(joined) == MOVED_SLOTS
    assert all(_is_at(joined, hostname) for hostname in hostnames)
    assert under_way
    assert not seen.faults
    assert set(seen.codes) == {"ready"}
    cluster_lab.assert_each_ordered_once(hostnames)
    tables.append(
        f"{len(hostnames)} hostnames, {under_way} under way while a Cluster moved their "
        f"slots: {len(hostnames)} certificates, {len(hostnames)} orders"
    )


def _is_at(node: RedisProcess, hostname: str) -> bool:
    return ask_redis(node.port, "EXISTS", host_key(hostname)).strip() == "1"
