"""One HTTP exchange with a CA over a kept connection, whatever shape the answer has.

The server is scripted: no real CA sends most of these shapes.
"""

import asyncio
import socket
import threading
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field

import pytest

from gateway.certificates.authority.answers import MAX_HEAD_BYTES, Cut, NoAnswer, TooLong
from gateway.certificates.authority.connections import Connections, Request
from gateway.certificates.authority.network import _tls_context
from gateway.certificates.authority.replies import Reply
from tests.lab.ports import LOOPBACK
from tests.lab.process import wait_until

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@dataclass
class Server:
    """Answers each request with the next of `pieces`, each piece in a segment of its own."""

    listener: socket.socket
    answers: list[Sequence[bytes]]
    connections: int = 0
    heads: list[bytes] = field(default_factory=list)
    is_closed: bool = False

    def __post_init__(self) -> None:
        self.place = "{}:{}".format(*self.listener.getsockname())

    @property
    def url(self) -> str:
        return f"http://{self.place}/path"

    def serve(self) -> None:
        while self.answers:
            connection, _ = self.listener.accept()
            self.connections += 1
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with connection:
                while self.answers and (head := connection.recv(65536)):
                    self.heads.append(head)
                    pieces = self.answers.pop(0)
                    for piece in pieces:
                        if piece == b"":
                            break
                        connection.sendall(piece)
                    else:
                        continue
                    break
            self.is_closed = True


@contextmanager
def serving(*answers: Sequence[bytes]) -> Iterator[Server]:
    with socket.create_server((LOOPBACK, 0)) as listener:
        server = Server(listener, list(answers))
        thread = threading.Thread(target=server.serve)
        thread.start()
        yield server
        thread.join()


@pytest.fixture
async def connections() -> AsyncIterator[Connections]:
    made = Connections(_tls_context(None), most=2, monotonic=time.monotonic)
    yield made
    made.close()


async def asked(connections: Connections, server: Server, method: str = "GET") -> Reply:
    request = Request(method, server.url, {}, None)
    return await connections.exchange(request, time.monotonic() + 30)


def in_bytes(answer: bytes) -> list[bytes]:
    return [answer[at : at + 1] for at in range(len(answer))]


CHUNKED = (
    b"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\nX-One: 1\r\n\r\n"
    b"3\r\nabc\r\n4;ext=1\r\ndefg\r\n0\r\nX-One: trailer\r\n\r\n"
)
KEPT = {
    "of a length": (OK, b"ok"),
    "in chunks": (CHUNKED, b"abcdefg"),
    "with the offer of another protocol": (
        OK.replace(b"OK", b"OK\r\nConnection: upgrade\r\nUpgrade: h2", 1),
        b"ok",
    ),
    "without content": (b"HTTP/1.1 204 No Content\r\nX-One: 1\r\n\r\n", b""),
    "after others that announce it": (
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nX-One: 0\r\n\r\n" + OK,
        b"ok",
    ),
}


@pytest.mark.parametrize(("answer", "body"), KEPT.values(), ids=KEPT)
@pytest.mark.parametrize("is_dripping", [False, True])
async def test_answer_is_read_whole_and_its_connection_used_again(
    connections: Connections, answer: bytes, body: bytes, *, is_dripping: bool
) -> None:
    with serving(in_bytes(answer) if is_dripping else [answer], [OK]) as server:
        reply = await asked(connections, server)
        assert (await asked(connections, server)).body == b"ok"
    assert reply.body == body
    assert reply.headers.get("x-one", "1") == "1"
    assert server.connections == 1


