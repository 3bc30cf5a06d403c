"""Everything a gateway keeps, from one kind of Redis into another and back."""

import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.store import keys
from tests.integration.keeping.redises import (
    Keeper,
    assert_same,
    connection,
    contents,
    empty,
    expiries,
    seed,
)
from tests.lab.redis_cluster import RedisCluster, start_redis_cluster

AN_HOUR_SECONDS = 3_600
FIGURES = 20
MANY_MEMBERS = 1_200
"""More than one piece holds."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    started: RedisCluster = start_redis_cluster(tmp_path_factory.mktemp("cluster"))
    yield started.url
    started.stop()


def fill(url: str) -> str:
    """Keys of every kind that there is, large ones, some that expire; answers who is leased."""
    *_, leased = seed(url, 200)
    directory = f"https://{secrets.token_hex(4)}.test"
    index = keys.ledger_index_key(directory)
    members = {f"m{number}": 1_795_975_719_148.0 + number / 3 for number in range(MANY_MEMBERS)}
    with connection(url) as client:
        client.hset(
            keys.account_key(directory), mapping={"version": "v", "odd": b"\xe2\x80\xa6\xff"}
        )
        for number in range(FIGURES):
            figure = keys.ledger_key(directory, "hostname", f"h{number}")
            client.set(figure, str(number), ex=AN_HOUR_SECONDS)
        client.zadd(index, members)
        client.expire(index, 2 * AN_HOUR_SECONDS)
        with client.pipeline(transaction=False) as pipeline:
            for number in range(MANY_MEMBERS):
                pipeline.xadd(keys.AUDIT_KEY, {"who": "admin", "number": str(number)})
            pipeline.execute()
        client.sadd("gw:of-a-newer-release", *members)
    return leased


def test_all_is_the_same_from_one_redis_over_a_cluster_into_another(
    source: str, target: str, cluster: str, keeper: Keeper, tmp_path: Path
) -> None:
    keeper.done(source, "claims", "add", "claimed.example.test")
    keeper.done(source, "clients", "ensure", "c", "--type", "t", "--pattern", "*.example.test")
    leased = fill(source)
    before, expire = contents(source), expiries(source)
    assert len(expire) == FIGURES + 1

    keeper.done(source, "backup", tmp_path / "of-one")
    keeper.done(cluster, "restore", tmp_path / "of-one")
    assert_same(cluster, before, expire)
    with connection(cluster) as client:
        assert not client.hexists(keys.host_key(leased), "lease")
    keeper.done(cluster, "backup", tmp_path / "of-many")
    keeper.done(target, "restore", tmp_path / "of-many")
    assert_same(target, before, expire)
    refused = keeper.run(cluster, "restore", tmp_path / "of-one")
    assert refused.returncode == 1
    assert "201 hostnames, 2 clients" in refused.stderr


def test_figure_that_has_expired_since_is_not_restored(
    source: str, target: str, keeper: Keeper, tmp_path: Path
) -> None:
    figure = keys.ledger_key("https://ca.test", "orders")
    with connection(source) as client:
        client.set(figure, "1", px=400)
    keeper.done(source, "backup", tmp_path / "backup")
    with connection(source) as client:
        while client.exists(figure):
            pass
    keeper.done(target, "restore", tmp_path / "backup")
    assert contents(target).keys() == {keys.KEYRING_KEY}
    empty(target)
