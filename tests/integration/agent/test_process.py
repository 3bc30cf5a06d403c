"""The agent as a process: systemd's socket, signals, and the lock of its state folder."""

import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.agent.machine import ADDRESS, Machine
from tests.lab.process import wait_until


class Systemd:
    """The socket to which a unit of `Type=notify` tells how it is. Keeps all that came."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(str(path))
        self._socket.setblocking(False)
        self._heard: list[str] = []

    def heard(self) -> list[str]:
        while True:
            try:
                self._heard += self._socket.recv(4096).decode().splitlines()
            except BlockingIOError:
                return self._heard

    def wait_for(self, line: str) -> None:
        wait_until(lambda: line in self.heard(), f"systemd hears {line}")

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def systemd(tmp_path: Path) -> Iterator[Systemd]:
    listening = Systemd(tmp_path / "notify")
    yield listening
    listening.close()


def test_systemd_hears_that_it_is_ready_alive_and_about_to_stop(
    machine: Machine, systemd: Systemd
) -> None:
    machine.configure(record={"value": ADDRESS})
    with machine.started(NOTIFY_SOCKET=str(systemd.path), WATCHDOG_USEC="600000") as agent:
        systemd.wait_for("READY=1")
        # What was done is written down beside going on.
        wait_until(lambda: machine.remembered().get("published"), "it is written down")
        assert machine.remembered()["published"]["value"] == ADDRESS
        beats = systemd.heard().count("WATCHDOG=1")
        wait_until(lambda: systemd.heard().count("WATCHDOG=1") > beats, "the watchdog hears of it")
        systemd.wait_for(f"STATUS={machine.hostname} is current")
        assert agent.end().returncode == 0
        systemd.wait_for("STOPPING=1")


def test_agent_is_ready_though_the_gateway_refuses_it(machine: Machine, systemd: Systemd) -> None:
    machine.give_token("gwc_none_of_yours")
    machine.configure(record={"value": ADDRESS})
    with machine.started(NOTIFY_SOCKET=str(systemd.path)) as agent:
        systemd.wait_for("READY=1")
        ended = agent.end()
    assert ended.returncode == 0
    assert "the gateway cannot be used" in ended.stderr
    assert "gwc_none_of_yours" not in ended.stderr


def test_sigterm_lets_the_hook_that_runs_end(machine: Machine) -> None:
    go_on = machine.folder / "go-on"
    script = (
        f"echo begun >> {machine.hook_log}; until test -e {go_on}; do sleep 0.05; done;"
        f" echo ended >> {machine.hook_log}"
    )
    machine.configure_certificate(script)
    with machine.started() as agent:
        wait_until(lambda: machine.hooks_run() == ["begun"], "the hook runs")
        agent.tell(signal.SIGTERM)
        go_on.touch()
        assert agent.end().returncode == 0
    assert machine.hooks_run() == ["begun", "ended"]
    assert machine.remembered()["deployed_version"] == machine.live.readlink().name


def test_once_that_is_told_to_stop_is_not_yet(machine: Machine) -> None:
    waiting = machine.folder / "waiting"
    machine.configure(record={"command": ["sh", "-c", f"touch {waiting}; sleep 600"]})
    with machine.started("--once") as agent:
        wait_until(waiting.exists, "the command runs")
        ended = agent.end()
    assert ended.returncode == 3
    assert "told to stop" in ended.stderr


def test_sighup_says_that_the_configuration_is_not_read_again(
    machine: Machine, systemd: Systemd
) -> None:
    machine.configure(record={"value": ADDRESS})
    with machine.started(NOTIFY_SOCKET=str(systemd.path)) as agent:
        systemd.wait_for("READY=1")
        agent.tell(signal.SIGHUP)
        ended = agent.end()
    assert ended.returncode == 0
    assert "SIGHUP changes nothing" in ended.stderr


def test_second_agent_of_a_state_folder_ends_at_once_and_names_the_first(
    machine: Machine, systemd: Systemd
) -> None:
    machine.configure(record={"value": ADDRESS})
    with machine.started(NOTIFY_SOCKET=str(systemd.path)) as first:
        systemd.wait_for("READY=1")
        second = machine.once()
        assert second.code == 3
        assert f"process {first.pid} holds" in second.complaint
        assert machine.run("status").code == 0
