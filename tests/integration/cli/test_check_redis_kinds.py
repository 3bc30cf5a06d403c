"""`gateway check` of several Redis at once: each server that holds the data is looked at."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.cli.running import make, run
from tests.lab.bind import BindPair
from tests.lab.gateway import GatewayConfig, start_gateway, write_gateway_config
from tests.lab.ports import LOOPBACK
from tests.lab.process import wait_until
from tests.lab.redis import ask_redis
from tests.lab.redis_cluster import RedisCluster, start_redis_cluster
from tests.lab.redis_sentinel import SentinelSet, start_sentinel_set

DURABLE = "answers; every write is on the disk before it is acknowledged."


@pytest.fixture
def own_set(tmp_path: Path) -> Iterator[SentinelSet]:
    started = start_sentinel_set(make(tmp_path / "redis"))
    yield started
    started.stop()


@pytest.fixture
def own_cluster(tmp_path: Path) -> Iterator[RedisCluster]:
    started = start_redis_cluster(make(tmp_path / "redis"))
    yield started
    started.stop()


def configured(tmp_path: Path, bind: BindPair, url: str) -> GatewayConfig:
    """Without an authority."""
    return write_gateway_config(tmp_path / "gateway", bind, url, None)


def check_redis(config: GatewayConfig, **environ: str) -> list[tuple[str, str]]:
    """State and text of every finding about Redis."""
    result = run("check", "--json", "--config", config.config_file, environ=environ)
    assert result.stdout, result.stderr
    found = json.loads(result.stdout)["checks"]
    return [(each["state"], each["finding"]) for each in found if each["part"] == "redis"]


def test_primary_and_replica_are_looked_at(
    tmp_path: Path, bind: BindPair, own_set: SentinelSet
) -> None:
    primary, replica = own_set.primary().port, own_set.replica().port
    ask_redis(replica, "CONFIG", "SET", "appendfsync", "everysec")
    of_primary, of_replica = check_redis(configured(tmp_path, bind, own_set.url))
    assert of_primary[0] == "ok"
    assert of_primary[1].startswith(f"The primary {LOOPBACK}:{primary}, Redis ")
    assert of_primary[1].endswith(DURABLE)
    assert of_replica[0] == "warning"
    assert of_replica[1].startswith(f"The replica {LOOPBACK}:{replica}, Redis ")
    assert of_replica[1].endswith("a crash loses the writes of the last second or more.")


def test_missing_replica_is_found(tmp_path: Path, bind: BindPair, own_set: SentinelSet) -> None:
    primary = own_set.primary().port
    own_set.replica().kill()
    wait_until(
        lambda: "connected_slaves:0" in ask_redis(primary, "INFO", "replication"), "it is missed"
    )
    _, (state, finding) = check_redis(configured(tmp_path, bind, own_set.url))
    assert state == "warning"
    assert finding.startswith(f"{LOOPBACK}:{primary} has 0 replicas and each write waits for 1:")


def test_every_primary_of_a_cluster_is_looked_at(
    tmp_path: Path, bind: BindPair, own_cluster: RedisCluster
) -> None:
    config = configured(tmp_path, bind, own_cluster.url)
    found = check_redis(config, GATEWAY_REDIS__REPLICAS="0")
    assert {state for state, _ in found} == {"ok"}
    assert sorted(text.split(",")[0] for _, text in found) == sorted(
        f"The primary {LOOPBACK}:{node.port}" for node in own_cluster.nodes
    )
    ask_redis(own_cluster.nodes[1].port, "CONFIG", "SET", "appendonly", "no")
    states = {text.split(",")[0]: state for state, text in check_redis(config)}
    assert states[f"The primary {LOOPBACK}:{own_cluster.nodes[1].port}"] == "failed"


def test_sentinels_that_are_gone_are_said(
    tmp_path: Path, bind: BindPair, own_set: SentinelSet
) -> None:
    url = own_set.url.replace("redis+sentinel://", "redis+sentinel://user:hush@")
    config = configured(tmp_path, bind, url)
    own_set.stop()
    assert check_redis(config) == [
        ("failed", f"{own_set.url} cannot be used: No Sentinel can be reached")
    ]


def test_start_warns_of_the_server_that_may_lose_data(
    tmp_path: Path, bind: BindPair, own_set: SentinelSet
) -> None:
    replica = own_set.replica().port
    ask_redis(replica, "CONFIG", "SET", "appendonly", "no")
    gateway = start_gateway(configured(tmp_path, bind, own_set.url))
    try:
        log_file = gateway.process.log_file
        wait_until(lambda: "redis may lose data" in log_file.read_text(), "it warns")
        warnings = [line for line in log_file.read_text().splitlines() if "may lose data" in line]
    finally:
        gateway.stop()
    assert len(warnings) == 1
    assert f"{LOOPBACK}:{replica}" in warnings[0]
    assert "loses=everything" in warnings[0]
