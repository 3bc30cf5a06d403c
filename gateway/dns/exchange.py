"""One question to one DNS server and its answer: signed, bounded in time, believed when proven.

Responsible for the server's addresses, TSIG, the choice between what came back and what went
wrong, and the debug log. Must not retry (only the caller knows whether a message may be repeated)
and must not interpret rcodes. A test may subclass `Exchange` to do something between two messages.

Each UPDATE and query has a socket to itself while it is under way, so nothing is shared between
zones: a server that hangs delays its own zones only. All that is remembered is which servers were
not heard of lately (`silences`), for `primaries` to ask others first, connections for the next
query (`connections`), and what waits for its turn (`lanes`). Called by all of `dns`
that asks a server.
"""

import asyncio
import ipaddress
import logging
from collections.abc import Awaitable
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Final

import dns.rcode
import dns.rdatatype
import structlog

from gateway import measures, tracing
from gateway.dns.connections import Connections
from gateway.dns.errors import (
    DnsFault,
    NoReply,
    NoRoute,
    OutOfFiles,
    ReplyTruncated,
    Unreachable,
)
from gateway.dns.lanes import Lanes
from gateway.dns.lookups import Lookups
from gateway.dns.names import to_text
from gateway.dns.reading import Reply
from gateway.dns.rendering import Request
from gateway.dns.replies import Peer, is_reply, read_reply
from gateway.dns.signing import Asked, clock, sign
from gateway.dns.silences import Silences
from gateway.dns.transport import NoFile, NotAnswered, NotTaken, NoWay, over_udp
from gateway.dns.zones import Endpoint

HEARING_SECONDS: Final = 1.0
"""How long a server was waited for, at least, that is called silent though a call's time ended."""

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Limits:
    """How long each part of an exchange may take; a call's deadline may end it earlier."""

    resolve_seconds: float = 1.5
    udp_seconds: float = 1.5
    connect_seconds: float = 1.5
    tcp_seconds: float = 3.0


class Over(StrEnum):
    """How a message travels."""

    UDP = "udp"
    TCP = "tcp"


