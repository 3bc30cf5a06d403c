"""Fixtures: a gateway of this folder's own, whose configuration tests may change."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.running.site import Site, Systemd, running_site
from tests.integration.service.calling import World
from tests.lab.bind import BindPair
from tests.lab.pebble import PebbleProcess
from tests.lab.redis import RedisProcess, running_redis


@pytest.fixture(scope="package")
def site_redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisProcess]:
    with running_redis(tmp_path_factory.mktemp("running-redis")) as server:
        yield server


@pytest.fixture(scope="package")
def one_site(
    tmp_path_factory: pytest.TempPathFactory,
    bind: BindPair,
    pebble: PebbleProcess,
    site_redis: RedisProcess,
) -> Iterator[Site]:
    with running_site(tmp_path_factory.mktemp("running"), bind, site_redis, pebble) as site:
        yield site


@pytest.fixture
def site(one_site: Site) -> Iterator[Site]:
    """The gateway, with its first configuration before and after the test."""
    yield one_site
    one_site.reload(one_site.text)


@pytest.fixture
def systemd(tmp_path: Path) -> Iterator[Systemd]:
    """A place of systemd's for a process that the test starts."""
    systemd = Systemd(tmp_path)
    yield systemd
    systemd.close()


@pytest.fixture
def world(site: Site) -> World:
    return World(site.gateway.url, site.config.admin_token)
