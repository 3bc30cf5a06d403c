"""RFC 2136 updates as data, and sending one.

Responsible for: the prerequisites that keep a change away from cuts and aliases above the name,
building the message, the choice of transport, and telling "refused", "not applied" and "unknown"
apart. Must not decide what to change (`plan`, `challenges`) nor try again (`settle`).
"""

from collections.abc import Iterable
from dataclasses import dataclass

import dns.name
import dns.rcode
import dns.rdata
import dns.rdatatype
import dns.update
from dns.rcode import Rcode
from dns.rdatatype import RdataType

from gateway.dns.errors import (
    NoReply,
    OutcomeUnknown,
    ReplyInvalid,
    ServerFailed,
    ServerRefused,
    TsigRejected,
    Unreachable,
)
from gateway.dns.exchange import Exchange, Over
from gateway.dns.names import upwards
from gateway.dns.records import RRset
from gateway.dns.replies import Peer
from gateway.dns.zones import Zone

UDP_MESSAGE_BYTES = 1200
"""What passes everywhere in one piece, IPv6 tunnels included."""

PREREQUISITE_RCODES = frozenset({Rcode.YXDOMAIN, Rcode.YXRRSET, Rcode.NXRRSET, Rcode.NXDOMAIN})


@dataclass(frozen=True, slots=True)
class NameFree:
    """No record of any type is at the name itself (RFC 2136, 2.4.5)."""

    name: dns.name.Name


@dataclass(frozen=True, slots=True)
class RRsetAbsent:
    """No record of the type is at the name (2.4.3)."""

    name: dns.name.Name
    rdtype: RdataType


@dataclass(frozen=True, slots=True)
class RRsetPresent:
    """Some record of the type is at the name (2.4.1)."""

    name: dns.name.Name
    rdtype: RdataType


@dataclass(frozen=True, slots=True)
class RRsetIs:
    """Exactly these records of the type are at the name, whatever their TTL (2.4.2)."""

    name: dns.name.Name
    rrset: RRset


Prerequisite = NameFree | RRsetAbsent | RRsetPresent | RRsetIs


@dataclass(frozen=True, slots=True)
class Add:
    """Add one record (2.5.1); the whole RRset takes its TTL."""

    name: dns.name.Name
    ttl: int
    rdata: dns.rdata.Rdata


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete one record by its exact value (2.5.4); nothing happens when it isn't there."""

    name: dns.name.Name
    rdata: dns.rdata.Rdata


Change = Add | Delete


def uncut(name: dns.name.Name, apex: dns.name.Name) -> tuple[Prerequisite, ...]:
    """No zone cut at or above the name, no DNAME above it.

    BIND takes an update below a cut with NOERROR and never serves it. The apex has NS by right.
    """
    inside = tuple(upwards(name, apex))
    cuts = tuple(RRsetAbsent(level, RdataType.NS) for level in inside)
    above = (*inside[1:], apex) if inside else ()
    aliases = tuple(RRsetAbsent(level, RdataType.DNAME) for level in above)
    return cuts + aliases


def build_update(
    zone: Zone, prerequisites: Iterable[Prerequisite], changes: Iterable[Change]
) -> dns.update.UpdateMessage:
    """One message: the server applies all changes when all prerequisites hold, else none."""
    message = dns.update.UpdateMessage(zone.apex)
    for prerequisite in prerequisites:
        match prerequisite:
            case NameFree(name):
                message.absent(name)
            case RRsetAbsent(name, rdtype):
                message.absent(name, rdtype)
            case RRsetPresent(name, rdtype):
                message.present(name, rdtype)
            case RRsetIs(name, rrset):
                message.present(name, *rrset.rdatas)
    for change in changes:
        match change:
            case Add(name, ttl, rdata):
                message.add(name, ttl, rdata)
            case Delete(name, rdata):
                message.delete(name, rdata)
    return message


async def send_update(
    exchange: Exchange,
    zone: Zone,
    prerequisites: Iterable[Prerequisite],
    changes: Iterable[Change],
    *,
    deadline: float,
    prefer: Over = Over.UDP,
) -> Rcode:
    """Send one UPDATE; answers NOERROR, or how a prerequisite failed (`PREREQUISITE_RCODES`).

    A transport that nobody listens on is replaced by the other one. After silence or a reply that
    proves nothing no second message is sent: the caller must read what happened.

    Raises: OutcomeUnknown when there are changes that may have been made; Unreachable, NoReply,
    ReplyInvalid, ServerFailed, ServerRefused, TsigRejected when there is nothing to make known.
    """
    message = build_update(zone, prerequisites, changes)
    peer = Peer.primary_of(zone)
    try:
        reply = await _ask(exchange, peer, message, prefer, deadline)
    except (NoReply, ReplyInvalid, TsigRejected) as fault:
        # TsigRejected too: such a reply is unsigned, so it may be anybody's.
        if message.update:
            raise OutcomeUnknown(fault.detail) from fault
        raise
    rcode = reply.rcode()
    if rcode == Rcode.NOERROR or rcode in PREREQUISITE_RCODES:
        return rcode
    detail = f"The {peer} answered {dns.rcode.to_text(rcode)} to the update."
    if rcode == Rcode.SERVFAIL:
        # BIND says so too when writing its journal failed: nobody knows how far it came.
        raise OutcomeUnknown(detail) if message.update else ServerFailed(detail)
    raise ServerRefused(detail, rcode)


async def _ask(
    exchange: Exchange,
    peer: Peer,
    message: dns.update.UpdateMessage,
    prefer: Over,
    deadline: float,
) -> dns.message.Message:
    fits = len(message.to_wire()) + _signature_bytes(peer) <= UDP_MESSAGE_BYTES
    if not fits:
        return await exchange.ask(peer, message, over=Over.TCP, deadline=deadline)
    other = Over.TCP if prefer is Over.UDP else Over.UDP
    try:
        return await exchange.ask(peer, message, over=prefer, deadline=deadline)
    except Unreachable:
        return await exchange.ask(peer, message, over=other, deadline=deadline)


def _signature_bytes(peer: Peer) -> int:
    """An upper bound of what TSIG adds: owner, algorithm, the longest MAC and the fixed fields."""
    return 0 if peer.key is None else len(peer.key.name) + len(peer.key.algorithm) + 64 + 32
