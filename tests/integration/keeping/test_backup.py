"""A lab's backup, restored into an empty Redis: everything answers as before."""

import json
import os
import re
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import redis

from gateway.store.keys import client_key, host_key
from tests.integration.dns.hand import Hand
from tests.integration.keeping.redises import (
    Keeper,
    assert_same,
    connection,
    contents,
    expiries,
    seed,
)
from tests.integration.service.calling import CONTEXT, SYNC, Ownership, World
from tests.lab.bind import BindPair
from tests.lab.gateway import GatewayConfig, GatewayProcess, start_gateway
from tests.lab.pebble import PebbleProcess
from tests.lab.process import wait_until

ADDRESS = "198.51.100.7"


@pytest.fixture
def gateways(config: GatewayConfig) -> Iterator[list[GatewayProcess]]:
    started: list[GatewayProcess] = []
    yield started
    for each in started:
        each.stop()


def issuance_of(url: str, hostname: str) -> dict[str, Any]:
    with connection(url) as client:
        found: dict[str, Any] = json.loads(client.hget(host_key(hostname), "issuance") or "{}")
        return found


def orders_for(pebble: PebbleProcess) -> int:
    return pebble.process.log_file.read_text().count("Added order")


def test_everything_answers_as_before(
    source: str,
    target: str,
    keeper: Keeper,
    config: GatewayConfig,
    gateways: list[GatewayProcess],
    bind: BindPair,
    pebble: PebbleProcess,
    tmp_path: Path,
) -> None:
    gateways.append(start_gateway(config, "kept"))
    world = World(config.url, config.admin_token)
    mine, under_way = [world.ownership() for _ in range(2)], world.ownership()
    certificates = [each.certificate() for each in mine]
    assert [each.publish(ADDRESS)["status"] for each in mine] == ["managed-created"] * 2
    claimed = f"claimed-{secrets.token_hex(4)}.example.test"
    keeper.done(source, "claims", "add", claimed, "--note", "by hand")
    bind.secondary_process.pause()  # a published challenge is waited for, and no further
    try:
        assert under_way.get()["status"] == "pending"
        wait_until(
            lambda: issuance_of(source, under_way.hostname).get("state") == "published",
            "an issuance rests half way",
        )
        gateways[0].stop()
    finally:
        bind.secondary_process.resume()
    before, expire = contents(source), expiries(source)
    orders = orders_for(pebble)
    listed = [keeper.done(source, kind, "list", "--json") for kind in ("clients", "claims")]

    file = tmp_path / "backup"
    told = keeper.done(source, "backup", file)
    assert "3 hostnames" not in told  # the claim is one, too
    assert re.search(r"^4 hostnames, 2 records, 2 certificates, 1 claim, 3 clients, ", told, re.M)
    assert f"1 issuance under way: {under_way.hostname} (published)" in told
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert keeper.done(source, "backup", "--verify", file) == told
    assert contents(source) == before

    restored = keeper.done(target, "restore", file)
    assert restored.startswith(told)
    assert_same(target, before, expire)
    assert expire
    assert [keeper.done(target, kind, "list", "--json") for kind in ("clients", "claims")] == listed

    gateways.append(start_gateway(config, "restored", environ={"GATEWAY_REDIS__URL": target}))
    assert [each.get()["certificate"] for each in mine] == certificates
    assert [each.publish(ADDRESS)["status"] for each in mine] == ["managed-unchanged"] * 2
    assert under_way.certificate()["hostname"] == under_way.hostname
    assert orders_for(pebble) == orders  # it went on with the order that it had
    assert mine[0].caller.call(CONTEXT)["context"]
    trail = [json.loads(line) for line in keeper.done(target, "audit", "--json").splitlines()]
    assert [each["what"] for each in trail].count("restore") == 1
    assert "key-handed-out" in [each["what"] for each in trail]
    assert mine[0].withdraw()["status"] == "managed-deleted"
    assert Hand.at(bind).records(mine[0].hostname) == set()
    theirs = Ownership(world.client(claimed), claimed)
    assert theirs.publish(ADDRESS)["status"] == "record-conflict"


def test_gateway_that_runs_on_a_newer_state_leaves_it_alone_and_says_why(
    source: str, config: GatewayConfig, gateways: list[GatewayProcess]
) -> None:
    """As one that was started while Redis was away, with what another release has left in it."""
    gateways.append(start_gateway(config, "older"))
    mine = World(config.url, config.admin_token).ownership()

    def readiness() -> tuple[int, str]:
        answer = httpx.get(f"{gateways[0].base_url}/readyz", trust_env=False, timeout=15)
        return answer.status_code, str(answer.json()["parts"]["redis"].get("detail"))

    with connection(source) as client:
        client.hset("gw:schema", "schema", "99")
        wait_until(lambda: readiness()[0] == 503, "it is not ready")
        assert "form 99" in readiness()[1]
        before = contents(source)
        record = {"type": "A", "value": ADDRESS}
        for method, request in ((CONTEXT, {}), (SYNC, {"ownership": mine.wire, "record": record})):
            assert mine.caller.refused(method, **request)["code"] == "unavailable"
        assert contents(source) == before
        client.hset("gw:schema", "schema", "1")
        wait_until(lambda: readiness()[0] == 200, "it is ready again")
        assert mine.publish(ADDRESS)["status"] == "managed-created"


