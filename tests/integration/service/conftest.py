"""One lab for this folder, with two gateways at debug level, and fresh clients for every test.

A test that must lose the database or stop Redis takes `solo`: a gateway with a Redis of its own on
the same zones and the same CA. One that needs another configuration starts a `Solo` for itself.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.integration.dns.hand import Hand
from tests.integration.service.calling import Client, Line, Operator, line_to
from tests.lab.gateway import GatewayConfig, GatewayProcess, start_gateway, write_gateway_config
from tests.lab.lab import Lab, LabOptions, running_lab
from tests.lab.pebble import PebbleProcess
from tests.lab.redis import RedisProcess, start_redis

NewClient = Callable[..., Client]
StartSolo = Callable[..., "Solo"]


@dataclass(frozen=True)
class Solo:
    """One gateway with a Redis of its own."""

    gateway: GatewayProcess
    redis: RedisProcess
    config: GatewayConfig
    operator: Operator

    def client(self, label: str) -> Client:
        """A fresh client, created."""
        client = Client(self.operator, f"client-{label}", label)
        assert client.ensure().response["apiToken"]
        return client


@pytest.fixture(scope="session")
def lab() -> Iterator[Lab]:
    with running_lab(LabOptions(gateways=2, log_level="debug")) as lab:
        yield lab


@pytest.fixture(scope="session")
def line(lab: Lab) -> Iterator[Line]:
    with line_to(*(gateway.url for gateway in lab.gateways)) as line:
        yield line


@pytest.fixture(scope="session")
def operator(line: Line, lab: Lab) -> Operator:
    return Operator(line, lab.config.admin_token)


@pytest.fixture(scope="session")
def hand(lab: Lab) -> Hand:
    """Somebody else who changes the zones."""
    return Hand.at(lab.bind)


@pytest.fixture
def new_client(operator: Operator, fresh_label: str) -> Iterator[NewClient]:
    """Makes clients of this test, all under its own label; removes them with all they hold."""
    made: list[Client] = []

    def make(name: str = "a", **policy: object) -> Client:
        client = Client(operator, f"{name}-{fresh_label}", fresh_label)
        assert client.ensure(**policy).response["apiToken"]
        made.append(client)
        return client

    yield make
    for client in made:
        client.remove(releaseHoldings=True)


@pytest.fixture
def client(new_client: NewClient) -> Client:
    return new_client()


@pytest.fixture
def other_client(new_client: NewClient) -> Client:
    """Another client that may use the very same hostnames."""
    return new_client("other")


@contextmanager
def running_solo(
    folder: Path, lab: Lab, pebble: PebbleProcess, environ: Mapping[str, str]
) -> Iterator[Solo]:
    folder.mkdir(mode=0o700)
    redis_folder = folder / "redis"
    redis_folder.mkdir(mode=0o700)
    with ExitStack() as stack:
        redis = start_redis(redis_folder)
        stack.callback(redis.stop)
        config = write_gateway_config(
            folder / "gateway", lab.bind, redis.url, pebble, log_level="debug"
        )
        gateway = start_gateway(config, environ=environ)
        stack.callback(gateway.stop)
        line = stack.enter_context(line_to(gateway.url))
        yield Solo(gateway, redis, config, Operator(line, config.admin_token))


@pytest.fixture(scope="session")
def solo(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Solo]:
    """The shared one: whoever stops its parts starts them again."""
    folder = tmp_path_factory.mktemp("service") / "solo"
    with running_solo(folder, lab, lab.pebble, {}) as solo:
        yield solo


@pytest.fixture
def start_solo(lab: Lab, tmp_path: Path) -> Iterator[StartSolo]:
    """Starts one with another CA or other settings, for this test alone."""
    with ExitStack() as stack:

        def start(pebble: PebbleProcess | None = None, **environ: str) -> Solo:
            return stack.enter_context(
                running_solo(tmp_path / "own", lab, pebble or lab.pebble, environ)
            )

        yield start
