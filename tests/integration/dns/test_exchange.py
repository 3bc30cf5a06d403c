"""Which answers an exchange believes: servers that lie, cut short or answer from elsewhere."""

import asyncio
import errno
import socket
from collections.abc import Callable

import dns.message
import dns.rrset
import pytest

from gateway.dns.errors import (
    NoReply,
    NoRoute,
    OutOfFiles,
    ReplyInvalid,
    ReplyTruncated,
    Unreachable,
)
from gateway.dns.exchange import Exchange, Over
from gateway.dns.lookups import Lookups
from gateway.dns.names import to_name
from gateway.dns.questions import make_query
from gateway.dns.records import TXT
from gateway.dns.replies import Peer, clock_ahead
from gateway.dns.zones import Endpoint, Zone
from tests.integration.dns.conftest import soon
from tests.integration.dns.servers import framed, tcp_server, udp_server
from tests.lab.ports import LOOPBACK, free_port

NAME = to_name("relay.example.test")


def true_reply(query: bytes, text: str = "true") -> bytes:
    reply = dns.message.make_response(dns.message.from_wire(query))
    reply.answer.append(dns.rrset.from_text(NAME, 60, "IN", "TXT", text))
    return reply.to_wire()


async def ask(endpoint: Endpoint, over: Over = Over.UDP, *, seconds: float = 10.0) -> str:
    deadline = asyncio.get_running_loop().time() + seconds
    peer = Peer(endpoint, "example.test")
    reply = await Exchange().ask(peer, make_query(NAME, TXT), over=over, deadline=deadline)
    return reply.answer[0].rrset.rdatas[0].to_text()


def with_other_id(wire: bytes) -> bytes:
    return bytes([wire[0] ^ 1]) + wire[1:]


@pytest.mark.parametrize(
    "forge",
    [
        lambda query: b"",
        lambda query: b"garbage",
        lambda query: query,
        lambda query: with_other_id(true_reply(query, "forged")),
        lambda query: query[:2] + b"\x80" + b"garbage that is long enough",
    ],
    ids=["empty", "short", "echo", "other id", "unreadable"],
)
async def test_datagrams_that_prove_nothing_are_waited_past(
    forge: Callable[[bytes], bytes],
) -> None:
    async def serve(wire: bytes, answer: Callable[[bytes], None]) -> None:
        answer(forge(wire))
        answer(true_reply(wire))

    async with udp_server(serve) as endpoint:
        assert await ask(endpoint) == '"true"'


async def test_answer_from_another_address_is_never_seen() -> None:
    """The right answer, sent from another port of the same machine."""
    loop = asyncio.get_running_loop()

    class Diverting(asyncio.DatagramProtocol):
        def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
            other.sendto(true_reply(data), addr)
            diverted.set()

    diverted = asyncio.Event()
    other, _ = await loop.create_datagram_endpoint(
        asyncio.DatagramProtocol, local_addr=(LOOPBACK, free_port())
    )
    endpoint = Endpoint(LOOPBACK, free_port())
    server, _ = await loop.create_datagram_endpoint(
        Diverting, local_addr=(endpoint.host, endpoint.port)
    )
    with pytest.raises(NoReply):
        await ask(endpoint, seconds=0.3)
    assert diverted.is_set()
    server.close()
    other.close()


async def test_unreadable_reply_is_told_when_nothing_better_comes() -> None:
    async def serve(wire: bytes, answer: Callable[[bytes], None]) -> None:
        answer(wire[:2] + b"\x80" + b"garbage that is long enough")

    async with udp_server(serve) as endpoint:
        with pytest.raises(ReplyInvalid, match="can't be read"):
            await ask(endpoint, seconds=0.3)


async def test_truncated_reply_is_told_at_once() -> None:
    async def serve(wire: bytes, answer: Callable[[bytes], None]) -> None:
        reply = true_reply(wire)
        answer(reply[:2] + bytes([reply[2] | 0x02]) + reply[3:])

    async with udp_server(serve) as endpoint:
        with pytest.raises(ReplyTruncated):
            await ask(endpoint)


@pytest.mark.parametrize("over", list(Over))
async def test_process_without_files_left_calls_no_server_silent(
    zone: Zone, monkeypatch: pytest.MonkeyPatch, over: Over
) -> None:
    """A fake: no test may use up what all of them open."""

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    exchange, query = Exchange(), make_query(to_name("example.test"), TXT)
    with monkeypatch.context() as patched:
        patched.setattr(socket, "socket", refuse)
        with pytest.raises(OutOfFiles, match="as many files open as it may"):
            await exchange.ask(Peer.primary_of(zone), query, over=over, deadline=soon())
    assert not exchange.is_silent(zone.primary)


@pytest.mark.parametrize("over", Over)
async def test_closed_port_is_unreachable_at_once(over: Over) -> None:
    with pytest.raises(Unreachable, match="connection refused"):
        await ask(Endpoint(LOOPBACK, free_port()), over)


async def test_address_that_no_route_leads_to_is_told_apart() -> None:
    """TCP to a multicast address: the kernel says ENETUNREACH, and sends nothing."""
    with pytest.raises(NoRoute, match="ENETUNREACH"):
        await ask(Endpoint("224.0.0.1", free_port()), Over.TCP)


async def test_address_that_may_not_be_sent_to_is_unreachable() -> None:
    with pytest.raises(Unreachable, match="EACCES"):
        await ask(Endpoint("255.255.255.255", free_port()))


@pytest.mark.parametrize("sent", [b"", b"\x00", b"\x00\x05abc"], ids=["nothing", "half", "cut"])
async def test_tcp_connection_closed_early_is_no_reply(sent: bytes) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(2)
        writer.write(sent)

    port = free_port()
    async with tcp_server(serve, port):
        with pytest.raises(NoReply, match="closed"):
            await ask(Endpoint(LOOPBACK, port), Over.TCP)


async def test_tcp_reply_with_another_id_is_invalid() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        reply = with_other_id(true_reply((await framed(reader))[2:]))
        writer.write(len(reply).to_bytes(2, "big") + reply)

    port = free_port()
    async with tcp_server(serve, port):
        with pytest.raises(ReplyInvalid, match="not a reply"):
            await ask(Endpoint(LOOPBACK, port), Over.TCP)


async def test_next_address_of_a_server_name_is_tried(zone: Zone) -> None:
    dead, alive = "127.0.0.9", zone.primary.host
    exchange = Exchange(lookups=Lookups(lambda _: [dead, alive]))
    peer = Peer(Endpoint("primary.test", zone.primary.port), zone.name, zone.key)
    query = make_query(zone.apex, TXT)
    reply = await exchange.ask(peer, query, over=Over.UDP, deadline=soon())
    assert clock_ahead(reply) is not None