class Exchange:
    """Sends messages; one serves all zones and tasks.

    One that `keeps_connections` for the next query must be closed in the end.
    """

    def __init__(
        self,
        limits: Limits | None = None,
        lookups: Lookups | None = None,
        *,
        keeps_connections: bool = False,
    ) -> None:
        self._limits = limits or Limits()
        self._lookups = lookups or Lookups()
        self._silences = Silences()
        self._connections = Connections(keeps=keeps_connections)
        self.lanes = Lanes()

    def close(self) -> None:
        """Close what is kept open; messages may be sent after it, each over its own connection."""
        self._connections.close()

    def is_silent(self, endpoint: Endpoint) -> bool:
        """Did the server take or answer nothing when it was asked last, within half a minute?"""
        return self._silences.is_silent(endpoint, asyncio.get_running_loop().time())

    async def ask(self, peer: Peer, request: Request, *, over: Over, deadline: float) -> Reply:
        """Send `request` (signed anew when the peer has a key) and return the trusted reply.

        Several addresses of one server name are tried in turn, as long as nobody took the message.
        `deadline` is a loop time. Raises: Unreachable, NoReply, ReplyInvalid, TsigRejected.
        """
        loop = asyncio.get_running_loop()
        started, began = loop.time(), measures.moment()
        result = "cancelled"
        try:
            reply = await self._ask_any(peer, _ready(request, peer), over, deadline)
            self._silences.heard(peer, over)
            result = _rcode_text(int(reply.rcode))
        except DnsFault as fault:
            now = loop.time()
            # One that the caller left no time for has not been silent.
            had_time = now < deadline or now - started >= HEARING_SECONDS
            if had_time and isinstance(fault, (Unreachable, NoReply)):
                self._silences.not_heard(peer, over, now, fault)
            result = type(fault).__name__
            raise
        finally:
            seconds = measures.moment() - began
            measures.dns_asked(peer.zone, _kind_of(request), _outcome(result), seconds)
            tell(peer, request, over, result, seconds)
        return reply

    async def look_up(self, host: str, *, until: float) -> list[str]:
        """A host's addresses by the system's resolver; none if there are none in time."""
        return await self._lookups.addresses(host, until=until)

    async def _ask_any(self, peer: Peer, asked: Asked, over: Over, deadline: float) -> Reply:
        untaken: Unreachable | None = None
        endpoint, loop = peer.endpoint, asyncio.get_running_loop()
        is_known = _is_literal(endpoint.host)
        ask_over = self._ask_over_udp if over is Over.UDP else self._ask_over_tcp
        for address in (endpoint,) if is_known else await self._addresses(peer, deadline):
            if loop.time() >= deadline:
                break
            try:
                return await ask_over(peer, address, asked, deadline)
            except NoWay as fault:
                untaken = NoRoute(f"The {peer} {fault}.")
            except NotTaken as fault:
                untaken = Unreachable(f"The {peer} {fault}.")
            except NotAnswered as fault:
                raise NoReply(f"The {peer} {fault}.") from None
            except NoFile as fault:
                raise OutOfFiles(
                    f"The gateway has as many files open as it may: {fault} to ask the {peer}."
                ) from None
        raise untaken or Unreachable(f"No time was left to ask the {peer}.")

    async def _ask_over_udp(
        self, peer: Peer, address: Endpoint, asked: Asked, deadline: float
    ) -> Reply:
        """A datagram that can't be trusted may be anybody's: remembered, and waited past."""
        distrusted: DnsFault | None = None

        def accept(wire: bytes) -> Reply | None:
            nonlocal distrusted
            if not is_reply(asked, wire):
                return None
            try:
                return read_reply(asked, wire, peer)
            except ReplyTruncated:
                raise
            except DnsFault as fault:
                distrusted = fault
                return None

        until = min(deadline, asyncio.get_running_loop().time() + self._limits.udp_seconds)
        try:
            return await over_udp(address, asked.wire, accept, until=until)
        except NotAnswered:
            if distrusted is not None:
                raise distrusted from None
            raise

    def _ask_over_tcp(
        self, peer: Peer, address: Endpoint, asked: Asked, deadline: float
    ) -> Awaitable[Reply]:
        now = asyncio.get_running_loop().time()
        return self._connections.ask(
            address,
            asked.wire,
            lambda wire: read_reply(asked, wire, peer),
            again=not asked.is_update,
            connect_until=min(deadline, now + self._limits.connect_seconds),
            until=min(deadline, now + self._limits.tcp_seconds),
        )

    async def _addresses(self, peer: Peer, deadline: float) -> list[Endpoint]:
        endpoint = peer.endpoint
        until = min(deadline, asyncio.get_running_loop().time() + self._limits.resolve_seconds)
        hosts = await self.look_up(endpoint.host, until=until)
        if not hosts:
            raise Unreachable(f"No address was found for the {peer}.")
        return [Endpoint(host, endpoint.port) for host in hosts]


def tell(peer: Peer, request: Request, over: Over, result: str, seconds: float) -> None:
    """Tell the trace and the log of the present context of an exchange that is over.

    `result` is the reply's rcode, or what fault there was.
    """
    if tracing.is_recording():
        tracing.dns_asked(
            peer.zone,
            _kind_of(request),
            to_text(request.name),
            (peer.endpoint.host, peer.endpoint.port),
            over,
            result,
            seconds,
        )
    if not logging.getLogger().isEnabledFor(logging.DEBUG):
        return  # what would be told takes longer than the log to turn it down
    _log.debug(
        "dns exchange",
        server=str(peer.endpoint),
        zone=peer.zone,
        over=str(over),
        asked=_summary(request),
        result=result,
        ms=round(seconds * 1000, 1),
    )


def _ready(request: Request, peer: Peer) -> Asked:
    """The request as it is sent."""
    if peer.key is None:
        return Asked(request.to_wire())
    return sign(request.to_wire(), peer.key, peer.fudge_seconds, clock())


@lru_cache(256)
def _is_literal(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


@lru_cache(64)
def _rcode_text(rcode: int) -> str:
    return dns.rcode.to_text(dns.rcode.Rcode.make(rcode))


def _outcome(result: str) -> str:
    """As figures have it: rcodes without a name, of which a server may choose any, are one."""
    return "OTHER" if result.isdigit() else result


def _kind_of(request: Request) -> str:
    return "update" if request.is_update else "query"


def _summary(request: Request) -> str:
    """What the log says of a question: `ANY relay.example.test`, `UPDATE example.test`."""
    kind = "UPDATE" if request.is_update else dns.rdatatype.to_text(request.rdtype)
    return f"{kind} {to_text(request.name)}"