def test_backup_beside_calls_is_whole_and_agrees(
    source: str,
    target: str,
    keeper: Keeper,
    config: GatewayConfig,
    gateways: list[GatewayProcess],
    tmp_path: Path,
) -> None:
    """Records come and go, and clients with them, while it runs."""
    gateways.append(start_gateway(config, "busy"))
    world = World(config.url, config.admin_token)
    seed(source, 2_000)
    saving = keeper.start(source, "backup", tmp_path / "backup", "--json")
    while saving.poll() is None:
        world.ownership().publish(ADDRESS)
    result = saving.ended(30)
    assert result.returncode == 0, result.stderr
    keeper.done(target, "restore", tmp_path / "backup")
    with connection(target) as client:
        held = {
            key.partition(":host:")[2]: json.loads(client.hget(key, "holder"))["clientId"]
            for key in client.scan_iter(match="gw:*:host:*")
        }
        indexed = [
            hostname
            for key in set(client.scan_iter(match="gw:*:holdings"))
            for hostname in client.zrange(key, 0, -1)
        ]
        known = client.smembers("gw:clients")
    assert len(held) >= 2_000
    assert sorted(indexed) == sorted(held)
    assert set(held.values()) <= known


def test_used_redis_is_refused_with_what_it_holds(
    source: str, target: str, keeper: Keeper, tmp_path: Path
) -> None:
    seed(source, 3)
    keeper.done(source, "backup", tmp_path / "backup")
    seed(target, 2)
    before = contents(target)
    refused = keeper.run(target, "restore", tmp_path / "backup")
    assert refused.returncode == 1
    assert "holds keys of a gateway (2 hostnames, 1 client, 4 lists)" in refused.stderr
    assert contents(target) == before


def test_another_keyring_is_refused_before_anything_is_written(
    source: str, target: str, keeper: Keeper, other_keyring: Path, tmp_path: Path
) -> None:
    seed(source, 3)
    keeper.done(source, "backup", tmp_path / "backup")
    for arguments in (("restore",), ("backup", "--verify")):
        refused = Keeper(other_keyring).run(target, *arguments, tmp_path / "backup")
        assert refused.returncode == 1
        assert 'sealed with the key "lab-1", and the keyring holds other-lab-1' in refused.stderr
    assert contents(target) == {}


def test_altered_file_is_refused_before_anything_is_written(
    source: str, target: str, keeper: Keeper, tmp_path: Path
) -> None:
    seed(source, 1_000)  # some chunks, the first of them whole
    file = tmp_path / "backup"
    keeper.done(source, "backup", file)
    raw = bytearray(file.read_bytes())
    raw[-20] ^= 1
    file.write_bytes(raw)
    refused = keeper.run(target, "restore", file)
    assert refused.returncode == 1
    assert "altered or cut" in refused.stderr
    assert contents(target) == {}
    with connection(target) as client:
        assert not client.exists("gw:schema")


def test_backup_that_cannot_be_written_says_why(
    source: str, keeper: Keeper, tmp_path: Path
) -> None:
    refused = keeper.run(source, "backup", tmp_path / "missing" / "backup")
    assert refused.returncode == 1
    assert refused.stderr.endswith("can't be written: No such file or directory.\n")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("key", "told"),
    [
        ("gw:surprise", "gw:surprise is a list"),
        (host_key("a.example.test"), f"{host_key('a.example.test')} is a list, where"),
        (client_key("0" * 24), f"{client_key('0' * 24)} is a list, where"),
        (b"gw:\xff\n", '"gw:\\u{dcff}\\n" is a list'),
    ],
)
def test_key_of_an_unknown_kind_is_named(
    source: str, keeper: Keeper, tmp_path: Path, key: str | bytes, told: str
) -> None:
    with connection(source) as client:
        client.rpush(key, "a")
    refused = keeper.run(source, "backup", tmp_path / "backup")
    assert refused.returncode == 1
    assert refused.stderr.startswith(told)
    assert refused.stderr.count("\n") == 1
    assert os.listdir(tmp_path) == []


def test_key_of_any_bytes_comes_back_as_it_was(
    source: str, target: str, keeper: Keeper, tmp_path: Path
) -> None:
    names = (b"gw:{h1}:host:\xff", "gw:{h1}:host:\u00fc.test".encode(), b"gw:\x00\xfe")
    fields = {b"\xff": b"\xfe", b"version": b"v"}
    with redis.Redis.from_url(source) as client:
        for name in names:
            client.hset(name, mapping=fields)
    keeper.done(source, "backup", tmp_path / "backup")
    keeper.done(target, "restore", tmp_path / "backup")
    with redis.Redis.from_url(target) as client:
        assert {name: client.hgetall(name) for name in names} == dict.fromkeys(names, fields)
