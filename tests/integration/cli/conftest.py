"""Fixtures: a configuration in which all is well, with a Redis of its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.cli.running import make
from tests.lab.bind import BindPair
from tests.lab.gateway import write_gateway_config
from tests.lab.pebble import PebbleProcess
from tests.lab.ports import free_port
from tests.lab.redis import RedisProcess, start_redis


@pytest.fixture
def config_file(
    tmp_path: Path, bind: BindPair, own_redis: RedisProcess, pebble: PebbleProcess
) -> Path:
    """A configuration in which all is well."""
    return write_gateway_config(tmp_path / "gateway", bind, own_redis.url, pebble).config_file


@pytest.fixture
def own_redis(tmp_path: Path) -> Iterator[RedisProcess]:
    """Each keyring has a Redis of its own, as in life: one cannot open what another sealed."""
    server = start_redis(make(tmp_path / "redis"))
    yield server
    server.stop()


@pytest.fixture
def nobody() -> str:
    """The URL of a port where nobody listens."""
    return f"http://127.0.0.1:{free_port()}"
