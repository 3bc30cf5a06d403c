"""Whole zones read by AXFR from real servers, and from none that can be believed."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path

import dns.message
import dns.name
import dns.rrset
import pytest

from gateway.dns.errors import (
    NoReply,
    ReplyInvalid,
    ServerFailed,
    ServerRefused,
    TsigRejected,
    Unreachable,
)
from gateway.dns.exchange import Exchange
from gateway.dns.transfer import Bounds, Challenge, read_zone
from gateway.dns.zones import Endpoint, TsigKey, Zone
from tests.integration.dns.conftest import MARKERS, V4, owner_of, zone_at
from tests.integration.dns.lone_bind import LoneBind, lone_bind
from tests.integration.dns.servers import black_hole, framed, full_backlog, tcp_server
from tests.lab.bind import Tsig
from tests.lab.ports import LOOPBACK, free_port

NAME = "whole.test"
MANY = 3_000
OWNER = owner_of(f"relay.{NAME}")
RECORDS = f"""
relay A {V4.value}
relay TXT "{MARKERS.sign(OWNER, V4.type, V4.value)}"
RELAY2 TXT "gateway-owner=nonsense" "and more"
relay2 TXT "gateway-owner=nonsense"
spf TXT "v=spf1 -all"
_acme-challenge.relay TXT "left"
_acme-challenge.relay TXT "over"
_acme-challenge.spf CNAME relay
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LoneBind]:
    many = "\n".join(f"n{number} TXT {'x' * 200}" for number in range(MANY))
    zones = {NAME: RECORDS + many}
    options = 'allow-transfer { key "gateway"; };'
    with lone_bind(tmp_path_factory.mktemp("transfer"), zones, options=options) as server:
        yield server


@pytest.fixture
def zone(server: LoneBind) -> Zone:
    return zone_at(server.primary, server.tsig, NAME)


async def test_zone_of_many_messages_is_read_whole(zone: Zone) -> None:
    contents = await read_zone(Exchange(), zone)
    assert contents.records > MANY
    assert contents.marked == (f"relay.{NAME}", f"relay2.{NAME}")
    name = f"_acme-challenge.relay.{NAME}"
    assert contents.challenges == (Challenge(name, "left"), Challenge(name, "over"))


async def test_key_that_may_not_transfer_is_refused(tmp_path: Path) -> None:
    with (
        lone_bind(tmp_path, {NAME: RECORDS}, options="allow-transfer { none; };") as server,
        pytest.raises(ServerRefused, match="REFUSED to a transfer"),
    ):
        await read_zone(Exchange(), zone_at(server.primary, server.tsig, NAME))


async def test_zone_that_the_server_does_not_have_is_a_fault(server: LoneBind) -> None:
    with pytest.raises(ServerRefused, match="NOTAUTH to a transfer"):
        await read_zone(Exchange(), zone_at(server.primary, server.tsig, "elsewhere.test"))


async def test_wrong_key_is_told_apart(zone: Zone) -> None:
    with pytest.raises(TsigRejected, match="BADSIG"):
        await read_zone(Exchange(), replace(zone, key=TsigKey("gateway", "hmac-sha256", b"w" * 32)))


async def test_transfer_larger_than_its_bound_is_cut(zone: Zone) -> None:
    with pytest.raises(ServerFailed, match="more than 1000 bytes"):
        await read_zone(Exchange(), zone, Bounds(wire_bytes=1_000))


async def test_next_primary_is_asked_when_nobody_listens_at_the_first(zone: Zone) -> None:
    away = Endpoint(LOOPBACK, free_port())
    contents = await read_zone(Exchange(), replace(zone, primary=away, standbys=(zone.primary,)))
    assert contents.marked


async def test_nobody_listening_is_unreachable(zone: Zone) -> None:
    with pytest.raises(Unreachable, match="connection refused"):
        await read_zone(Exchange(), replace(zone, primary=Endpoint(LOOPBACK, free_port())))


async def test_silent_server_is_given_up(zone: Zone) -> None:
    async with black_hole() as endpoint:
        with pytest.raises(NoReply, match="fell silent"):
            await read_zone(Exchange(), replace(zone, primary=endpoint), Bounds(silent_seconds=0.2))


async def test_transfer_that_takes_too_long_is_given_up(zone: Zone) -> None:
    async with black_hole() as endpoint:
        with pytest.raises(NoReply, match=r"did not end its transfer in 0\.2 s"):
            await read_zone(Exchange(), replace(zone, primary=endpoint), Bounds(seconds=0.2))


