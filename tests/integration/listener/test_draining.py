"""A listener that ends turns nobody away who could think that his call was taken."""

import select
import socket
from pathlib import Path

import pytest

from gateway.http.listener.draining import drop_beginnings
from gateway.http.listener.patience import Patience
from tests.integration.listener.serving import LIMIT_SECONDS, answers, post, rest, served
from tests.lab.ports import LOOPBACK, free_port, refuses_connections
from tests.lab.process import wait_until

ASKING = "02"
"""The kernel's number of a connection that was asked for and has had no answer."""


def is_asking(port: int) -> bool:
    wanted = f":{port:04X}"
    lines = Path("/proc/net/tcp").read_text().splitlines()[1:]
    return any(line.split()[2].endswith(wanted) and line.split()[3] == ASKING for line in lines)


@pytest.mark.parametrize("has_called", [True, False])
def test_connection_that_is_kept_has_one_more_call_answered(has_called: bool) -> None:
    with served(Patience(parting_seconds=LIMIT_SECONDS)) as server, server.connect() as peer:
        if has_called:
            peer.sendall(post(b"one", close=False))
            assert peer.recv(65_536)
        server.wait_for_connections(1)
        server.server.should_exit = True
        wait_until(lambda: refuses_connections(server.port), "it listens no more")
        peer.sendall(post(b"two"))
        ((status, body),) = answers(rest(peer))
    assert (status, "two" in body) == (200, True)


def test_connection_that_is_kept_does_not_hold_the_end_up_for_long() -> None:
    with served(Patience(parting_seconds=0.1)) as server, server.connect() as peer:
        server.wait_for_connections(1)
        server.server.should_exit = True
        assert rest(peer) == b""


def test_connection_that_begins_too_late_is_refused_and_one_from_before_is_not() -> None:
    with socket.socket() as listener, socket.socket() as late:
        listener.bind((LOOPBACK, free_port()))
        listener.listen()
        port = listener.getsockname()[1]
        with socket.create_connection((LOOPBACK, port), timeout=LIMIT_SECONDS) as early:
            drop_beginnings(listener)
            late.setblocking(False)
            late.connect_ex((LOOPBACK, port))
            wait_until(lambda: is_asking(port), "it asks")
            early.sendall(b"here")
            taken, _ = listener.accept()
            with taken:
                assert taken.recv(4) == b"here"
        assert is_asking(port)
        listener.close()
        assert select.select([], [late], [], LIMIT_SECONDS)[1]
        with pytest.raises(ConnectionRefusedError):
            late.connect((LOOPBACK, port))
