"""Redises to save from and to restore into, and all that one holds, compared key by key.

Used by the tests of this folder. Looks into Redis by a client of its own.
"""

import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import redis
from redis.cluster import RedisCluster as ClusterClient

from gateway.store.keys import (
    bucket_of,
    client_holdings_key,
    client_key,
    fingerprint,
    host_key,
    names_key,
)
from tests.lab import forks

_T = TypeVar("_T")

LIMIT_SECONDS = 60.0
_OWN = re.compile(r"gw:schema|gw:census.*|gw:\{c[0-9a-f]+\}:(calls|taking)|gw:\{trail\}:writer:.*")
"""What a restore writes otherwise than it was, and what lasts for moments only."""

_TOLD = re.compile(r'"(backup|restore)"')
"""What the audit trail has of both commands themselves."""

_TTL_SLACK_SECONDS = 30.0
_ATTEMPTS = 10
_SEEDED = {
    "clientId": "seeded",
    "clientType": "t",
    "hostnamePatterns": ["*.example.test"],
    "allowedDnsRecordAddresses": [],
    "capabilities": [],
    "policyGeneration": 1,
    "credentials": [],
}
_SEEDED_HOLDINGS = client_holdings_key(fingerprint("seeded"))


def connection(url: str) -> Any:
    # What is no UTF-8 is to come back as it was, too.
    decoding: Any = {"decode_responses": True, "encoding_errors": "surrogateescape"}
    if url.startswith("redis+cluster"):
        return ClusterClient.from_url(url.replace("redis+cluster", "redis"), **decoding)
    return redis.Redis.from_url(url, **decoding)


def contents(url: str) -> dict[str, Any]:
    """Everything of the gateway's under its key, documents without their leases."""
    with connection(url) as client:
        found = {}
        for key in client.scan_iter(match="gw:*"):
            value = None if _OWN.fullmatch(key) else _value(client, key)
            if value:
                found[key] = value
        return found


def _value(client: Any, key: str) -> Any:
    kind = client.type(key)
    if kind == "hash":
        fields = client.hgetall(key)
        fields.pop("lease", None)
        return fields
    if kind == "zset":
        return dict(client.zrange(key, 0, -1, withscores=True))
    if kind == "set":
        return client.smembers(key)
    if kind == "stream":
        return [entry for entry in client.xrange(key) if not _TOLD.search(str(entry))]
    return client.get(key)


def expiries(url: str) -> dict[str, int]:
    """When each key expires that does, in Redis's seconds."""
    with connection(url) as client:
        times = {key: client.expiretime(key) for key in client.scan_iter(match="gw:*")}
    return {key: time for key, time in times.items() if time >= 0 and not _OWN.fullmatch(key)}


def assert_same(restored: str, before: dict[str, Any], expire: dict[str, int]) -> None:
    """All is there as it was, nothing else, and expires when it did."""
    assert contents(restored) == before
    now = expiries(restored)
    assert now.keys() == expire.keys()
    assert all(abs(now[key] - expire[key]) <= _TTL_SLACK_SECONDS for key in expire)


def empty(url: str) -> None:
    with connection(url) as client:
        client.flushall()


def seed(url: str, count: int) -> list[str]:
    """Documents of a client as a gateway has them; the last one has a lease."""
    hostnames = [f"seeded-{number}.example.test" for number in range(count)]
    holder = json.dumps({"clientId": "seeded", "appId": "a"})
    record = json.dumps({"type": "A", "value": "198.51.100.1", "ttl": 300, "published": True})
    lease = json.dumps({"worker": "w", "fence": 1, "untilMs": 1})
    with connection(url) as client:
        stored = {"version": "v", "client": json.dumps(_SEEDED)}
        client.hset(client_key(fingerprint("seeded")), mapping=stored)
        client.sadd("gw:clients", "seeded")
        for start in range(0, count, 1000):
            pipeline = client.pipeline(transaction=False)
            for hostname in hostnames[start : start + 1000]:
                fields = {"version": "v", "holder": holder, "record": record, "fence": "1"}
                if hostname == hostnames[-1]:
                    fields["lease"] = lease
                pipeline.hset(host_key(hostname), mapping=fields)
                pipeline.zadd(names_key(bucket_of(hostname)), {hostname: 0})
                pipeline.zadd(_SEEDED_HOLDINGS, {hostname: 1_800_000_000_000 + start})
            pipeline.execute()
    return hostnames


def until_caught(attempt: Callable[[], _T | None]) -> _T:
    """Try until a process was caught in the middle of its work: it may end before the signal."""
    for _ in range(_ATTEMPTS):
        caught = attempt()
        if caught is not None:
            return caught
    raise AssertionError("it was always done before it could be caught")


class Keeper:
    """Runs the commands of one configuration on any Redis."""

    def __init__(self, config_file: Path) -> None:
        self.config_file = config_file

    def environ(self, url: str) -> dict[str, str]:
        # A Cluster of the lab has no replicas to wait for.
        return {**os.environ, "GATEWAY_REDIS__URL": url, "GATEWAY_REDIS__REPLICAS": "0"}

    def start(self, url: str, *arguments: str | Path) -> forks.Command:
        typed = [*map(str, arguments), "--config", str(self.config_file)]
        return forks.Command(typed, self.environ(url))

    def run(self, url: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        return self.start(url, *arguments).ended(LIMIT_SECONDS)

    def done(self, url: str, *arguments: str | Path) -> str:
        """What a command prints that does what it is told."""
        result = self.run(url, *arguments)
        assert result.returncode == 0, f"{result.stdout}\n{result.stderr}"
        return result.stdout
