"""Fixtures: one Redis of each kind, and a Store on each.

A test that stops a server, or moves slots, starts its own.
"""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gateway.store.connection import Store
from gateway.store.documents import Documents
from tests.lab.redis import RedisProcess, start_redis
from tests.lab.redis_cluster import RedisCluster, start_redis_cluster
from tests.lab.redis_sentinel import SentinelSet, start_sentinel_set

if TYPE_CHECKING:
    from tests.lab.redis import RedisDeployment


@pytest.fixture(scope="package")
def sentinel_set(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SentinelSet]:
    started = start_sentinel_set(tmp_path_factory.mktemp("sentinel"))
    yield started
    started.stop()


@pytest.fixture(scope="package")
def redis_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisCluster]:
    started = start_redis_cluster(tmp_path_factory.mktemp("cluster"))
    yield started
    started.stop()


@pytest.fixture
def own_redis(tmp_path: Path) -> Iterator[RedisProcess]:
    """A server that the test may stop; nothing is in it."""
    server = start_redis(tmp_path)
    yield server
    server.stop()


@pytest.fixture
async def alone(own_redis: RedisProcess) -> AsyncIterator[Store]:
    """A Store on it."""
    store = Store(own_redis.url, replicas=0)
    yield store
    await store.close()


@pytest.fixture(params=["single", "sentinel", "cluster"])
def url(request: pytest.FixtureRequest) -> str:
    """Of a Redis of each kind."""
    fixture = {"single": "redis_server", "sentinel": "sentinel_set", "cluster": "redis_cluster"}
    deployment: RedisDeployment = request.getfixturevalue(fixture[request.param])
    return deployment.url


@pytest.fixture
async def store(url: str) -> AsyncIterator[Store]:
    # The Cluster of the lab has no replicas.
    store = Store(url, replicas=0 if "cluster" in url else None)
    yield store
    await store.close()


@pytest.fixture
def documents(store: Store) -> Documents:
    return Documents(store)