@asynccontextmanager
async def line_to(
    server: LoneBind, messages: int, change: Callable[[bytes], bytes] = lambda wire: wire
) -> AsyncIterator[Endpoint]:
    """A line that passes so many messages of an answer on, the last one changed, and ends."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection(*server.primary)
        try:
            far_writer.write(await framed(reader))
            for number in range(1, messages + 1):
                wire = await framed(far_reader)
                writer.write(change(wire) if number == messages else wire)
            await writer.drain()
        finally:
            far_writer.close()
            with suppress(OSError):
                await far_writer.wait_closed()

    port = free_port()
    async with tcp_server(serve, port):
        yield Endpoint(LOOPBACK, port)


@pytest.mark.parametrize("messages", [0, 1], ids=["at once", "after the first message"])
async def test_connection_that_ends_before_the_zone_does_proves_nothing(
    zone: Zone, server: LoneBind, messages: int
) -> None:
    async with line_to(server, messages) as endpoint:
        with pytest.raises(NoReply, match="closed the connection"):
            await read_zone(Exchange(), replace(zone, primary=endpoint))


async def test_message_altered_on_the_way_is_not_believed(zone: Zone, server: LoneBind) -> None:
    """The second of many, in which one letter is another."""
    async with line_to(server, 2, lambda wire: wire.replace(b"xxxx", b"xxyx", 1)) as endpoint:
        with pytest.raises(ReplyInvalid, match="can't be believed"):
            await read_zone(Exchange(), replace(zone, primary=endpoint))


Sections = list[str]
SOA = f"{NAME}. 300 IN SOA ns1.{NAME}. hostmaster.{NAME}. 1 3600 600 86400 60"
FIRST, MORE, LAST = [SOA], [f"a.{NAME}. 300 IN TXT gateway-owner=x"], [SOA]


@asynccontextmanager
async def made_up(
    tsig: Tsig, *messages: tuple[Sections, bool], asked: str = NAME
) -> AsyncIterator[Endpoint]:
    """A fake that answers in messages of its own, each signed or not: no real server does that."""
    key = tsig.key()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = dns.message.from_wire((await framed(reader))[2:], keyring=key)
        context = None
        for lines, is_signed in messages:
            reply = dns.message.make_response(request)
            reply.question[0].name = dns.name.from_text(asked)
            reply.answer = [_rrset(line) for line in lines]
            if not is_signed:
                reply.tsig, reply.keyring = None, None
            wire = reply.to_wire(multi=True, tsig_ctx=context)
            context = reply.tsig_ctx or context
            writer.write(len(wire).to_bytes(2, "big") + wire)
        await writer.drain()

    port = free_port()
    async with tcp_server(serve, port):
        yield Endpoint(LOOPBACK, port)


def _rrset(line: str) -> dns.rrset.RRset:
    name, ttl, class_, type_, value = line.split(maxsplit=4)
    return dns.rrset.from_text(name, int(ttl), class_, type_, value)


async def test_made_up_transfer_that_is_signed_is_read(zone: Zone, server: LoneBind) -> None:
    messages = [(FIRST, True), (MORE, True), (LAST, True)]
    async with made_up(server.tsig, *messages) as endpoint:
        contents = await read_zone(Exchange(), replace(zone, primary=endpoint))
    assert contents.marked == (f"a.{NAME}",)


@pytest.mark.parametrize(
    ("messages", "asked", "why"),
    [
        ([(FIRST, False), (LAST, True)], NAME, "without a signature"),
        ([(FIRST, True), (LAST, False)], NAME, "that is not signed at its end"),
        ([(MORE, True), (LAST, True)], NAME, "that begins without an SOA"),
        ([(FIRST, True), (LAST, True)], "elsewhere.test", "that answers a different question"),
    ],
)
async def test_transfer_that_proves_nothing_is_not_believed(
    zone: Zone, server: LoneBind, messages: list[tuple[Sections, bool]], asked: str, why: str
) -> None:
    async with made_up(server.tsig, *messages, asked=asked) as endpoint:
        with pytest.raises(ReplyInvalid, match=why):
            await read_zone(Exchange(), replace(zone, primary=endpoint))


async def test_port_that_takes_no_connection_is_unreachable(zone: Zone) -> None:
    port = free_port()
    with full_backlog(port), pytest.raises(Unreachable, match="took no TCP connection in time"):
        await read_zone(
            Exchange(),
            replace(zone, primary=Endpoint(LOOPBACK, port)),
            Bounds(connect_seconds=0.2),
        )
