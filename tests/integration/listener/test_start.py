"""A start on an address that is taken, and a process that has run out of descriptors."""

import resource
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.integration.cli.running import run
from tests.integration.listener.serving import answers, received_until, rest
from tests.integration.service.calling import World
from tests.lab.gateway import GatewayConfig, GatewayProcess, running_gateway
from tests.lab.ports import LOOPBACK, free_port
from tests.lab.process import wait_until

HEALTH = b"GET /healthz HTTP/1.1\r\nHost: a\r\n"
ALIVE = b'{"status":"alive"}'
LIMIT_SECONDS = 30.0


@pytest.fixture(scope="module")
def gateway(listener_config: GatewayConfig) -> Iterator[GatewayProcess]:
    with running_gateway(listener_config, "plain", port=free_port()) as running:
        yield running


def connect(gateway: GatewayProcess) -> socket.socket:
    return socket.create_connection((LOOPBACK, gateway.port), timeout=LIMIT_SECONDS)


def test_start_on_a_port_in_use_names_the_process_that_has_it(
    gateway: GatewayProcess, listener_config: GatewayConfig
) -> None:
    environ = {"GATEWAY_HTTP__LISTEN": f"{LOOPBACK}:{gateway.port}"}
    ended = run("serve", "--config", listener_config.config_file, environ=environ)
    assert ended.returncode == 1  # systemd tries again
    said = f"http.listen {LOOPBACK}:{gateway.port}: Address already in use, by process "
    assert ended.stderr.startswith(f'{said}{gateway.pid} ("')


@pytest.mark.parametrize("host", ["0.0.0.0", "[::]"])  # noqa: S104 (nothing listens)
def test_start_on_every_address_names_who_has_the_port_of_one(
    gateway: GatewayProcess, listener_config: GatewayConfig, host: str
) -> None:
    environ = {
        "GATEWAY_HTTP__LISTEN": f"{host}:{gateway.port}",
        "GATEWAY_HTTP__ALLOW_PLAIN_HTTP": "true",
    }
    ended = run("serve", "--config", listener_config.config_file, environ=environ)
    assert ended.returncode == 1
    assert f"by process {gateway.pid} (" in ended.stderr or "not supported" in ended.stderr


def test_plain_http_beyond_loopback_is_refused_unless_it_is_wanted(
    listener_config: GatewayConfig,
) -> None:
    environ = {"GATEWAY_HTTP__LISTEN": f"0.0.0.0:{free_port()}"}
    ended = run("serve", "--config", listener_config.config_file, environ=environ)
    assert ended.returncode == 2
    assert ended.stderr.startswith("GATEWAY_HTTP__LISTEN: must be a loopback address without TLS")


def test_gateway_without_descriptors_answers_again_once_it_has_some(
    gateway: GatewayProcess, listener_config: GatewayConfig
) -> None:
    log = listener_config.config_file.parent / "plain.log"
    with ExitStack() as stack:
        kept = stack.enter_context(connect(gateway))
        kept.sendall(HEALTH + b"\r\n")
        assert received_until(kept, ALIVE).startswith(b"HTTP/1.1 200 ")
        limits = resource.prlimit(gateway.pid, resource.RLIMIT_NOFILE)
        in_use = len(list(Path(f"/proc/{gateway.pid}/fd").iterdir()))
        resource.prlimit(gateway.pid, resource.RLIMIT_NOFILE, (in_use, limits[1]))
        try:
            waiting = [stack.enter_context(connect(gateway)) for _ in range(20)]
            wait_until(lambda: "out of descriptors" in log.read_text(), "the log tells of it")
            kept.sendall(HEALTH + b"\r\n")
            assert received_until(kept, ALIVE).startswith(b"HTTP/1.1 200 ")
        finally:
            resource.prlimit(gateway.pid, resource.RLIMIT_NOFILE, limits)
        for peer in waiting:
            peer.sendall(HEALTH + b"Connection: close\r\n\r\n")
            assert [status for status, _ in answers(rest(peer))] == [200]


def test_address_that_takes_all_it_may_have_leaves_the_others_their_calls(
    listener_config: GatewayConfig,
) -> None:
    environ = {
        "GATEWAY_HTTP__CONNECTIONS": "30",
        "GATEWAY_HTTP__CONNECTIONS_PER_ADDRESS": "20",
    }
    with (
        running_gateway(listener_config, "bounded", port=free_port(), environ=environ) as running,
        ExitStack() as stack,
    ):
        greedy = [
            stack.enter_context(
                socket.create_connection(
                    (LOOPBACK, running.port), LIMIT_SECONDS, source_address=("127.0.0.2", 0)
                )
            )
            for _ in range(21)
        ]
        assert rest(greedy[-1]) == b""
        world = World(running.url, listener_config.admin_token)
        assert world.client("relay.example.test").token
