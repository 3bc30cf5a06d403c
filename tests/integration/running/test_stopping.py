"""SIGTERM and SIGHUP at awkward moments, and what a stopping process still does."""

import contextlib
import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.running.site import JSON_LOG, LIMIT_SECONDS, Site, Systemd
from tests.integration.service.calling import CONTEXT, World, envelope
from tests.lab import gateway
from tests.lab.bind import BindPair
from tests.lab.gateway import GatewayProcess, running_gateway, start_gateway, write_gateway_config
from tests.lab.ports import LOOPBACK, free_port, refuses_connections
from tests.lab.process import wait_until

WAITS = "reload asked for, it waits for what is under way"


@pytest.fixture
def beside(site: Site, systemd: Systemd) -> Iterator[GatewayProcess]:
    """A gateway beside the other one, to be stopped."""
    # It beats at once, and then so seldom that nothing is lost while nobody reads.
    environ = {**systemd.environ, "WATCHDOG_USEC": "60000000"}
    with running_gateway(site.config, "beside", port=free_port(), environ=environ) as started:
        yield started


def read_to_the_end(peer: socket.socket) -> tuple[str, dict[str, str], bytes]:
    """What comes until the gateway closes the connection: first line, headers, body."""
    received = b""
    while chunk := peer.recv(65_536):
        received += chunk
    head, _, body = received.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    pairs = [line.split(": ", 1) for line in lines]
    return first, {name.lower(): value for name, value in pairs}, body


def test_call_under_way_is_answered_and_its_connection_closed(
    beside: GatewayProcess, world: World
) -> None:
    port = beside.port
    body = json.dumps(envelope(CONTEXT, {"apiToken": world.ownership().caller.token})).encode()
    head = (
        "POST /typedrequest HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\nExpect: 100-continue\r\n\r\n"
    )
    with socket.create_connection((LOOPBACK, port), timeout=LIMIT_SECONDS) as peer:
        peer.sendall(head.encode())
        assert peer.recv(65_536) == b"HTTP/1.1 100 Continue\r\n\r\n"
        os.kill(beside.pid, signal.SIGTERM)
        wait_until(lambda: refuses_connections(port), "it listens no more")
        peer.sendall(body)
        first, headers, answer = read_to_the_end(peer)
    assert first == "HTTP/1.1 200 OK"
    assert headers["connection"] == "close"
    assert "error" not in json.loads(answer)
    beside.stop()
    assert beside.process.exit_code == 0


def test_reloads_that_come_while_it_stops_do_no_harm(beside: GatewayProcess) -> None:
    with contextlib.suppress(ProcessLookupError):
        for number in range(20):
            os.kill(beside.pid, signal.SIGHUP)
            if number == 5:
                os.kill(beside.pid, signal.SIGTERM)
    wait_until(lambda: not beside.process.is_running, "it has ended")
    assert beside.process.exit_code == 0


def test_systemd_hears_of_start_life_reload_and_stop(
    beside: GatewayProcess, systemd: Systemd
) -> None:
    assert systemd.heard_until("READY")[-1]["STATUS"] == "2 zones, 1 CAs, with a worker"
    assert systemd.heard_until("WATCHDOG")[-1] == {"WATCHDOG": "1"}
    asked_us = time.monotonic_ns() // 1_000
    os.kill(beside.pid, signal.SIGHUP)
    reloading = systemd.heard_until("RELOADING")[-1]
    assert reloading["RELOADING"] == "1"
    assert asked_us <= int(reloading["MONOTONIC_USEC"]) <= time.monotonic_ns() // 1_000
    assert systemd.heard_until("READY")[-1]["READY"] == "1"
    os.kill(beside.pid, signal.SIGTERM)
    assert systemd.heard_until("STOPPING")[-1]["STOPPING"] == "1"


def test_embedded_redis_goes_on_over_a_reload(
    tmp_path: Path, systemd: Systemd, bind: BindPair
) -> None:
    config = write_gateway_config(tmp_path / "gateway", bind, "embedded", None)
    own = start_gateway(config, environ={**JSON_LOG, **systemd.environ})
    systemd.heard_until("READY")
    site = Site(config, own, systemd)
    mine = World(own.url, config.admin_token).ownership()
    pid_file = config.state_folder / "redis" / "redis.pid"
    before = pid_file.read_text()
    mine.publish("198.51.100.5")
    site.reload()
    site.reload()
    assert mine.publish("198.51.100.5")["status"] == "managed-unchanged"
    assert pid_file.read_text() == before
    own.stop()
    assert not Path(f"/proc/{before.strip()}").exists()


def test_stop_while_it_starts_leaves_no_redis_behind(tmp_path: Path, bind: BindPair) -> None:
    config = write_gateway_config(tmp_path / "gateway", bind, "embedded", None)
    folder = config.state_folder / "redis"
    program = str(Path(sys.executable).with_name("gateway"))
    with (tmp_path / "log").open("wb") as log:
        child = subprocess.Popen(
            [program, "serve", "--config", str(config.config_file)], stderr=log, cwd=tmp_path
        )
    try:
        wait_until((folder / "server.lock").exists, "it starts its Redis", pause_seconds=0.001)
        child.send_signal(signal.SIGTERM)
        assert child.wait(LIMIT_SECONDS) == 0, (tmp_path / "log").read_text()
    finally:
        child.kill()
        child.wait()
    with (folder / "server.lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # which a redis-server would hold


def test_reload_that_has_to_wait_is_told_at_once(site: Site) -> None:
    with socket.create_connection((LOOPBACK, site.gateway.port), timeout=LIMIT_SECONDS) as slow:
        slow.sendall(
            b"POST /typedrequest HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
            b"Content-Length: 100\r\nExpect: 100-continue\r\n\r\n"
        )
        assert slow.recv(65_536) == b"HTTP/1.1 100 Continue\r\n\r\n"
        site.reload()  # what it replaces ends with that call
        before = len(site.events(WAITS))
        site.ask()
        wait_until(lambda: len(site.events(WAITS)) > before, "it says that the second one waits")
    site.reload()


def test_worker_of_its_own_works_where_gateways_shall_not(site: Site, systemd: Systemd) -> None:
    program = str(Path(sys.executable).with_name("gateway"))
    command = [program, "worker", "--config", str(site.config.config_file)]
    environ = {**systemd.environ, "GATEWAY_WORKER__ENABLED": "false"}
    worker = gateway.run_as("worker", command, site.config.config_file.parent, environ)
    worker.start(lambda: True)
    try:
        assert systemd.heard_until("READY")[-1]["STATUS"].endswith("with a worker")
        os.kill(worker.pid, signal.SIGHUP)
        assert systemd.heard_until("RELOADING")
        assert systemd.heard_until("READY")[-1]["STATUS"].endswith("with a worker")
    finally:
        worker.stop()
    assert worker.exit_code == 0
