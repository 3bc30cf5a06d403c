"""Peers that take their time: each is given up, and those that do not are kept."""

import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.http.listener.contexts import Pair, server_context
from gateway.http.listener.patience import Patience
from tests.integration.listener.serving import (
    LIMIT_SECONDS,
    Served,
    answers,
    echoed,
    post,
    received_until,
    rest,
    served,
)
from tests.lab.tls import write_server_certificate

# Where all goes well nothing is to depend on how busy this machine is: only what is to be given up
# is waited for briefly.
BRIEF = Patience(handshake_seconds=0.3, head_seconds=0.3)
NOT_READING = Patience(reading_seconds=0.3)
HALF_LONG = Patience(head_seconds=2.0)
KEPT_BRIEFLY = Patience(head_seconds=0.3, keep_alive_seconds=1)


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    with served(BRIEF) as running:
        yield running


@pytest.mark.parametrize(
    ("begun", "status"),
    [
        (b"", None),
        (b"\r\n", None),
        (b"POST /echo HT", 408),
        (b"POST /echo HTTP/1.1\r\nHost: a\r\n", 408),
    ],
)
def test_head_that_does_not_come_in_time_ends_the_connection(
    server: Served, begun: bytes, status: int | None
) -> None:
    found = answers(server.exchanged(begun))
    assert [answered for answered, _ in found] == ([] if status is None else [status])


def test_half_a_head_behind_a_request_has_as_long_as_a_head(server: Served) -> None:
    found = answers(server.exchanged(post(b"one", close=False) + b"POST /echo HT"))
    assert [answered for answered, _ in found] == [200, 408]


def test_head_that_comes_byte_by_byte_ends_the_connection_too(server: Served) -> None:
    with server.connect() as slow:
        slow.settimeout(0.02)
        slow.sendall(b"GET /echo HTTP/1.1\r\nX: ")
        received = b""
        while not received.startswith(b"HTTP/1.1 408"):
            slow.sendall(b"a")
            try:
                received += slow.recv(100)
            except TimeoutError:
                continue


def test_rest_of_a_body_that_nobody_reads_has_to_come_in_time(server: Served) -> None:
    head = b"POST /unread HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n"
    assert answers(server.exchanged(head + b"some")) == [(200, "unread")]


def test_connection_goes_on_after_a_body_that_nobody_reads() -> None:
    unread = post(b"x" * 100, path="/unread", close=False)
    with served() as server:
        first, second = server.answered(unread[:-50], unread[-50:] + post(b"next"))
    assert (first[1], echoed(second)) == ("unread", "next")


def test_connection_between_two_requests_is_kept_longer_than_a_head_may_take() -> None:
    with served(HALF_LONG) as server, server.connect() as kept, server.connect() as silent:
        kept.sendall(post(b"first", close=False))
        received_until(kept, b'"first"}')
        silent.sendall(b"GET")
        assert rest(silent)  # refused by now
        kept.sendall(post(b"second"))
        assert b'"second"' in rest(kept)


def test_connection_is_closed_once_nobody_has_used_it_for_a_while() -> None:
    with served(KEPT_BRIEFLY) as server, server.connect() as kept, server.connect() as silent:
        kept.sendall(post(b"first", close=False))
        received_until(kept, b'"first"}')
        assert rest(silent) == b""  # given up: some of that while is over by now
        kept.sendall(post(b"second", close=False))
        assert b'"second"' in rest(kept)


def test_connection_that_is_used_is_kept_from_then_on() -> None:
    with served(KEPT_BRIEFLY) as server, server.connect() as used, server.connect() as idle:
        used.sendall(post(b"first", close=False))
        received_until(used, b'"first"}')
        idle.sendall(post(b"only", close=False))
        received_until(idle, b'"only"}')
        idle.settimeout(0.02)
        is_kept = True
        while is_kept:
            used.sendall(post(b"again", close=False))
            received_until(used, b'"again"}')
            try:
                is_kept = idle.recv(1) != b""
            except TimeoutError:
                continue
        used.sendall(post(b"last"))
        assert b'"last"' in rest(used)