async def test_head_has_no_body_whatever_its_headers_say(connections: Connections) -> None:
    with serving([b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\nA: b\r\n\r\n"], [OK]) as server:
        reply = await asked(connections, server, "HEAD")
        assert (await asked(connections, server)).body == b"ok"
    assert (reply.body, reply.headers["a"]) == (b"", "b")
    assert server.connections == 1


CLOSED = {
    "it says so": [OK.replace(b"OK", b"OK\r\nConnection: close", 1)],
    "it is of HTTP/1.0": [OK.replace(b"1.1", b"1.0")],
    "it brings more than was asked for": [OK + OK.replace(b"ok", b"no")],
    "its end is the connection's": [b"HTTP/1.1 200 OK\r\n\r\nok", b""],
}


@pytest.mark.parametrize("pieces", CLOSED.values(), ids=CLOSED)
async def test_connection_is_not_used_again_when(
    connections: Connections, pieces: list[bytes]
) -> None:
    with serving([*pieces, b""], [OK]) as server:
        assert (await asked(connections, server)).body == b"ok"
        assert (await asked(connections, server)).body == b"ok"
    assert server.connections == 2


async def test_connection_that_was_closed_when_idle_is_not_used_again(
    connections: Connections,
) -> None:
    with serving([OK, b""], [OK]) as server:
        await asked(connections, server)
        wait_until(lambda: server.is_closed, "it is closed")
        assert (await asked(connections, server)).body == b"ok"
    assert server.connections == 2


CUTS = {
    "nothing": [b""],
    "half of a head": [b"HTTP/1.1 200 OK\r\nContent-Le", b""],
    "half of a body": [OK[:-1], b""],
    "half of a chunk": [CHUNKED[:-30], b""],
    "no HTTP": [b"SSH-2.0-OpenSSH_9.2\r\n", b""],
    "two lengths": [OK.replace(b"OK", b"OK\r\nContent-Length: 1", 1), b""],
    "only what announces an answer": [b"HTTP/1.1 100 Continue\r\n\r\n", b""],
    "another protocol": [
        b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
        b"",
    ],
}


@pytest.mark.parametrize("pieces", CUTS.values(), ids=CUTS)
async def test_answer_is_cut_off_when_there_came(
    connections: Connections, pieces: list[bytes]
) -> None:
    with serving(pieces) as server, pytest.raises(Cut):
        await asked(connections, server)


async def test_head_that_does_not_end_is_too_long(connections: Connections) -> None:
    endless = b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * (MAX_HEAD_BYTES // 6 + 1)
    with serving([endless, b""]) as server, pytest.raises(TooLong):
        await asked(connections, server)


async def test_request_has_one_line_of_each_kind_whatever_the_url_holds(
    connections: Connections,
) -> None:
    with serving([OK]) as server:
        url = f"{server.url.replace('http://', 'http://user:word@')}/ä b%20?c=\u00a0d e#part"
        await connections.exchange(Request("POST", url, {"A": "b"}, b"{}"), time.monotonic() + 30)
    assert server.heads == [
        b"POST /path/%C3%A4%20b%20?c=%C2%A0d%20e HTTP/1.1\r\n"
        + f"Host: {server.place}\r\nA: b\r\nContent-Length: 2\r\n\r\n{{}}".encode()
    ]


@pytest.mark.parametrize("url", ["http://[::1", "http://a:99999/", f"http://{'a' * 64}.test/"])
async def test_url_that_names_no_server_is_not_asked(connections: Connections, url: str) -> None:
    with pytest.raises(NoAnswer):
        await connections.exchange(Request("GET", url, {}), time.monotonic() + 30)


@asynccontextmanager
async def unanswered(
    connections: Connections, *, may_be_left: bool = False
) -> AsyncIterator[tuple[asyncio.Task[Reply], asyncio.StreamWriter]]:
    """A request that has come to a server, which has not answered yet."""
    came: asyncio.Queue[asyncio.StreamWriter] = asyncio.Queue()

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        came.put_nowait(writer)

    server = await asyncio.start_server(take, LOOPBACK, 0)
    url = "http://{}:{}/".format(*server.sockets[0].getsockname())
    exchange = connections.exchange(
        Request("GET", url, {}), time.monotonic() + 30, may_be_left=may_be_left
    )
    asking = asyncio.create_task(exchange)
    writer = await came.get()
    yield asking, writer
    writer.close()
    server.close()


async def cancelled(task: asyncio.Task[Reply], times: int = 1) -> None:
    """Cancel a task, and give it every opportunity to end."""
    for _ in range(times):
        task.cancel()
        for _ in range(5):
            await asyncio.sleep(0)


async def test_cancelled_caller_gets_the_answer_to_what_was_sent(connections: Connections) -> None:
    async with unanswered(connections) as (asking, writer):
        await cancelled(asking, times=3)
        assert not asking.done()
        writer.write(OK)
        assert (await asking).body == b"ok"
    assert asking.cancelling() == 3


async def test_time_limit_of_a_caller_does_not_throw_an_answer_away(
    connections: Connections,
) -> None:
    async with unanswered(connections) as (asking, writer):

        async def bounded() -> Reply:
            async with asyncio.timeout(0.01):
                return await asking

        waiting = asyncio.create_task(bounded())
        await asyncio.wait({waiting}, timeout=0.1)
        assert not asking.done()
        writer.write(OK)
        assert (await waiting).body == b"ok"


async def test_cancelled_caller_is_told_that_there_is_no_answer(connections: Connections) -> None:
    async with unanswered(connections) as (asking, writer):
        await cancelled(asking)
        writer.close()
        with pytest.raises(Cut):
            await asking


async def test_answer_that_may_be_left_is_left_at_once(connections: Connections) -> None:
    async with unanswered(connections, may_be_left=True) as (asking, _):
        await cancelled(asking)
        assert asking.cancelled()


async def test_nobody_who_was_cancelled_waits_any_longer_once_all_is_closed(
    connections: Connections,
) -> None:
    async with unanswered(connections) as (asking, _):
        await cancelled(asking)
        assert not asking.done()
        connections.close()
        with pytest.raises(asyncio.CancelledError):
            await asking


async def test_caller_that_was_not_cancelled_gets_its_answer_though_all_is_closed(
    connections: Connections,
) -> None:
    async with unanswered(connections) as (asking, writer):
        connections.close()
        writer.write(OK)
        assert (await asking).body == b"ok"
