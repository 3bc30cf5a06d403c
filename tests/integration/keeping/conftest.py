"""Fixtures: two Redises of this folder's own, and a configuration whose commands run on either."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.keeping.applying import Applier
from tests.integration.keeping.redises import Keeper, empty
from tests.lab.bind import BindPair
from tests.lab.gateway import (
    GatewayConfig,
    GatewayProcess,
    running_gateway,
    write_gateway_config,
)
from tests.lab.pebble import PebbleProcess
from tests.lab.redis import RedisProcess, running_redis


@pytest.fixture(scope="package")
def first_redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisProcess]:
    with running_redis(tmp_path_factory.mktemp("first-redis")) as server:
        yield server


@pytest.fixture(scope="package")
def second_redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisProcess]:
    with running_redis(tmp_path_factory.mktemp("second-redis")) as server:
        yield server


@pytest.fixture
def source(first_redis: RedisProcess) -> str:
    """The URL of an empty Redis."""
    empty(first_redis.url)
    return first_redis.url


@pytest.fixture
def target(second_redis: RedisProcess) -> str:
    """The URL of another one."""
    empty(second_redis.url)
    return second_redis.url


@pytest.fixture(scope="package")
def config(
    tmp_path_factory: pytest.TempPathFactory,
    bind: BindPair,
    pebble: PebbleProcess,
    first_redis: RedisProcess,
) -> GatewayConfig:
    """With figures that are counted, so that there is a ledger to keep."""
    folder = tmp_path_factory.mktemp("keeping") / "gateway"
    written = write_gateway_config(folder, bind, first_redis.url, pebble)
    text = written.config_file.read_text()
    written.config_file.write_text(
        text.replace(
            "certificates_per_hostname_per_week = 0", "certificates_per_hostname_per_week = 9"
        )
    )
    return written


@pytest.fixture
def keeper(config: GatewayConfig) -> Keeper:
    return Keeper(config.config_file)


@pytest.fixture
def other_keyring(config: GatewayConfig, tmp_path: Path) -> Path:
    """The same configuration under another keyring."""
    folder = tmp_path / "other"
    shutil.copytree(config.config_file.parent, folder)
    keyring = folder / "keyring"
    own = folder / config.config_file.name
    key_id, secret = keyring.read_text().split()
    keyring.write_text(f"other-{key_id} {secret[::-1].lstrip('=')[:43]}=\n")
    own.write_text(own.read_text().replace(str(config.config_file.parent), str(folder)))
    return own


@pytest.fixture
def applier(keeper: Keeper, source: str, tmp_path: Path) -> Applier:
    return Applier(keeper, source, tmp_path)


@pytest.fixture
def gateway(config: GatewayConfig, source: str) -> Iterator[GatewayProcess]:
    del source  # emptied before the start
    with running_gateway(config, "applied") as started:
        yield started
