"""The gateway's HTTP server with a small application, in a thread, and raw sockets to it.

For what needs bounds of its own, such as a head that has to come within a moment: the rest is asked
of a whole gateway.
"""

import asyncio
import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import uvloop
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from gateway.http.listener.admission import Admission
from gateway.http.listener.cycle import WHOLE_ANSWER
from gateway.http.listener.patience import DEFAULT_PATIENCE, Patience
from gateway.http.listener.server import Server
from tests.lab.ports import LOOPBACK, free_port
from tests.lab.process import wait_until

LIMIT_SECONDS = 30.0
LARGE_BYTES = 8 << 20


async def _echo(request: Request) -> Response:
    body = await request.body()
    return JSONResponse({"method": request.method, "body": body.decode("latin-1")})


async def _large(_: Request) -> Response:
    return Response(b"x" * LARGE_BYTES)


async def _refuse(_: Request) -> Response:
    return Response("refused", 413, {"Connection": "close"})


class Told:
    """Answers `told`, whole at once or in parts; as the last on its connection if it is to."""

    def __init__(self, *, is_whole: bool) -> None:
        self._is_whole = is_whole

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = b"x" * LARGE_BYTES if scope["query_string"] == b"large" else b"told"
        headers = [(b"x-a", b"b"), (b"content-length", b"%d" % len(body))]
        if scope["query_string"] == b"last":
            headers.append((b"connection", b"close"))
        start = {"type": "http.response.start", "status": 201, "headers": headers}
        if self._is_whole:
            await send({**start, "type": WHOLE_ANSWER, "body": body})
        else:
            await send(start)
            await send({"type": "http.response.body", "body": body})


class Held:
    """What calls of `/held` wait for; `number` says how many have come."""

    def __init__(self) -> None:
        self.number = 0
        self.free = threading.Event()

    async def answer(self, request: Request) -> Response:
        await request.body()
        self.number += 1
        await asyncio.to_thread(self.free.wait, LIMIT_SECONDS)
        return Response("held")


def _app(held: Held) -> Starlette:
    return Starlette(
        routes=[
            Route("/echo", _echo, methods=["GET", "POST"]),
            Route("/held", held.answer, methods=["POST"]),
            Route("/large", _large, methods=["GET"]),
            Route("/parts", Told(is_whole=False), methods=["POST", "HEAD"]),
            Route("/refused", _refuse, methods=["POST"]),
            Route("/whole", Told(is_whole=True), methods=["POST", "HEAD"]),
            Route("/unread", lambda _: Response("unread"), methods=["POST"]),
        ]
    )


class Served:
    """A running server; `connections` says how many it has."""

    def __init__(self, port: int, server: Server, admission: Admission, held: Held) -> None:
        self.port = port
        self.held = held
        self.server = server
        self.admission = admission

    @property
    def connections(self) -> int:
        return self.admission.total

    def connect(self, source: str = LOOPBACK) -> socket.socket:
        return socket.create_connection((LOOPBACK, self.port), LIMIT_SECONDS, (source, 0))

    def exchanged(self, *pieces: bytes) -> bytes:
        """Send these pieces, one after another, and read until the server closes."""
        with self.connect() as peer:
            for piece in pieces:
                peer.sendall(piece)
            return rest(peer)

    def answered(self, *pieces: bytes) -> list[tuple[int, str]]:
        """The statuses and bodies of the answers to what is sent, until the server closes."""
        return answers(self.exchanged(*pieces))

    def hold(self, peer: socket.socket, before: bytes = b"", behind: bytes = b"") -> None:
        """Have a call under way on a connection, until `held.free` is set."""
        there = self.held.number
        peer.sendall(before + post(b"", path="/held", close=not behind) + behind)
        wait_until(lambda: self.held.number > there, "the call is under way")

    def wait_for_connections(self, number: int) -> None:
        wait_until(lambda: self.connections == number, f"{number} connections")


@contextmanager
def served(
    patience: Patience = DEFAULT_PATIENCE,
    *,
    most: int = 1000,
    most_per_address: int = 1000,
    context: Callable[[], ssl.SSLContext | None] = lambda: None,
) -> Iterator[Served]:
    """Serve on a free port until the block ends."""
    admission, held = Admission(most, most_per_address), Held()
    server = Server(
        _app(held),
        headers=[("Cache-Control", "no-store")],
        grace_seconds=1,
        admission=admission,
        context=context,
        patience=patience,
    )
    with closing(socket.socket()) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((LOOPBACK, free_port()))
        listener.listen(256)
        thread = threading.Thread(target=lambda: uvloop.run(server.serve([listener])), daemon=True)
        thread.start()
        wait_until(lambda: server.started, "the server has started")
        try:
            yield Served(listener.getsockname()[1], server, admission, held)
        finally:
            held.free.set()
            server.should_exit = True
            thread.join(LIMIT_SECONDS)
            assert not thread.is_alive()


def presented(port: int, context: ssl.SSLContext, hostname: str = "localhost") -> bytes:
    """The certificate that is presented, once the handshake has succeeded (DER)."""
    with (
        socket.create_connection((LOOPBACK, port), timeout=LIMIT_SECONDS) as peer,
        context.wrap_socket(peer, server_hostname=hostname) as tls,
    ):
        certificate = tls.getpeercert(binary_form=True)
    assert certificate is not None
    return certificate


def rest(peer: socket.socket) -> bytes:
    """All that comes until the other side closes."""
    received = b""
    try:
        while chunk := peer.recv(65_536):
            received += chunk
    except ConnectionResetError:
        pass
    return received


def received_until(peer: socket.socket, ending: bytes) -> bytes:
    """What comes until these bytes are its end, on a connection that goes on."""
    received = b""
    while not received.endswith(ending):
        chunk = peer.recv(65_536)
        assert chunk, received
        received += chunk
    return received


def answers(received: bytes) -> list[tuple[int, str]]:
    """The answers in what was received, each with its Content-Length."""
    found = []
    while received:
        head, _, received = received.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        status = int(lines[0].split()[1])
        if status == 100:
            continue
        fields = dict(line.lower().split(": ", 1) for line in lines[1:])
        length = int(fields["content-length"])
        found.append((status, received[:length].decode("latin-1")))
        received = received[length:]
    return found


def post(body: bytes, *headers: str, path: str = "/echo", close: bool = True) -> bytes:
    """A POST of HTTP/1.1 with its length; the last one on its connection unless told otherwise."""
    lines = [f"POST {path} HTTP/1.1", "Host: a", f"Content-Length: {len(body)}", *headers]
    if close:
        lines.append("Connection: close")
    return "\r\n".join([*lines, "", ""]).encode() + body


def echoed(answer: tuple[int, str]) -> str:
    """The body that an answer of `/echo` repeats."""
    status, text = answer
    assert status == 200, answer
    body: Any = json.loads(text)["body"]
    assert isinstance(body, str)
    return body
