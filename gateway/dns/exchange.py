"""One question to one DNS server and its answer: signed, bounded in time, believed when proven.

Responsible for the server's addresses, TSIG, the choice between what came back and what went
wrong, and the debug log. Must not retry (only the caller knows whether a message may be repeated)
and must not interpret rcodes. A test may subclass `Exchange` to do something between two messages.

Each UPDATE and query has its own socket, so nothing is shared between zones: a server that hangs
delays its own zones only. Called by `observe`, `update`, `propagation` and `health`.
"""

import asyncio
import ipaddress
import socket
from dataclasses import dataclass
from enum import Enum

import dns.message
import dns.opcode
import dns.rcode
import dns.rdatatype
import structlog

from gateway.dns.errors import DnsFault, NoReply, NoRoute, ReplyTruncated, Unreachable
from gateway.dns.names import to_text
from gateway.dns.replies import Peer, is_reply, read_reply
from gateway.dns.transport import NotAnswered, NotTaken, NoWay, over_tcp, over_udp
from gateway.dns.zones import Endpoint

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Limits:
    """How long each part of an exchange may take; a call's deadline may end it earlier."""

    resolve_seconds: float = 1.5
    udp_seconds: float = 1.5
    connect_seconds: float = 1.5
    tcp_seconds: float = 3.0


class Over(Enum):
    """How a message travels."""

    UDP = "udp"
    TCP = "tcp"


class Exchange:
    """Sends messages; holds no state, so one serves all zones and tasks."""

    def __init__(self, limits: Limits | None = None) -> None:
        self._limits = limits or Limits()

    async def ask(
        self, peer: Peer, request: dns.message.Message, *, over: Over, deadline: float
    ) -> dns.message.Message:
        """Send `request` (signed anew when the peer has a key) and return the trusted reply.

        Several addresses of one server name are tried in turn, as long as nobody took the message.
        `deadline` is a loop time. Raises: Unreachable, NoReply, ReplyInvalid, TsigRejected.
        """
        loop = asyncio.get_running_loop()
        started = loop.time()
        if peer.key is not None:
            request.use_tsig(peer.key.for_signing())
        result = "cancelled"
        try:
            reply = await self._ask_any(peer, request, over, deadline)
            result = dns.rcode.to_text(reply.rcode())
        except DnsFault as fault:
            result = type(fault).__name__
            raise
        finally:
            _log.debug(
                "dns exchange",
                server=str(peer.endpoint),
                zone=peer.zone,
                over=over.value,
                asked=_summary(request),
                result=result,
                ms=round((loop.time() - started) * 1000, 1),
            )
        return reply

    async def _ask_any(
        self, peer: Peer, request: dns.message.Message, over: Over, deadline: float
    ) -> dns.message.Message:
        untaken: Unreachable | None = None
        for address in await self._addresses(peer, deadline):
            if asyncio.get_running_loop().time() >= deadline:
                break
            try:
                if over is Over.UDP:
                    return await self._ask_over_udp(peer, address, request, deadline)
                return await self._ask_over_tcp(peer, address, request, deadline)
            except NoWay as fault:
                untaken = NoRoute(f"The {peer} {fault}.")
            except NotTaken as fault:
                untaken = Unreachable(f"The {peer} {fault}.")
            except NotAnswered as fault:
                raise NoReply(f"The {peer} {fault}.") from None
        raise untaken or Unreachable(f"No time was left to ask the {peer}.")

    async def _ask_over_udp(
        self, peer: Peer, address: Endpoint, request: dns.message.Message, deadline: float
    ) -> dns.message.Message:
        """A datagram that can't be trusted may be anybody's: remembered, and waited past."""
        distrusted: DnsFault | None = None

        def accept(wire: bytes) -> dns.message.Message | None:
            nonlocal distrusted
            if not is_reply(request, wire):
                return None
            try:
                return read_reply(request, wire, peer)
            except ReplyTruncated:
                raise
            except DnsFault as fault:
                distrusted = fault
                return None

        until = min(deadline, asyncio.get_running_loop().time() + self._limits.udp_seconds)
        try:
            return await over_udp(address, request.to_wire(), accept, until=until)
        except NotAnswered:
            if distrusted is not None:
                raise distrusted from None
            raise

    async def _ask_over_tcp(
        self, peer: Peer, address: Endpoint, request: dns.message.Message, deadline: float
    ) -> dns.message.Message:
        now = asyncio.get_running_loop().time()
        wire = await over_tcp(
            address,
            request.to_wire(),
            connect_until=min(deadline, now + self._limits.connect_seconds),
            until=min(deadline, now + self._limits.tcp_seconds),
        )
        return read_reply(request, wire, peer)

    async def _addresses(self, peer: Peer, deadline: float) -> list[Endpoint]:
        endpoint = peer.endpoint
        if _is_literal(endpoint.host):
            return [endpoint]
        until = min(deadline, asyncio.get_running_loop().time() + self._limits.resolve_seconds)
        hosts = await look_up(endpoint.host, until=until)
        if not hosts:
            raise Unreachable(f"No address was found for the {peer}.")
        return [Endpoint(host, endpoint.port) for host in hosts]


async def look_up(host: str, *, until: float) -> list[str]:
    """A host's addresses by the system's resolver, in a thread; none if there are none in time."""
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout_at(until):
            found = await loop.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError:  # no such name, no resolver, or (TimeoutError) no answer in time
        return []
    return [str(sockaddr[0]) for *_, sockaddr in found]


def _is_literal(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _summary(request: dns.message.Message) -> str:
    """What the log says of a question: `ANY relay.example.test`, `UPDATE example.test`."""
    subject = request.sections[0][0]
    is_update = request.opcode() == dns.opcode.UPDATE
    kind = "UPDATE" if is_update else dns.rdatatype.to_text(subject.rdtype)
    return f"{kind} {to_text(subject.name)}"
