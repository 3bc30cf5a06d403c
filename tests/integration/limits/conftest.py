"""Fixtures: two gateways with limits on one Redis, and one more that hears of floods early."""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tests.integration.service.calling import World
from tests.lab.bind import BindPair
from tests.lab.gateway import GatewayConfig, GatewayProcess, running_gateway, write_gateway_config
from tests.lab.pebble import PebbleProcess
from tests.lab.ports import free_port
from tests.lab.redis import RedisProcess, running_redis

CLIENTS = {
    "thirty-calls": {"calls_per_minute": 30},
    "three-records": {"records": 3},
    "one-certificate": {"certificates": 1},
    "one-record": {"records": 1},
}
SHY = {
    "GATEWAY_LIMITS__UNAUTHENTICATED_PER_MINUTE": "1",
    "GATEWAY_HTTP__TRUSTED_PROXIES": '["127.0.9.1"]',
}
NARROW = {
    "GATEWAY_LIMITS__CONCURRENT_CALLS": "6",
    "GATEWAY_LIMITS__CONCURRENT_CALLS_PER_CREDENTIAL": "4",
}

Start = Callable[[dict[str, str]], GatewayProcess]


@pytest.fixture(scope="package")
def limits_redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisProcess]:
    with running_redis(tmp_path_factory.mktemp("limits-redis")) as server:
        yield server


@pytest.fixture(scope="package")
def config(
    tmp_path_factory: pytest.TempPathFactory,
    bind: BindPair,
    pebble: PebbleProcess,
    limits_redis: RedisProcess,
) -> GatewayConfig:
    folder = tmp_path_factory.mktemp("limits")
    return write_gateway_config(folder / "gateway", bind, limits_redis.url, pebble)


@pytest.fixture(scope="package")
def start(config: GatewayConfig) -> Iterator[Start]:
    """Start a gateway of this configuration and environment; all are stopped at the end."""
    with ExitStack() as stack:

        def run(environ: dict[str, str]) -> GatewayProcess:
            port = free_port()
            name = f"gateway-{port}"
            return stack.enter_context(running_gateway(config, name, port=port, environ=environ))

        yield run


@pytest.fixture(scope="package")
def urls(start: Start) -> tuple[str, str]:
    """Of two processes with the limits of `CLIENTS`."""
    environ = {"GATEWAY_LIMITS__CLIENTS": json.dumps(CLIENTS)}
    return start(environ).url, start(environ).url


@pytest.fixture(scope="package")
def world(config: GatewayConfig, urls: tuple[str, str]) -> World:
    return World(urls[0], config.admin_token)


@pytest.fixture(scope="package")
def shy(start: Start) -> GatewayProcess:
    """A gateway where one refusal a minute is all that an address may have."""
    return start(SHY)


@pytest.fixture(scope="package")
def narrow(start: Start) -> GatewayProcess:
    """A gateway where few calls may be under way."""
    return start(NARROW)
