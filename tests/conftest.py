"""Fixtures of the real servers, one of each for the whole test session.

Tests keep apart by using hostnames of their own (`fresh_label`), not by servers of their own; a
test that stops or breaks a server starts a pair for itself.
"""

import secrets
from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.lab.bind import BindPair, start_bind_pair
from tests.lab.gateway import start_gateway, write_gateway_config
from tests.lab.lab import Lab
from tests.lab.pebble import PebbleProcess, start_pebble
from tests.lab.redis import RedisProcess, start_redis

# How long an example takes depends on what else the machine does; no test asserts time.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


@pytest.fixture(scope="session")
def bind(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BindPair]:
    pair = start_bind_pair(tmp_path_factory.mktemp("bind"))
    yield pair
    pair.stop()


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisProcess]:
    server = start_redis(tmp_path_factory.mktemp("redis"))
    yield server
    server.stop()


@pytest.fixture(scope="session")
def pebble(tmp_path_factory: pytest.TempPathFactory, bind: BindPair) -> Iterator[PebbleProcess]:
    server = start_pebble(tmp_path_factory.mktemp("pebble"), bind.primary)
    yield server
    server.stop()


@pytest.fixture(scope="session")
def lab(
    tmp_path_factory: pytest.TempPathFactory,
    bind: BindPair,
    redis_server: RedisProcess,
    pebble: PebbleProcess,
) -> Iterator[Lab]:
    """A gateway on the session's servers, as `scripts/lab` has one."""
    folder = tmp_path_factory.mktemp("lab")
    config = write_gateway_config(folder / "gateway", bind, redis_server.url, pebble)
    gateway = start_gateway(config)
    yield Lab(folder, bind, redis_server, pebble, config, (gateway,))
    gateway.stop()


@pytest.fixture
def fresh_label() -> str:
    """A label that no other test uses: the first part of this test's own hostnames."""
    return f"t{secrets.token_hex(6)}"
