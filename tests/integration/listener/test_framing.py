"""HTTP/1.1 as clients speak it, and as those do who want two servers to read it differently."""

import socket
from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import given, strategies as st

from tests.integration.listener.serving import (
    Served,
    answers,
    echoed,
    post,
    received_until,
    rest,
    served,
)
from tests.lab.process import wait_until

JAVA = (
    b"POST /echo HTTP/1.1\r\nConnection: Upgrade, HTTP2-Settings\r\nContent-Length: 5\r\n"
    b"Host: a\r\nHTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA\r\nUpgrade: h2c\r\n"
    b"User-Agent: Java-http-client/21\r\n\r\n"
)
CHUNKED = JAVA.replace(b"Content-Length: 5", b"Transfer-Encoding: chunked")


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    with served() as running:
        yield running


@pytest.mark.parametrize(
    "pieces",
    [
        (JAVA + b"hello",),
        (JAVA, b"hello"),
        (JAVA[:40], JAVA[40:], b"he", b"llo"),
        (CHUNKED + b"5\r\nhello\r\n0\r\n\r\n",),
        (CHUNKED, b"5\r\nhel", b"lo\r\n0\r\n\r\n"),
    ],
)
def test_request_that_offers_another_protocol_is_answered_in_this_one(
    server: Served, pieces: tuple[bytes, ...]
) -> None:
    first, second = server.answered(*pieces, post(b"next"))
    assert (echoed(first), echoed(second)) == ("hello", "next")


def test_request_without_a_body_may_offer_another_protocol(server: Served) -> None:
    offer = b"GET /echo HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
    first, second = server.answered(offer + offer.replace(b"GET", b"POST"), post(b"next"))[1:]
    assert (echoed(first), echoed(second)) == ("", "next")


def test_pipelined_requests_are_answered_in_order(server: Served) -> None:
    bodies = [b"%d" % number for number in range(20)]
    wire = b"".join(post(body, close=body == bodies[-1]) for body in bodies)
    assert [echoed(each).encode() for each in server.answered(wire)] == bodies


def test_no_more_than_some_pipelined_requests_are_answered(server: Served) -> None:
    wire = post(b"hello", close=False) * 500
    found = server.answered(wire)
    assert 1 < len(found) < 100
    assert {echoed(each) for each in found} == {"hello"}


def test_http_1_0_is_answered_and_closed(server: Served) -> None:
    request = b"POST /echo HTTP/1.0\r\nContent-Length: 5\r\n\r\nhello"
    (answer,) = server.answered(request)
    assert echoed(answer) == "hello"


def test_answer_that_is_nothing_but_a_head_is_sent(server: Served) -> None:
    head = b"HEAD /echo HTTP/1.1\r\nHost: a\r\n\r\n"
    last = head.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
    first, second, nothing = server.exchanged(head + last).split(b"\r\n\r\n")
    assert first.startswith(b"HTTP/1.1 200 OK\r\n")
    assert second.startswith(b"HTTP/1.1 200 OK\r\n")
    assert nothing == b""


@pytest.mark.parametrize(
    ("request_line", "follows"),
    [
        (b"POST {} HTTP/1.1", True),
        (b"POST {}?last HTTP/1.1", True),
        (b"POST {} HTTP/1.0", True),
        (b"HEAD {} HTTP/1.1", True),
        (b"HEAD {} HTTP/1.0", False),
    ],
)
def test_answer_that_is_whole_at_once_is_as_one_in_parts(
    server: Served, request_line: bytes, follows: bool
) -> None:
    received = [
        server.exchanged(
            request_line.replace(b"{}", path) + b"\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
            *([post(b"next")] if follows else []),
        )
        for path in (b"/parts", b"/whole")
    ]
    assert received[0].startswith(b"HTTP/1.1 201 Created\r\n")
    assert received[0] == received[1]


def test_client_that_waits_for_100_continue_gets_it(server: Served) -> None:
    head = post(b"hello", "Expect: 100-continue")[: -len(b"hello")]
    with server.connect() as peer:
        peer.sendall(head)
        received_until(peer, b"HTTP/1.1 100 Continue\r\n\r\n")
        peer.sendall(b"hello")
        received_until(peer, b'"hello"}')


SMUGGLED = b"0\r\n\r\nGET /echo HTTP/1.1\r\nHost: a\r\n\r\n"


