"""Lines to a real server on which one thing goes wrong, over UDP, over TCP or over both.

What stands between is a fake since no server can be told to do these things; what is behind it, and
what comes of it there, is real. Used by the tests of faults.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager

import dns.flags
import dns.message
import dns.opcode
from dns.rcode import Rcode

from gateway.dns.zones import Endpoint
from tests.integration.dns.servers import framed, opcode_of, tcp_server, udp_exchange, udp_server
from tests.lab.bind import Tsig
from tests.lab.ports import LOOPBACK, free_port

Ask = Callable[[bytes], Awaitable[bytes]]
"""Asks the real server."""

Way = Callable[[bytes, Ask], Awaitable[bytes | None]]
"""What becomes of a message: the answer that the asker gets, None for silence."""


async def straight(request: bytes, ask: Ask) -> bytes:
    """Nothing goes wrong."""
    return await ask(request)


async def swallowing(_request: bytes, _ask: Ask) -> None:
    """The server never has it."""


async def losing(request: bytes, ask: Ask) -> None:
    """The server has it, and its answer is lost."""
    await ask(request)


def delaying(seconds: float) -> Way:
    """The server has it late."""

    async def way(request: bytes, ask: Ask) -> bytes:
        await asyncio.sleep(seconds)
        return await ask(request)

    return way


def changing(change: Callable[[bytes], bytes | None]) -> Way:
    """The server has it, and answers to updates are changed."""

    async def way(request: bytes, ask: Ask) -> bytes | None:
        reply = await ask(request)
        return change(reply) if is_update(request) else reply

    return way


def answering(rcode: Rcode, key: Tsig | None, *, all_kinds: bool = False) -> Way:
    """The server never has the updates: this is said instead, signed if there is a key.

    `all_kinds`: nor the queries.
    """
    signing = None if key is None else key.key()

    async def way(request: bytes, ask: Ask) -> bytes | None:
        if not (all_kinds or is_update(request)):
            return await ask(request)
        message = dns.message.from_wire(request, keyring=signing or False)
        reply = dns.message.make_response(message)
        reply.set_rcode(rcode)
        if signing is None:
            reply.tsig, reply.want_tsig_sign = None, False
        return reply.to_wire()

    return way


def is_update(wire: bytes) -> bool:
    return opcode_of(wire) == dns.opcode.UPDATE


def spoilt(reply: bytes) -> bytes:
    """With a signature that is wrong."""
    return reply[:-20] + bytes(20)


def cut_short(reply: bytes) -> bytes:
    """With the TC bit."""
    return reply[:2] + bytes([reply[2] | dns.flags.TC >> 8]) + reply[3:]


def unsigned(rcode: Rcode) -> Callable[[bytes], bytes]:
    """An error in place of the answer, without a signature."""
    return lambda reply: reply[:3] + bytes([rcode]) + bytes(8)


@asynccontextmanager
async def line(
    server: tuple[str, int], *, udp: Way | None = straight, tcp: Way | None = straight
) -> AsyncIterator[Endpoint]:
    """A line to the server; where there is no way, nobody listens."""

    async def over_udp(wire: bytes, answer: Callable[[bytes], None]) -> None:
        assert udp is not None
        reply = await udp(wire, lambda request: udp_exchange(server, request))
        if reply is not None:
            answer(reply)

    async def over_tcp(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert tcp is not None
        request = (await framed(reader))[2:]
        reply = await tcp(request, lambda wire: _tcp_exchange(server, wire))
        if reply is None:
            await asyncio.Event().wait()
            return
        writer.write(len(reply).to_bytes(2, "big") + reply)
        await writer.drain()

    endpoint = Endpoint(LOOPBACK, free_port())
    async with AsyncExitStack() as stack:
        if udp is not None:
            await stack.enter_async_context(udp_server(over_udp, endpoint.port))
        if tcp is not None:
            await stack.enter_async_context(tcp_server(over_tcp, endpoint.port))
        yield endpoint


@asynccontextmanager
async def diverting(server: tuple[str, int]) -> AsyncIterator[Endpoint]:
    """A line whose answers over UDP come from another port than was asked."""
    loop = asyncio.get_running_loop()
    tasks: set[asyncio.Task[None]] = set()

    async def divert(wire: bytes, asker: tuple[str, int]) -> None:
        other.sendto(await udp_exchange(server, wire), asker)

    class Listener(asyncio.DatagramProtocol):
        def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
            task = loop.create_task(divert(data, addr))
            tasks.add(task)
            task.add_done_callback(tasks.discard)

    other, _ = await loop.create_datagram_endpoint(
        asyncio.DatagramProtocol, local_addr=(LOOPBACK, free_port())
    )
    async with line(server, udp=None) as endpoint:
        listening, _ = await loop.create_datagram_endpoint(
            Listener, local_addr=(endpoint.host, endpoint.port)
        )
        try:
            yield endpoint
        finally:
            listening.close()
            other.close()


async def _tcp_exchange(server: tuple[str, int], wire: bytes) -> bytes:
    reader, writer = await asyncio.open_connection(*server)
    try:
        writer.write(len(wire).to_bytes(2, "big") + wire)
        return (await framed(reader))[2:]
    finally:
        writer.close()
        await writer.wait_closed()
