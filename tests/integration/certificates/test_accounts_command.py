"""`gateway accounts` beside a gateway that issues."""

import json
import re
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.certificates.accounts import RedisAccountStore
from gateway.certificates.sealing import load_keyring
from gateway.store.connection import Store
from tests.integration.certificates.issuing import MemoryAccountStore
from tests.integration.certificates.test_account import deactivate
from tests.integration.cli.running import run
from tests.integration.service.calling import World
from tests.lab.bind import BindPair
from tests.lab.gateway import GatewayConfig, GatewayProcess, start_gateway, write_gateway_config
from tests.lab.pebble import PebbleProcess, start_pebble
from tests.lab.ports import LOOPBACK
from tests.lab.redis import RedisProcess, start_redis


@pytest.fixture(scope="module")
def own_redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisProcess]:
    server = start_redis(tmp_path_factory.mktemp("redis"))
    yield server
    server.stop()


@pytest.fixture(scope="module")
def base(
    tmp_path_factory: pytest.TempPathFactory,
    bind: BindPair,
    own_redis: RedisProcess,
    pebble: PebbleProcess,
) -> GatewayConfig:
    folder = tmp_path_factory.mktemp("accounts") / "gateway"
    return write_gateway_config(folder, bind, own_redis.url, pebble)


class Setting:
    """A configuration with an authority of its own: the query makes it another account's."""

    def __init__(self, base: GatewayConfig, pebble: PebbleProcess, label: str) -> None:
        self.directory_url = f"{pebble.directory_url}?{label}"
        self.environ = {"GATEWAY_ACME__0__DIRECTORY": self.directory_url}
        self.config_file = base.config_file
        self._base = base
        self._pebble = pebble

    def start(self) -> GatewayProcess:
        return start_gateway(self._base, f"gateway-{secrets.token_hex(3)}", environ=self.environ)

    def accounts(self, *arguments: str, **environ: str) -> Any:
        everything = {**self.environ, **environ}
        result = run("accounts", *arguments, "--config", self.config_file, environ=everything)
        assert "PRIVATE" not in result.stdout + result.stderr
        assert "fault of the gateway itself" not in result.stderr
        return result

    def listed(self, **environ: str) -> dict[str, Any]:
        result = self.accounts("list", "--json", **environ)
        (account,) = json.loads(result.stdout)
        assert (result.returncode == 1) is bool(account["fault"]), result.stderr
        found: dict[str, Any] = account
        return found

    async def stored(self) -> MemoryAccountStore:
        store = Store(_redis_url(self.config_file))
        keyring = load_keyring(self.config_file.parent / "keyring")
        account = await RedisAccountStore(store, keyring, self.directory_url).load()
        await store.close()
        return MemoryAccountStore(account)


def _redis_url(config_file: Path) -> str:
    found = re.search(r'url = "(redis://[^"]+)"', config_file.read_text())
    assert found is not None
    return found[1]


@pytest.fixture
def setting(base: GatewayConfig, pebble: PebbleProcess, fresh_label: str) -> Setting:
    return Setting(base, pebble, fresh_label)


@pytest.fixture
def world(setting: Setting, base: GatewayConfig) -> Iterator[World]:
    gateway = setting.start()
    yield World(gateway.url, base.admin_token)
    gateway.stop()


def test_account_is_listed_as_the_authority_has_it(setting: Setting, world: World) -> None:
    before = setting.listed()
    assert before["status"] == "not registered"
    assert (before["name"], before["accountUrl"]) == (LOOPBACK, None)
    assert "not registered" in setting.accounts("list").stdout
    world.ownership().certificate()
    account = setting.listed()
    assert account["directoryUrl"] == setting.directory_url
    assert (account["status"], account["keyType"]) == ("valid", "ecdsa-p256")
    assert account["contact"] == ["mailto:hostmaster@example.test"]
    text = setting.accounts("list").stdout
    for value in ("status   valid", account["accountUrl"], account["keyThumbprint"]):
        assert value in text


def test_gateway_that_runs_goes_on_after_its_account_has_a_new_key(
    setting: Setting, world: World
) -> None:
    world.ownership().certificate()
    before = setting.listed()
    for arguments in ((), (LOOPBACK,)):
        result = setting.accounts("rollover", *arguments)
        assert result.returncode == 0, result.stderr
        after = setting.listed()
        assert after["accountUrl"] == before["accountUrl"]
        assert after["keyThumbprint"] != before["keyThumbprint"]
        assert after["keyThumbprint"] in result.stdout
        world.ownership().certificate()
        before = after


