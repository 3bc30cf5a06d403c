"""Fixtures: a gateway of this folder's own, whose configuration tests may change."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.running.site import JSON_LOG, Site, Systemd
from tests.integration.service.calling import World
from tests.lab.bind import BindPair
from tests.lab.gateway import start_gateway, write_gateway_config
from tests.lab.pebble import PebbleProcess
from tests.lab.redis import RedisProcess, start_redis


@pytest.fixture(scope="session")
def running_redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisProcess]:
    server = start_redis(tmp_path_factory.mktemp("running-redis"))
    yield server
    server.stop()


@pytest.fixture(scope="session")
def running_site(
    tmp_path_factory: pytest.TempPathFactory,
    bind: BindPair,
    pebble: PebbleProcess,
    running_redis: RedisProcess,
) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("running")
    config = write_gateway_config(folder / "gateway", bind, running_redis.url, pebble)
    systemd = Systemd(folder)
    environ = {**JSON_LOG, **systemd.environ}
    gateway = start_gateway(config, environ=environ)
    systemd.heard_until("READY")
    yield Site(config, gateway, systemd)
    gateway.stop()
    systemd.close()


@pytest.fixture
def site(running_site: Site) -> Iterator[Site]:
    """The gateway, with its first configuration before and after the test."""
    yield running_site
    running_site.reload(running_site.text)


@pytest.fixture
def systemd(tmp_path: Path) -> Iterator[Systemd]:
    """A place of systemd's for a process that the test starts."""
    systemd = Systemd(tmp_path)
    yield systemd
    systemd.close()


@pytest.fixture
def world(site: Site) -> World:
    return World(site.gateway.url, site.config.admin_token)
