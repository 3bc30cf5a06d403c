"""Servers and lines that misbehave: what a zone's primary may be hidden behind.

Each listens on loopback and is closed by its context manager.
"""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from typing import cast

import dns.message
import dns.opcode
from dns.rcode import Rcode

from gateway.dns.exchange import Exchange, Over
from gateway.dns.reading import Reply
from gateway.dns.rendering import Request
from gateway.dns.replies import Peer
from gateway.dns.update import Update
from gateway.dns.zones import Endpoint
from tests.lab.bind import Tsig
from tests.lab.ports import LOOPBACK, free_port

_UPDATE = dns.opcode.UPDATE


def opcode_of(wire: bytes) -> int:
    return wire[2] >> 3 & 0xF


class Meddling(Exchange):
    """Calls `meddle(n)` just before the n-th update with changes is sent, counted from 1.

    What is read before and written after is between the gateway and the real server.
    """

    def __init__(self, meddle: Callable[[int], None]) -> None:
        super().__init__()
        self._meddle = meddle
        self.updates = 0
        self.asked: list[str] = []

    async def ask(self, peer: Peer, request: Request, *, over: Over, deadline: float) -> Reply:
        is_update = isinstance(request, Update)
        if isinstance(request, Update) and request.changes:
            self.updates += 1
            self._meddle(self.updates)
        self.asked.append(f"{over.value} {'update' if is_update else 'query'}")
        return await super().ask(peer, request, over=over, deadline=deadline)


class _Listener(asyncio.DatagramProtocol):
    """Passes what arrives to a coroutine, with a way to answer."""

    def __init__(self, serve: Callable[[bytes, Callable[[bytes], None]], Awaitable[None]]) -> None:
        self._serve = serve
        self._tasks: set[asyncio.Task[None]] = set()
        self._transport: asyncio.DatagramTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        def answer(wire: bytes) -> None:
            assert self._transport is not None
            self._transport.sendto(wire, addr)

        async def serve() -> None:
            await self._serve(data, answer)

        task = asyncio.get_running_loop().create_task(serve())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


@asynccontextmanager
async def udp_server(
    serve: Callable[[bytes, Callable[[bytes], None]], Awaitable[None]],
    port: int | None = None,
) -> AsyncIterator[Endpoint]:
    """A UDP server; nobody listens on TCP at its port."""
    endpoint = Endpoint(LOOPBACK, port or free_port())
    transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(
        lambda: _Listener(serve), local_addr=(endpoint.host, endpoint.port)
    )
    try:
        yield endpoint
    finally:
        transport.close()


async def udp_exchange(server: tuple[str, int], wire: bytes) -> bytes:
    """One datagram to a real server and its answer."""
    arrived: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    class Receiver(asyncio.DatagramProtocol):
        def datagram_received(self, data: bytes, addr: object) -> None:
            if not arrived.done():
                arrived.set_result(data)

    transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(
        Receiver, remote_addr=server
    )
    try:
        transport.sendto(wire)
        return await arrived
    finally:
        transport.close()


@asynccontextmanager
async def lossy_line(
    server: tuple[str, int], change: Callable[[int, bytes], bytes | None], *, with_tcp: bool
) -> AsyncIterator[Endpoint]:
    """A line to a real server: `change(n, reply)` is what becomes of the n-th update's reply.

    None loses it. Queries pass over UDP, and all passes over TCP when `with_tcp`.
    """
    updates = 0

    async def serve(wire: bytes, answer: Callable[[bytes], None]) -> None:
        nonlocal updates
        reply: bytes | None = await udp_exchange(server, wire)
        if opcode_of(wire) == _UPDATE and reply is not None:
            updates += 1
            reply = change(updates, reply)
        if reply is not None:
            answer(reply)

    async with udp_server(serve) as endpoint:
        if not with_tcp:
            yield endpoint
            return
        async with tcp_line(server, endpoint.port):
            yield endpoint


