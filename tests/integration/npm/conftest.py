"""One client process for each module of tests, and the gateways that it calls."""

from collections.abc import Iterator

import pytest

from tests.integration.npm.calls import Caller, OwnGateway, new_caller
from tests.lab.bind import BindPair
from tests.lab.gateway import start_gateway, write_gateway_config
from tests.lab.lab import Lab
from tests.lab.npm_client import NpmClient
from tests.lab.pebble import PebbleProcess
from tests.lab.redis import start_redis


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NpmClient]:
    running = NpmClient(tmp_path_factory.mktemp("npm") / "npm.log")
    yield running
    running.stop()


@pytest.fixture(scope="module")
def own(
    tmp_path_factory: pytest.TempPathFactory, bind: BindPair, pebble: PebbleProcess
) -> Iterator[OwnGateway]:
    folder = tmp_path_factory.mktemp("own")
    redis = start_redis(folder)
    config = write_gateway_config(folder / "gateway", bind, redis.url, pebble)
    gateway = start_gateway(config)
    yield OwnGateway(gateway, redis, config.port, config.admin_token)
    gateway.stop()
    redis.stop()


@pytest.fixture
def alive(own: OwnGateway) -> Iterator[OwnGateway]:
    """The module's own gateway; whatever a test killed or paused is there again after it."""
    yield own
    if not own.redis.process.is_running:
        own.redis.start()
    if own.gateway.process.is_running:
        own.gateway.process.resume()
    else:
        own.gateway.start()


@pytest.fixture
def caller(client: NpmClient, lab: Lab, fresh_label: str) -> Caller:
    return new_caller(client, lab.config.url, lab.config.admin_token, fresh_label)


@pytest.fixture
def callers(client: NpmClient, alive: OwnGateway, fresh_label: str) -> tuple[Caller, Caller]:
    """Two clients of the module's own gateway."""
    first, second = (
        new_caller(client, alive.url, alive.admin_token, f"{fresh_label}-{which}")
        for which in ("first", "second")
    )
    return first, second
