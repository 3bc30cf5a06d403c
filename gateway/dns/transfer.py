"""Reads a whole zone by AXFR (RFC 5936): which names carry a marker, and which a challenge.

Responsible for one signed transfer over TCP, bounded in time and size, believed when its first and
its last message are signed. Of the zone only these few names are kept, however large it is. A
server that allows no transfer is a fault like others: whoever calls has the names that it knows.

A transfer tells which names to look at and nothing more: what is decided about a name is decided on
a reading of its own (`observe`), which also tells cuts and aliases above it. Must not change
anything. Called by `survey`.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import dns.exception
import dns.message
import dns.rcode
import dns.rdataset
from dns.rcode import Rcode
from dns.rdatatype import RdataType

from gateway import measures
from gateway.dns.errors import (
    DnsFault,
    NoReply,
    ReplyInvalid,
    ServerFailed,
    ServerRefused,
    Unreachable,
)
from gateway.dns.exchange import Exchange
from gateway.dns.marker import Markers
from gateway.dns.names import CHALLENGE_LABEL, to_text
from gateway.dns.records import TXT, Rdata, txt_text
from gateway.dns.replies import Peer, read_reply
from gateway.dns.signing import Asked
from gateway.dns.transport import why_not_taken
from gateway.dns.zones import Zone

_MOST_UNSIGNED = 99
"""How many messages in a row may rely on the next one's signature (RFC 8945, 5.3.1)."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """How long a transfer may take, how long it may be silent, and how much it may send."""

    connect_seconds: float = 3.0
    silent_seconds: float = 15.0
    seconds: float = 300.0
    wire_bytes: int = 512 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Challenge:
    """One TXT value at a challenge name (no trailing dot)."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class Contents:
    """What of a zone concerns the gateway. Names are without trailing dot, sorted."""

    records: int
    marked: tuple[str, ...]
    challenges: tuple[Challenge, ...]


async def read_zone(exchange: Exchange, zone: Zone, bounds: Bounds | None = None) -> Contents:
    """Transfer a zone from its primary, or from the next one when nobody takes the question.

    Raises: Unreachable, NoReply, ReplyInvalid, ServerFailed, ServerRefused, TsigRejected.
    """
    untaken: DnsFault | None = None
    for each in zone.at_each_primary():
        try:
            return await _read_from(exchange, each, bounds or Bounds())
        except Unreachable as fault:
            untaken = untaken or fault
    raise untaken or Unreachable(f"The zone {zone.name} has no primary.")


async def _read_from(exchange: Exchange, zone: Zone, bounds: Bounds) -> Contents:
    began = measures.moment()
    result = "cancelled"
    try:
        contents = await _transferred(exchange, zone, bounds)
        result = "NOERROR"
    except DnsFault as fault:
        result = type(fault).__name__
        raise
    finally:
        measures.dns_asked(zone.name, "transfer", result, measures.moment() - began)
    return contents


async def _transferred(exchange: Exchange, zone: Zone, bounds: Bounds) -> Contents:
    peer = Peer.primary_of(zone)
    request = dns.message.make_query(zone.apex, RdataType.AXFR, flags=0)
    request.use_tsig(zone.key.for_signing())
    collected = _Collected(zone)
    try:
        async with (
            asyncio.timeout(bounds.seconds),
            aclosing(_frames(exchange, peer, request, bounds)) as all_,
        ):
            reading = _Reading(peer, request)
            async for wire in all_:
                if collected.take(reading.message(wire)):
                    reading.require_signed_end()
                    return collected.contents()
    except TimeoutError:
        raise NoReply(f"The {peer} did not end its transfer in {bounds.seconds:g} s.") from None
    raise NoReply(f"The {peer} closed the connection before its transfer was whole.")


async def _frames(
    exchange: Exchange, peer: Peer, request: dns.message.Message, bounds: Bounds
) -> AsyncGenerator[bytes, None]:
    """Each message of the answer, for as long as the connection lasts."""
    async with _connected(exchange, peer, bounds) as (reader, writer):
        wire = request.to_wire()
        size = 0
        try:
            writer.write(len(wire).to_bytes(2, "big") + wire)
            await writer.drain()
            while True:
                async with asyncio.timeout(bounds.silent_seconds):
                    length = int.from_bytes(await reader.readexactly(2), "big")
                    frame = await reader.readexactly(length)
                size += length
                if size > bounds.wire_bytes:
                    raise ServerFailed(f"The {peer} transfers more than {bounds.wire_bytes} bytes.")
                yield frame
        except TimeoutError:
            raise NoReply(f"The {peer} fell silent in the middle of a transfer.") from None
        except (OSError, asyncio.IncompleteReadError):
            return


@asynccontextmanager
async def _connected(
    exchange: Exchange, peer: Peer, bounds: Bounds
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    until = asyncio.get_running_loop().time() + bounds.connect_seconds
    why = "has no address"
    for host in await exchange.look_up(peer.endpoint.host, until=until):
        try:
            async with asyncio.timeout_at(until):
                reader, writer = await asyncio.open_connection(host, peer.endpoint.port)
        except TimeoutError:
            why = "took no TCP connection in time"
            break
        except OSError as error:
            why = str(why_not_taken(error))
            continue
        try:
            yield reader, writer
        finally:
            writer.close()
        return
    raise Unreachable(f"The {peer} {why}.")


@dataclass
class _Reading:
    """One message after the other, with the signature that runs through all of them."""

    peer: Peer
    request: dns.message.Message
    _context: Any = None
    _is_first: bool = True
    _unsigned: int = 0

    def message(self, wire: bytes) -> dns.message.Message:
        """The next message. Raises: ReplyInvalid, ServerFailed, ServerRefused, TsigRejected."""
        try:
            message = dns.message.from_wire(
                wire,
                keyring=self.request.keyring,
                request_mac=self.request.mac,
                xfr=True,
                multi=True,
                tsig_ctx=self._context,
            )
        except (dns.exception.DNSException, ValueError, NotImplementedError) as fault:
            if self._is_first:
                # The same again by those rules that have words for everything.
                read_reply(Asked.of(self.request), wire, self.peer)
            raise self._invalid(f"can't be believed ({type(fault).__name__})") from None
        if not self.request.is_response(message, xfr_continuation=not self._is_first):
            raise self._invalid("answers a different question")
        self._unsigned = 0 if message.had_tsig else self._unsigned + 1
        if self._unsigned > (0 if self._is_first else _MOST_UNSIGNED):
            if self._is_first:
                read_reply(
                    Asked.of(self.request), wire, self.peer
                )  # has words for an unsigned refusal
            raise self._invalid("is not signed")
        self._context, self._is_first = message.tsig_ctx, False
        rcode = message.rcode()
        if rcode == Rcode.NOERROR:
            return message
        detail = f"The {self.peer} answered {dns.rcode.to_text(rcode)} to a transfer."
        raise ServerFailed(detail) if rcode == Rcode.SERVFAIL else ServerRefused(detail, rcode)

    def require_signed_end(self) -> None:
        """Raises: ReplyInvalid when nothing proves the last messages."""
        if self._unsigned:
            raise self._invalid("is not signed at its end")

    def _invalid(self, what: str) -> ReplyInvalid:
        return ReplyInvalid(f"The {self.peer} sent a transfer that {what}.")


@dataclass
class _Collected:
    """What was seen so far; a transfer begins and ends with the zone's SOA."""

    zone: Zone
    records: int = 0
    marked: set[str] = field(default_factory=set)
    challenges: set[Challenge] = field(default_factory=set)

    def take(self, message: dns.message.Message) -> bool:
        """Take a message's records; answers whether they are the last.

        Raises: ReplyInvalid when it does not begin with the SOA.
        """
        apex = self.zone.apex
        for rrset in message.answer:
            is_soa = rrset.rdtype == RdataType.SOA and rrset.name == apex
            if is_soa and self.records:
                return True
            if not is_soa and not self.records:
                peer = Peer.primary_of(self.zone)
                raise ReplyInvalid(f"The {peer} sent a transfer that begins without an SOA.")
            self.records += len(rrset)
            if rrset.rdtype == TXT:
                self._take_texts(to_text(rrset.name), rrset)
        return False

    def _take_texts(self, name: str, rdatas: dns.rdataset.Rdataset) -> None:
        is_challenge = name.partition(".")[0] == CHALLENGE_LABEL
        for rdata in rdatas:
            text = txt_text(Rdata.of(rdata))
            if text is not None and Markers.is_marker(text):
                self.marked.add(name)
            elif text is not None and is_challenge:
                self.challenges.add(Challenge(name, text))

    def contents(self) -> Contents:
        """All of it."""
        in_order = sorted(self.challenges, key=lambda each: (each.name, each.value))
        return Contents(self.records, tuple(sorted(self.marked)), tuple(in_order))
