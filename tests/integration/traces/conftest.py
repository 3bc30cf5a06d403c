"""Fixtures: a gateway that sends its traces to a collector of the lab, and what came of a story."""

import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from tests.integration.service.calling import (
    CONTEXT,
    NO_TLS,
    SYNC,
    Caller,
    Ownership,
    World,
    envelope,
)
from tests.lab.bind import BindPair
from tests.lab.gateway import GatewayConfig, GatewayProcess, running_gateway, write_gateway_config
from tests.lab.otlp import Collector, Span
from tests.lab.pebble import PebbleProcess
from tests.lab.process import wait_until
from tests.lab.redis import running_redis

SERVICE = "gateway-of-the-tests"
SECRET_HEADER = f"secret-{secrets.token_hex(16)}"
ADDRESS = "198.51.100.7"
OTHER_ADDRESS = "198.51.100.8"
NO_METHOD = "noMethodButSomeText"


def traced(collector: Collector, headers_file: Path | None = None) -> dict[str, str]:
    """The environment that has a gateway send its traces there."""
    environ = {
        "GATEWAY_TRACES__ENDPOINT": collector.url,
        "GATEWAY_TRACES__SERVICE_NAME": SERVICE,
        "GATEWAY_LOG__FORMAT": "json",
    }
    if headers_file is not None:
        environ["GATEWAY_TRACES__HEADERS_FILE"] = str(headers_file)
    return environ


def call_within(
    trace: str, span: str, caller: Caller, method: str, **request: object
) -> httpx.Response:
    """A call of somebody who traces, and keeps it."""
    return httpx.post(
        caller.url,
        json=envelope(method, {"apiToken": caller.token, **request}),
        headers={"traceparent": f"00-{trace}-{span}-01"},
        trust_env=False,
        verify=NO_TLS,
        timeout=15,
    )


@dataclass(frozen=True)
class Story:
    """What clients did, and every span that was sent of it."""

    gateway: GatewayProcess
    config: GatewayConfig
    bind: BindPair
    world: World
    mine: Ownership
    spans: tuple[Span, ...]
    caller_trace: str
    caller_span: str
    request_id: str

    def named(self, name: str, **attributes: object) -> list[Span]:
        """Spans of a name, with these of the gateway's own attributes."""
        wanted = {f"gateway.{key}": value for key, value in attributes.items()}
        return [
            span
            for span in self.spans
            if span.name == name and wanted.items() <= span.attributes.items()
        ]

    def below(self, span: Span) -> list[Span]:
        return [each for each in self.spans if each.parent == span.id]


def whole(collector: Collector, callers_span: str) -> tuple[Span, ...]:
    """Every span, once the last call and the issuance are there, and nothing lacks its parent."""
    found: list[Span] = []

    def is_whole() -> bool:
        found[:] = collector.spans
        parents = {each.parent for each in found} - {"", callers_span}
        events = {each.attributes.get("gateway.issuance.event") for each in found}
        is_over = "CertificateFetched" in events and CONTEXT in {each.name for each in found}
        return is_over and parents <= {each.id for each in found}

    wait_until(is_whole, "all is traced")
    return tuple(found)


@pytest.fixture(scope="package")
def collector() -> Iterator[Collector]:
    with Collector() as running:
        yield running


@pytest.fixture(scope="package")
def config(
    tmp_path_factory: pytest.TempPathFactory, bind: BindPair, pebble: PebbleProcess
) -> Iterator[GatewayConfig]:
    """Of a gateway with a Redis of its own: the session's has other workers."""
    folder = tmp_path_factory.mktemp("traces")
    with running_redis(tmp_path_factory.mktemp("traces-redis")) as redis:
        yield write_gateway_config(folder / "gateway", bind, redis.url, pebble)


@pytest.fixture(scope="package")
def gateway(config: GatewayConfig, collector: Collector) -> Iterator[GatewayProcess]:
    headers_file = config.config_file.with_name("trace-headers")
    headers_file.write_text(f"X-Collector-Token: {SECRET_HEADER}\n")
    headers_file.chmod(0o600)
    with running_gateway(config, environ=traced(collector, headers_file)) as started:
        yield started


@pytest.fixture(scope="package")
def story(
    config: GatewayConfig, gateway: GatewayProcess, collector: Collector, bind: BindPair
) -> Story:
    """A record with its caller's trace, a conflict, refusals, and a certificate."""
    world = World(config.url, config.admin_token)
    mine = world.ownership()
    trace, span = secrets.token_hex(16), secrets.token_hex(8)
    record = {"type": "A", "value": ADDRESS}
    answer = call_within(trace, span, mine.caller, SYNC, ownership=mine.wire, record=record)
    assert answer.json()["response"]["status"] == "managed-created"
    assert world.rival(mine).publish(OTHER_ADDRESS)["status"] == "record-conflict"
    mine.caller.refused(NO_METHOD)
    mine.certificate()

    # Spans are sent in the order of their ends: of what ended before this one nothing is to come.
    Ownership(world.client(), mine.hostname).caller.call(CONTEXT)
    spans = whole(collector, span)
    return Story(
        gateway=gateway,
        config=config,
        bind=bind,
        world=world,
        mine=mine,
        spans=spans,
        caller_trace=trace,
        caller_span=span,
        request_id=answer.headers["x-request-id"],
    )