def test_contacts_of_the_configuration_are_sent(setting: Setting, world: World) -> None:
    world.ownership().certificate()
    contact = {"GATEWAY_ACME__0__CONTACT": '["mailto:new@example.test"]'}
    result = setting.accounts("contact", **contact)
    assert result.returncode == 0, result.stderr
    assert "mailto:new@example.test" in result.stdout
    assert setting.listed()["contact"] == ["mailto:new@example.test"]
    assert setting.accounts("contact", GATEWAY_ACME__0__CONTACT="[]").stdout.endswith(": none.\n")
    refused = setting.accounts("contact", GATEWAY_ACME__0__CONTACT='["tel:+1"]')
    assert refused.returncode in (1, 2)
    assert setting.listed()["contact"] == []


async def test_account_that_was_deactivated_is_told_and_replaced(
    setting: Setting, world: World, pebble: PebbleProcess
) -> None:
    world.ownership().certificate()
    before = setting.listed()
    refused = setting.accounts("replace")
    assert refused.returncode == 1
    assert "roll its key over" in refused.stderr
    await deactivate(pebble, await setting.stored())
    told = setting.accounts("list")
    assert told.returncode == 1
    assert "deactivated" in told.stdout
    assert f"gateway accounts replace {LOOPBACK}" in told.stdout
    result = setting.accounts("replace", LOOPBACK)
    assert result.returncode == 0, result.stderr
    after = setting.listed()
    assert after["status"] == "valid"
    assert after["accountUrl"] not in (None, before["accountUrl"])
    assert after["accountUrl"] in result.stdout
    world.ownership().certificate()


def test_authority_that_cannot_be_reached_is_told_with_what_is_known(
    base: GatewayConfig, tmp_path: Path, bind: BindPair
) -> None:
    own_pebble = start_pebble(tmp_path, bind.primary)
    try:
        setting = Setting(base, own_pebble, "own")
        bundle = {"GATEWAY_ACME__0__CA_BUNDLE": str(own_pebble.ca_file)}
        assert setting.accounts("rollover", **bundle).returncode == 0
        before = setting.listed(**bundle)
    finally:
        own_pebble.stop()
    after = setting.listed(**bundle)
    assert (before["status"], after["status"]) == ("valid", "unknown")
    assert after["fault"] == "no connection to the CA: Connection refused"
    for known in ("accountUrl", "keyThumbprint", "keyType"):
        assert after[known] == before[known]
    for arguments in (("rollover",), ("contact",), ("replace",)):
        result = setting.accounts(*arguments, **bundle)
        assert result.returncode == 1
        assert result.stderr == f"{LOOPBACK}: no connection to the CA: Connection refused.\n"


def test_name_is_asked_for_where_there_are_several(setting: Setting, pebble: PebbleProcess) -> None:
    second = {
        "GATEWAY_ACME__1__NAME": "second",
        "GATEWAY_ACME__1__DIRECTORY": f"{setting.directory_url}-second",
        "GATEWAY_ACME__1__CA_BUNDLE": str(pebble.ca_file),
    }
    for arguments in ((), ("third",)):
        result = setting.accounts("rollover", *arguments, **second)
        assert result.returncode == 2
        assert f"{LOOPBACK}, second" in result.stderr
    assert setting.accounts("rollover", "second", **second).returncode == 0
    listed = json.loads(setting.accounts("list", "--json", **second).stdout)
    assert [(one["name"], one["status"]) for one in listed] == [
        (LOOPBACK, "not registered"),
        ("second", "valid"),
    ]


def test_nothing_is_listed_or_changed_without_an_authority(tmp_path: Path, bind: BindPair) -> None:
    server = start_redis_for(tmp_path)
    try:
        written = write_gateway_config(tmp_path / "gateway", bind, server.url, None)
        listing = run("accounts", "list", "--config", written.config_file)
        assert (listing.returncode, listing.stdout) == (0, "")
        result = run("accounts", "rollover", "--config", written.config_file)
        assert result.returncode == 2
        assert "[[acme]]" in result.stderr
    finally:
        server.stop()


def start_redis_for(folder: Path) -> RedisProcess:
    """A Redis of its own: it holds to the first keyring that it saw."""
    data = folder / "redis"
    data.mkdir()
    return start_redis(data)