def test_call_on_a_connection_that_was_kept_may_last_longer_than_that() -> None:
    with served(KEPT_BRIEFLY) as server, server.connect() as busy, server.connect() as idle:
        busy.sendall(post(b"first", close=False))
        received_until(busy, b'"first"}')
        server.hold(busy)
        idle.sendall(post(b"later", close=False))
        assert b'"later"' in rest(idle)  # by now the busy one would have been closed as well
        server.held.free.set()
        assert rest(busy).endswith(b"held")


def test_client_that_reads_nothing_is_given_up() -> None:
    with served(NOT_READING) as server, server.connect() as idle:
        idle.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        server.wait_for_connections(1)
        idle.sendall(b"GET /large HTTP/1.1\r\nHost: a\r\n\r\n" * 20)
        server.wait_for_connections(0)


@pytest.mark.parametrize("path", ["/parts?large", "/whole?large"])
def test_answer_waits_until_the_one_before_it_was_taken(path: str) -> None:
    with served(NOT_READING) as server, server.connect() as idle:
        idle.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        server.wait_for_connections(1)
        idle.sendall(post(b"", path=path, close=False) * 2)
        server.wait_for_connections(0)
        assert server.server.server_state.total_requests == 1


def test_client_that_reads_nothing_of_the_last_answer_is_given_up() -> None:
    with served(NOT_READING) as server, server.connect() as idle:
        server.wait_for_connections(1)
        idle.sendall(b"GET /large HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        server.wait_for_connections(0)


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ssl.SSLContext]:
    folder = tmp_path_factory.mktemp("tls")
    ca, certificate, key = (folder / name for name in ("ca.pem", "tls.pem", "tls.key"))
    write_server_certificate(ca, certificate, key, "127.0.0.1")
    return ca, server_context(Pair(certificate.read_bytes(), key.read_bytes()))


@pytest.fixture(scope="module")
def hasty(shown: tuple[Path, ssl.SSLContext]) -> Iterator[Served]:
    with served(BRIEF, context=lambda: shown[1]) as running:
        yield running


@pytest.fixture(scope="module")
def patient(shown: tuple[Path, ssl.SSLContext]) -> Iterator[Served]:
    with served(NOT_READING, context=lambda: shown[1]) as running:
        yield running


@pytest.mark.parametrize("begun", [b"", b"\x16\x03\x01", b"GET / HTTP/1.1\r\n\r\n"])
def test_handshake_that_does_not_come_in_time_ends_the_connection(
    hasty: Served, begun: bytes
) -> None:
    with hasty.connect() as peer:
        peer.sendall(begun)
        rest(peer)
        hasty.wait_for_connections(0)


def test_client_that_reads_nothing_over_tls_is_given_up(
    patient: Served, shown: tuple[Path, ssl.SSLContext]
) -> None:
    context = ssl.create_default_context(cafile=shown[0])
    with patient.connect() as peer, context.wrap_socket(peer, server_hostname="localhost") as to:
        patient.wait_for_connections(1)
        to.sendall(b"GET /large HTTP/1.1\r\nHost: a\r\n\r\n" * 20)
        patient.wait_for_connections(0)


def test_handshakes_of_others_go_on_while_one_hangs(
    patient: Served, shown: tuple[Path, ssl.SSLContext]
) -> None:
    context = ssl.create_default_context(cafile=shown[0])
    with patient.connect(), patient.connect() as peer:
        peer.settimeout(LIMIT_SECONDS)
        with context.wrap_socket(peer, server_hostname="localhost") as to:
            to.sendall(post(b"hello"))
            received = b""
            while chunk := to.recv(65_536):
                received += chunk
    assert echoed(answers(received)[0]) == "hello"
