"""How many connections there may be, and what becomes of one too many."""

import socket
import ssl
from contextlib import ExitStack
from datetime import UTC, datetime

import pytest

from gateway.http.listener.contexts import server_context, substitute
from tests.integration.listener.serving import echoed, post, received_until, rest, served


def test_place_is_free_again_once_a_connection_is_gone() -> None:
    with served(most=1) as server:
        for number in range(3):
            (answer,) = server.answered(post(b"%d" % number))
            assert echoed(answer) == str(number)
            server.wait_for_connections(0)


def test_address_with_too_many_calls_under_way_gets_no_more_connections() -> None:
    with served(most_per_address=2) as server, ExitStack() as stack:
        for _ in range(2):
            server.hold(stack.enter_context(server.connect()))
        with server.connect() as refused:
            assert rest(refused) == b""


def test_good_client_works_beside_a_thousand_idle_connections() -> None:
    with served(most=2_000, most_per_address=2_000) as server, ExitStack() as stack:
        for _ in range(1_000):
            stack.enter_context(server.connect())
        server.wait_for_connections(1_000)
        for number in range(20):
            (answer,) = server.answered(post(b"%d" % number))
            assert echoed(answer) == str(number)


def test_idle_connections_give_way_to_new_ones_the_longest_idle_first() -> None:
    with served(most=3) as server, ExitStack() as stack:
        oldest, *_ = [stack.enter_context(server.connect()) for _ in range(3)]
        server.wait_for_connections(3)
        (answer,) = server.answered(post(b"hello"))
        assert echoed(answer) == "hello"
        assert rest(oldest) == b""


@pytest.mark.parametrize("before", [b"", post(b"first", close=False)], ids=["alone", "pipelined"])
def test_connection_with_a_call_under_way_does_not_give_way(before: bytes) -> None:
    with served(most=1) as server, server.connect() as busy:
        server.hold(busy, before)
        with server.connect() as refused:
            assert rest(refused) == b""
        server.held.free.set()
        assert rest(busy).endswith(b"held")


def test_half_a_request_behind_a_call_under_way_does_not_make_it_give_way() -> None:
    with served(most=1) as server, server.connect() as busy:
        server.hold(busy, behind=post(b"hello")[:-5])
        with server.connect() as refused:
            assert rest(refused) == b""
        server.held.free.set()
        busy.sendall(b"hello")
        assert b'"hello"' in rest(busy)


def begin_body(peer: socket.socket) -> None:
    """Send a request without the end of its body, until the server has seen it."""
    peer.sendall(post(b"hello", "Expect: 100-continue")[:-5])
    received_until(peer, b"HTTP/1.1 100 Continue\r\n\r\n")


def test_body_that_does_not_come_gives_way_in_its_turn_and_who_came_last_is_last() -> None:
    with served(most=3) as server, ExitStack() as stack:
        slow, slower, last = [stack.enter_context(server.connect()) for _ in range(3)]
        for peer in (slow, slower):
            begin_body(peer)
        last.sendall(post(b"first", close=False))
        received_until(last, b'"first"}')
        for gives_way in (slow, slower):
            server.hold(stack.enter_context(server.connect()))
            assert rest(gives_way) == b""
        last.sendall(post(b"second"))
        assert b'"second"' in rest(last)


def test_rest_of_a_body_is_waited_for_since_its_head_has_come() -> None:
    with served(most=2) as server, server.connect() as first:
        server.wait_for_connections(1)
        with server.connect() as second:
            server.wait_for_connections(2)
            begin_body(first)
            with server.connect() as third:
                server.hold(third)
                assert rest(second) == b""
                first.sendall(b"hello")
                assert b'"hello"' in rest(first)


def test_handshake_under_way_gives_way() -> None:
    pair = substitute("localhost", datetime.now(UTC))
    context = server_context(pair)
    with served(most=1, context=lambda: context) as server, server.connect() as hanging:
        server.wait_for_connections(1)
        trusting = ssl.create_default_context(cadata=pair.chain_pem.decode())
        trusting.check_hostname = False
        trusting.verify_mode = ssl.CERT_NONE
        with trusting.wrap_socket(server.connect()) as peer:
            peer.sendall(post(b"hello"))
            received_until(peer, b'"hello"}')
        assert rest(hanging) == b""


def test_address_at_its_bound_drives_nobody_out_but_its_own_longest_idle() -> None:
    with served(most=3, most_per_address=2) as server, ExitStack() as stack:
        other = stack.enter_context(server.connect("127.0.0.2"))
        server.wait_for_connections(1)
        oldest, older = [stack.enter_context(server.connect()) for _ in range(2)]
        server.wait_for_connections(3)
        newest = stack.enter_context(server.connect())
        assert rest(oldest) == b""
        for peer in (other, older, newest):
            peer.sendall(post(b"hello"))
            assert b'"hello"' in rest(peer)