@asynccontextmanager
async def signing_server(
    server: tuple[str, int], tsig: Tsig, judge: Callable[[dns.message.Message], Rcode | None]
) -> AsyncIterator[Endpoint]:
    """Answers with `judge(request)`, properly signed; what that leaves out, the real server does.

    It never sets AA.
    """
    key = tsig.key()

    async def serve(wire: bytes, answer: Callable[[bytes], None]) -> None:
        request = dns.message.from_wire(wire, keyring=key)
        rcode = judge(request)
        if rcode is None:
            answer(await udp_exchange(server, wire))
            return
        reply = dns.message.make_response(request)
        reply.set_rcode(rcode)
        answer(reply.to_wire())

    async with udp_server(serve) as endpoint:
        yield endpoint


def refusal(request: dns.message.Message, rcode: Rcode = Rcode.REFUSED) -> dns.message.Message:
    """An answer of nothing but an rcode; signed as the request was, once it is sent."""
    reply = dns.message.make_response(request)
    reply.set_rcode(rcode)
    return reply


@asynccontextmanager
async def withholding_server(
    server: tuple[str, int],
    tsig: Tsig,
    judge: Callable[[dns.message.Message], dns.message.Message | None],
) -> AsyncIterator[Endpoint]:
    """A real server that does not answer everything: `judge(request)`, where that is not None.

    A fake for what BIND can't be configured to do: refuse queries for one type only. It answers
    properly signed, over UDP and TCP; all else the real server answers.
    """
    key = tsig.key()

    def own_answer(wire: bytes) -> bytes | None:
        reply = judge(dns.message.from_wire(wire, keyring=key))
        return None if reply is None else reply.to_wire()

    async def serve(wire: bytes, answer: Callable[[bytes], None]) -> None:
        answer(own_answer(wire) or await udp_exchange(server, wire))

    async def serve_tcp(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        message = await framed(reader)
        own = own_answer(message[2:])
        writer.write(
            await tcp_exchange(server, message)
            if own is None
            else len(own).to_bytes(2, "big") + own
        )
        await writer.drain()

    async with udp_server(serve) as endpoint, tcp_server(serve_tcp, endpoint.port):
        yield endpoint


@asynccontextmanager
async def tcp_server(
    serve: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]], port: int
) -> AsyncIterator[None]:
    """A TCP server that ends with all of its connections."""
    serving: set[asyncio.Task[None]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        serving.add(task)
        try:
            await serve(reader, writer)
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    server = await asyncio.start_server(connected, LOOPBACK, port)
    try:
        yield
    finally:
        server.close()
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)


@asynccontextmanager
async def tcp_line(server: tuple[str, int], port: int) -> AsyncIterator[None]:
    """Passes each TCP message on to a real server."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await tcp_exchange(server, await framed(reader)))
        await writer.drain()

    async with tcp_server(serve, port):
        yield


async def tcp_exchange(server: tuple[str, int], message: bytes) -> bytes:
    """One message to a real server and its answer, each with its length before it."""
    reader, writer = await asyncio.open_connection(*server)
    try:
        writer.write(message)
        return await framed(reader)
    finally:
        writer.close()
        await writer.wait_closed()


async def framed(reader: asyncio.StreamReader) -> bytes:
    """One message with its length before it."""
    length = await reader.readexactly(2)
    return length + await reader.readexactly(int.from_bytes(length, "big"))


@contextmanager
def full_backlog(port: int) -> Iterator[None]:
    """A TCP port whose queue is full: the kernel drops whoever wants to connect, without a word."""
    with ExitStack() as sockets:
        listener = sockets.enter_context(socket.socket())
        listener.bind((LOOPBACK, port))
        listener.listen(0)
        for _ in range(4):
            waiting = sockets.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex((LOOPBACK, port))
        yield


@asynccontextmanager
async def black_hole() -> AsyncIterator[Endpoint]:
    """Takes everything, over UDP and TCP, and never answers."""

    async def swallow(_wire: bytes, _answer: Callable[[bytes], None]) -> None:
        return None

    async def hold(_reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    async with udp_server(swallow) as endpoint, tcp_server(hold, endpoint.port):
        yield endpoint
