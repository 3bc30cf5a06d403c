"""Fixtures of the real servers, one of each for the whole test session.

Tests keep apart by using hostnames of their own (`fresh_label`), not by servers of their own; a
test that stops or breaks a server starts a pair for itself.
"""

import secrets
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import settings

from tests.faults import tables
from tests.lab import forks, gateway, pebble_newer
from tests.lab.bind import BindPair, start_bind_pair
from tests.lab.gateway import start_gateway, write_gateway_config
from tests.lab.lab import Lab
from tests.lab.pebble import PebbleProcess, start_pebble
from tests.lab.redis import RedisProcess, start_redis
from tests.spreading import ByServers

# How long an example takes depends on what else the machine does; no test asserts time.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

# Hundreds of gateways are started, and a start of its own costs most of a second of CPU time.
gateway.run_as = forks.ForkedGateway


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
    pebble: PebbleProcess,
) -> Iterator[Lab]:
    """A gateway on the session's BIND and Pebble, as `scripts/lab` has one.

    Its Redis is its own: its worker takes up whatever is due there, other tests' work too.
    """
    folder = tmp_path_factory.mktemp("lab")
    redis = start_redis(tmp_path_factory.mktemp("lab-redis"))
    config = write_gateway_config(folder / "gateway", bind, redis.url, pebble)
    started = start_gateway(config)
    yield Lab(folder, bind, redis, pebble, config, (started,))
    started.stop()
    redis.stop()


@pytest.fixture
def fresh_label() -> str:
    """A label that no other test uses: the first part of this test's own hostnames."""
    return f"t{secrets.token_hex(6)}"


def pytest_sessionfinish(session: pytest.Session) -> None:
    if reason := pebble_newer.told_missing():
        shown = session.config.stash.setdefault(tables.TABLES, [])
        shown.append(f"{reason}; the scripted proxy said when to renew")
    tables.hand_over(session.config)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    return ByServers(config, log) if config.option.dist == "loadfile" else None


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    tables.take_over(node)


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    tables.show(terminalreporter, config)
