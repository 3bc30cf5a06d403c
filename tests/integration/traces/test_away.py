"""A collector that is away, hangs or refuses harms nothing; and a stop sends what is left."""

import secrets
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.metrics.scraping import Scraper
from tests.integration.service.calling import CAPABILITIES, CONTEXT, World
from tests.integration.traces.conftest import call_within, traced
from tests.lab import gateway as lab_gateway
from tests.lab.bind import BindPair
from tests.lab.gateway import GatewayConfig, GatewayProcess, start_gateway
from tests.lab.otlp import Collector
from tests.lab.ports import LOOPBACK, free_port
from tests.lab.process import Process, wait_until
from tests.lab.redis import running_redis

SENT = "gateway_trace_spans_total"
FLUSHES_TRIED = 3

Start = Callable[[str, dict[str, str]], GatewayProcess]


@pytest.fixture(scope="module")
def own_config(tmp_path_factory: pytest.TempPathFactory, bind: BindPair) -> Iterator[GatewayConfig]:
    folder = tmp_path_factory.mktemp("collectors")
    with running_redis(tmp_path_factory.mktemp("collectors-redis")) as redis:
        yield lab_gateway.write_gateway_config(folder / "gateway", bind, redis.url, None)


@pytest.fixture
def start(own_config: GatewayConfig, request: pytest.FixtureRequest) -> Start:
    """Start a gateway with this environment, which ends with the test."""

    def run(name: str, environ: dict[str, str]) -> GatewayProcess:
        gateway = start_gateway(own_config, name, environ=environ)
        request.addfinalizer(gateway.stop)
        return gateway

    return run


def events(gateway: GatewayProcess, name: str) -> list[dict[str, Any]]:
    return [line for line in gateway.log_lines if line["event"] == name]


def test_collector_that_is_away_is_told_once_and_so_is_its_return(
    start: Start, own_config: GatewayConfig
) -> None:
    collector, metrics = Collector(), Scraper(free_port())
    listen = {"GATEWAY_METRICS__LISTEN": f"{LOOPBACK}:{metrics.port}"}
    gateway = start("away", {**traced(collector), **listen})
    admin = World(own_config.url, own_config.admin_token).admin
    lost = 0.0
    for _ in range(2):
        assert admin.call(CONTEXT)
        page = metrics.until(
            lambda page: page.figure(SENT, outcome="lost") > lost,  # noqa: B023 (used at once)
            "spans are given up",
        )
        lost = page.figure(SENT, outcome="lost")
    (told,) = events(gateway, "traces are not taken")
    assert told["endpoint"] == collector.url
    assert "refused" in told["detail"]
    with collector:
        assert admin.call(CAPABILITIES)
        wait_until(
            lambda: CAPABILITIES in {span.name for span in collector.spans}, "traces are taken"
        )
        wait_until(lambda: bool(events(gateway, "traces are taken again")), "that is told")
        gateway.stop()
    assert gateway.process.exit_code == 0
    assert events(gateway, "traces are taken again")[0]["lost"] >= lost


def test_collector_that_refuses_is_told_with_its_answer(
    start: Start, own_config: GatewayConfig
) -> None:
    with Collector() as collector:
        collector.answers_with = 401
        gateway = start("refused", traced(collector))
        World(own_config.url, own_config.admin_token).admin.call(CONTEXT)
        wait_until(lambda: bool(events(gateway, "traces are not taken")), "it is told")
    assert "401" in events(gateway, "traces are not taken")[0]["detail"]


def test_stop_does_not_wait_for_a_collector_that_hangs(
    start: Start, own_config: GatewayConfig
) -> None:
    with socket.create_server((LOOPBACK, 0)) as deaf:
        endpoint = f"http://{LOOPBACK}:{deaf.getsockname()[1]}"
        gateway = start("hanging", {"GATEWAY_TRACES__ENDPOINT": endpoint})
        assert World(own_config.url, own_config.admin_token).admin.call(CONTEXT)
        gateway.stop()
    # -9 would say that it took as long as the lab gives a program that ends.
    assert gateway.process.exit_code == 0


def test_stop_sends_what_is_left(start: Start, own_config: GatewayConfig) -> None:
    arrived = []
    with Collector() as collector:
        # A machine that is busy may leave the collector no second, which is all there is for it.
        for number in range(FLUSHES_TRIED):
            gateway = start(f"stopped-{number}", traced(collector))
            World(own_config.url, own_config.admin_token).admin.call(CONTEXT)
            gateway.stop()
            arrived = [span for span in collector.spans if span.name == CONTEXT]
            if arrived:
                break
    assert arrived


def test_share_of_none_traces_only_what_its_caller_traces(
    start: Start, own_config: GatewayConfig
) -> None:
    with Collector() as collector:
        gateway = start("sampled", {**traced(collector), "GATEWAY_TRACES__SAMPLE": "0"})
        caller = World(own_config.url, own_config.admin_token).admin
        caller.call(CONTEXT)
        trace = secrets.token_hex(16)
        call_within(trace, secrets.token_hex(8), caller, CAPABILITIES)
        wait_until(lambda: len(collector.spans) > 0, "the caller's own is traced")
        gateway.stop()
    assert {span.trace for span in collector.spans} == {trace}


def test_nothing_is_loaded_for_traces_that_nobody_wants(
    own_config: GatewayConfig, monkeypatch: pytest.MonkeyPatch, start: Start
) -> None:
    # A process of its own: a fork has loaded what its parent has.
    monkeypatch.setattr(lab_gateway, "run_as", Process)
    gateway = start("untraced", {"PYTHONPROFILEIMPORTTIME": "1"})
    assert World(own_config.url, own_config.admin_token).admin.call(CONTEXT)
    gateway.stop()
    loaded = _loaded(gateway.process.log_file)
    assert {"gateway.tracing", "gateway.running"} <= loaded
    # Not all of OpenTelemetry: redis (8.1) loads its metrics where they are installed.
    unwanted = ("gateway.trace_export", "opentelemetry.sdk.trace", "opentelemetry.exporter")
    assert not [name for name in loaded if name.startswith((*unwanted, "google.protobuf"))]


def _loaded(log_file: Path) -> set[str]:
    lines = log_file.read_text().splitlines()
    return {line.rpartition("|")[2].strip() for line in lines if line.startswith("import time:")}
