"""The metrics listener: its formats, its other pages, and what it refuses."""

import socket
from contextlib import ExitStack, suppress

import httpx
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from gateway.metering import CONNECTIONS, CONNECTIONS_PER_ADDRESS
from tests.integration.metrics.conftest import MeteredLab
from tests.integration.metrics.scraping import Scraper
from tests.integration.service.calling import NO_TLS, World
from tests.lab.process import wait_until

LIMIT_SECONDS = 30.0


def test_figures_are_plain_prometheus_text_unless_asked_otherwise(metrics: Scraper) -> None:
    answer = metrics.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert answer.headers["cache-control"] == "no-store"
    assert not answer.text.endswith("# EOF\n")


def test_figures_are_openmetrics_for_whoever_accepts_it(metrics: Scraper) -> None:
    answer = metrics.get("/metrics", "application/openmetrics-text; version=1.0.0")
    assert answer.headers["content-type"].startswith("application/openmetrics-text")
    assert answer.text.endswith("# EOF\n")
    named = {family.name for family in text_string_to_metric_families(answer.text)}
    assert {"gateway_calls", "gateway_part_up", "gateway_issuance_seconds"} <= named


@pytest.mark.parametrize(
    "accept",
    [
        "application/openmetrics-text;version=abc",
        "application/openmetrics-text;=;;version==1..2",
        "application/openmetrics-text;version=9" * 3,
    ],
)
def test_figures_are_plain_text_for_whoever_asks_for_nonsense(
    metrics: Scraper, accept: str
) -> None:
    answer = metrics.get("/metrics", accept)
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")


def test_one_address_cannot_take_every_connection(metrics: Scraper) -> None:
    with ExitStack() as peers:
        held = []
        for _ in range(CONNECTIONS):
            peer = peers.enter_context(socket.create_connection(("127.0.0.1", metrics.port)))
            peer.settimeout(LIMIT_SECONDS)
            with suppress(ConnectionError):
                peer.sendall(b"GET /metrics HTTP/1.1\r\nHost: a\r\n")
            held.append(peer)
        other = peers.enter_context(
            socket.create_connection(
                ("127.0.0.1", metrics.port), LIMIT_SECONDS, source_address=("127.0.0.2", 0)
            )
        )
        other.sendall(b"GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        assert other.recv(65_536).startswith(b"HTTP/1.1 200 ")
        refused = [peer for peer in held if not begins_to_be_answered(peer)]
    assert len(refused) >= CONNECTIONS - CONNECTIONS_PER_ADDRESS
    wait_until(lambda: is_let_in(metrics), "it has seen that they are gone")


def is_let_in(metrics: Scraper) -> bool:
    try:
        return metrics.get("/healthz").status_code == 200
    except httpx.TransportError:
        return False


def begins_to_be_answered(peer: socket.socket) -> bool:
    """Whether anything comes, such as that its head took too long; a refused one is just closed."""
    try:
        return peer.recv(1) != b""
    except ConnectionError:
        return False


def test_health_is_told_here_too(metrics: Scraper) -> None:
    assert metrics.get("/healthz").json() == {"status": "alive"}
    answer = metrics.get("/readyz")
    assert answer.status_code == 200
    assert "worker" in answer.json()["parts"]


def test_calls_are_not_taken_here(metrics: Scraper) -> None:
    assert metrics.get("/typedrequest", method="POST").status_code == 404
    assert metrics.get("/metrics", method="POST").status_code == 405


def test_figures_are_not_shown_where_calls_are_taken(metered_lab: MeteredLab) -> None:
    url = f"{metered_lab.gateway.base_url}/metrics"
    assert httpx.get(url, trust_env=False, verify=NO_TLS).status_code == 404


@pytest.mark.parametrize("method", ["getGatewayClientContext", "gwc_no-method-but-a-token"])
def test_no_hostname_client_or_invented_method_is_shown(
    metrics: Scraper, world: World, method: str
) -> None:
    mine = world.ownership()
    mine.publish("198.51.100.9")
    mine.caller.answer(method)
    text = metrics.page().text
    assert mine.hostname not in text
    assert mine.caller.token is not None
    assert mine.caller.token not in text
    assert "gwc_" not in text
    assert "client-" not in text