@pytest.mark.parametrize(
    "headers",
    [
        ("Content-Length: 5", "Content-Length: 6"),
        ("Content-Length: 5", "Content-Length: 5"),
        ("Content-Length: 5, 5",),
        ("Content-Length: +5",),
        ("Content-Length: 5", "Transfer-Encoding: chunked"),
        ("Transfer-Encoding: chunked", "Content-Length: 5"),
        ("Transfer-Encoding: gzip, chunked",),
        ("Transfer-Encoding: chunked, chunked",),
        ("Transfer-Encoding: xchunked",),
        ("Transfer-Encoding: identity",),
        ("Transfer-Encoding: chunked", "Transfer-Encoding: identity"),
        ("Transfer-Encoding : chunked",),
        ("Transfer-Encoding:\x0bchunked",),
        ("X: a\r\n Content-Length: 5",),
        ("X: a\nContent-Length: 5",),
        ("Host: b",),
    ],
)
def test_framing_that_two_servers_may_read_differently_is_refused(
    server: Served, headers: tuple[str, ...]
) -> None:
    head = "\r\n".join(["POST /echo HTTP/1.1", "Host: a", *headers, "", ""])
    ((status, _),) = server.answered(head.encode() + SMUGGLED)
    assert status == 400


@pytest.mark.parametrize(
    ("request_head", "status"),
    [
        (b"POST /echo HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        (b"GET /echo HTTP/1.1\r\n\r\n", 400),
        (b"GET /echo\r\n\r\n", 505),
        (b"GET /echo HTTP/2.0\r\nHost: a\r\n\r\n", 505),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
        (b"GET http://[::1 HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"GET /" + b"a" * 3_000 + b" HTTP/1.1\r\nHost: a\r\n\r\n", 414),
        (b"GET /echo HTTP/1.1\r\nHost: a\r\nX: " + b"a" * 20_000 + b"\r\n\r\n", 431),
        (b"GET /echo HTTP/1.1\r\nHost: a\r\n" + b"X: aaaaaaaa\r\n" * 2_000 + b"\r\n", 431),
    ],
)
def test_request_that_is_refused_before_the_application(
    server: Served, request_head: bytes, status: int
) -> None:
    ((answered, _),) = server.answered(request_head)
    assert answered == status


def test_header_that_never_ends_is_refused_without_waiting_for_its_end(server: Served) -> None:
    with server.connect() as peer:
        peer.sendall(b"GET /echo HTTP/1.1\r\nHost: a\r\nX: ")
        received = b""
        while not received:
            peer.sendall(b"a" * 4_096)
            peer.setblocking(False)
            try:
                received = peer.recv(65_536)
            except BlockingIOError:
                received = b""
            finally:
                peer.settimeout(30)
    assert received.startswith(b"HTTP/1.1 431 ")


def test_refusal_comes_after_the_answers_that_are_due(server: Served) -> None:
    received = server.answered(post(b"hello", close=False) * 2 + b"NONSENSE\r\n\r\n")
    assert [echoed(each) for each in received] == ["hello", "hello"]


def test_body_at_fault_is_refused_and_not_handed_over(server: Served) -> None:
    head = b"POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
    ((status, _),) = server.answered(head, b"5\r\nhello\r\nnonsense\r\n")
    assert status == 400


def test_nothing_follows_the_last_request_of_a_connection(server: Served) -> None:
    (answer,) = server.answered(post(b"last") + post(b"more"))
    assert echoed(answer) == "last"


def test_client_that_says_it_sends_no_more_is_answered() -> None:
    with served() as server, server.connect() as peer:
        peer.sendall(post(b"first", close=False) + post(b"", path="/held", close=False))
        peer.shutdown(socket.SHUT_WR)
        wait_until(lambda: server.held.number == 1, "the call is under way")
        server.held.free.set()
        first, second = answers(rest(peer))
    assert (echoed(first), second) == ("first", (200, "held"))


def test_client_that_sends_more_than_is_taken_gets_its_refusal(server: Served) -> None:
    assert server.answered(post(b"x" * 16_000_000, path="/refused")) == [(413, "refused")]


@given(cuts=st.lists(st.integers(0, 1_200), max_size=12))
def test_answers_do_not_depend_on_how_the_requests_are_cut(server: Served, cuts: list[int]) -> None:
    wire = JAVA + b"hello" + CHUNKED + b"3\r\nabc\r\n0\r\n\r\n" + post(b"x" * 300, close=False)
    wire += JAVA.replace(b"5", b"0") + post(b"last")
    edges = [0, *sorted(cut for cut in cuts if cut < len(wire)), len(wire)]
    pieces = [wire[start:end] for start, end in pairwise(edges)]
    found = [echoed(each) for each in server.answered(*pieces)]
    assert found == ["hello", "abc", "x" * 300, "", "last"]


@given(st.binary(max_size=400))
def test_whatever_is_sent_the_connection_ends_and_the_server_goes_on(
    server: Served, noise: bytes
) -> None:
    with server.connect() as peer:
        peer.sendall(noise)
        peer.shutdown(socket.SHUT_WR)
        rest(peer)
    (answer,) = server.answered(post(b"hello"))
    assert echoed(answer) == "hello"
