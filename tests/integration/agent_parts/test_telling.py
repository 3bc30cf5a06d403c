"""The datagrams that systemd gets, and the file that node-exporter reads."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from gateway.agent.durable import DiskFault
from gateway.agent.metrics import write_textfile
from gateway.notify import Notifier
from tests.unit.agent.statuses import HOSTNAME, NEVER_SERVED, NOW_MS, SERVED

DATAGRAM_LIMIT = 4096
WATCHDOG = {"WATCHDOG_USEC": "3000000"}


@pytest.fixture(params=["path", "abstract"])
def systemd(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, socket.socket]]:
    """A socket as systemd has one, and its name as NOTIFY_SOCKET has it."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        if request.param == "path":
            name = str(tmp_path / "notify")
            listener.bind(name)
        else:
            listener.bind("")  # the kernel chooses a free abstract name
            name = "@" + listener.getsockname()[1:].decode()
        listener.setblocking(False)
        yield name, listener


def heard(listener: socket.socket) -> str:
    return listener.recv(DATAGRAM_LIMIT).decode()


def test_readiness_is_told_with_a_status(systemd: tuple[str, socket.socket]) -> None:
    name, listener = systemd
    Notifier({"NOTIFY_SOCKET": name}).ready("all 3 hostnames are current")
    assert heard(listener) == "READY=1\nSTATUS=all 3 hostnames are current"


def test_status_is_one_line_whatever_is_in_it(systemd: tuple[str, socket.socket]) -> None:
    name, listener = systemd
    Notifier({"NOTIFY_SOCKET": name}).status("a\nMAINPID=1\n" + "b" * 1000)
    said = heard(listener)
    assert said.startswith("STATUS=a MAINPID=1 bbb")
    assert "\n" not in said


def test_life_is_told_to_a_watchdog(systemd: tuple[str, socket.socket]) -> None:
    name, listener = systemd
    Notifier({"NOTIFY_SOCKET": name, **WATCHDOG}).alive()
    assert heard(listener) == "WATCHDOG=1"


def test_life_is_not_told_when_there_is_no_watchdog(systemd: tuple[str, socket.socket]) -> None:
    name, listener = systemd
    Notifier({"NOTIFY_SOCKET": name}).alive()
    with pytest.raises(BlockingIOError):
        heard(listener)


def test_end_is_told(systemd: tuple[str, socket.socket]) -> None:
    name, listener = systemd
    Notifier({"NOTIFY_SOCKET": name}).stopping()
    assert heard(listener) == "STOPPING=1"


def test_nothing_waits_when_systemd_does_not_read(systemd: tuple[str, socket.socket]) -> None:
    name, listener = systemd
    notifier = Notifier({"NOTIFY_SOCKET": name})
    for number in range(2000):  # more than any queue of the kernel takes
        notifier.status(f"line {number}")
    assert heard(listener) == "STATUS=line 0"


def test_reload_is_told_with_its_moment(systemd: tuple[str, socket.socket]) -> None:
    name, listener = systemd
    notifier = Notifier({"NOTIFY_SOCKET": name})
    notifier.reloading(1234567)
    notifier.ready()
    assert heard(listener) == "RELOADING=1\nMONOTONIC_USEC=1234567"
    assert heard(listener) == "READY=1"


@pytest.fixture
def strict_umask() -> Iterator[None]:
    before = os.umask(0o077)
    yield
    os.umask(before)


@pytest.fixture
def textfile(tmp_path: Path) -> Path:
    return tmp_path / "gateway_agent.prom"


def test_textfile_is_what_prometheus_parses(textfile: Path) -> None:
    write_textfile(textfile, [SERVED, NEVER_SERVED], NOW_MS)
    families = list(text_string_to_metric_families(textfile.read_text()))
    (ok,) = [family for family in families if family.name == "gateway_agent_certificate_ok"]
    assert {sample.labels["hostname"]: sample.value for sample in ok.samples} == {
        HOSTNAME: 1,
        NEVER_SERVED.hostname: 0,
    }


def test_textfile_is_read_by_everybody_whatever_the_umask(
    textfile: Path, strict_umask: None
) -> None:
    write_textfile(textfile, [SERVED], NOW_MS)
    assert textfile.stat().st_mode & 0o777 == 0o644


def test_textfile_is_replaced_and_nothing_is_left_beside_it(textfile: Path) -> None:
    textfile.with_name("gateway_agent.prom.new").write_text("what a killed run left")
    write_textfile(textfile, [SERVED], NOW_MS)
    write_textfile(textfile, [NEVER_SERVED], NOW_MS)
    assert HOSTNAME not in textfile.read_text()
    assert list(textfile.parent.iterdir()) == [textfile]


def test_textfile_in_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    file = tmp_path / "missing" / "gateway_agent.prom"
    with pytest.raises(DiskFault) as caught:
        write_textfile(file, [SERVED], NOW_MS)
    assert str(caught.value) == f"cannot write {file}.new: No such file or directory"


def test_link_in_the_place_of_an_unfinished_textfile_is_not_followed(textfile: Path) -> None:
    secret = textfile.with_name("secret")
    secret.touch(0o600)
    secret.write_text("mine")
    textfile.with_name("gateway_agent.prom.new").symlink_to(secret)
    write_textfile(textfile, [SERVED], NOW_MS)
    assert (secret.read_text(), secret.stat().st_mode & 0o777) == ("mine", 0o600)
    assert HOSTNAME in textfile.read_text()


def test_named_pipe_in_the_place_of_an_unfinished_textfile_holds_nothing_up(
    textfile: Path,
) -> None:
    os.mkfifo(textfile.with_name("gateway_agent.prom.new"))
    write_textfile(textfile, [SERVED], NOW_MS)
    assert HOSTNAME in textfile.read_text()
