"""Can a zone's primary be worked with? Asked for readiness and by `gateway check`; changes nothing.

Responsible for saying what is wrong in words that lead to the fault: address, key, clock, zone,
permission. Must not retry or remember.
"""

import asyncio
import secrets
from dataclasses import dataclass
from typing import Final

import dns.flags
import dns.message
import dns.rcode
import dns.rdata
import dns.rdatatype
from dns.rcode import Rcode
from dns.rdataclass import RdataClass
from dns.rdatatype import RdataType

from gateway.dns.errors import DnsFault, ServerRefused, TsigRejected
from gateway.dns.exchange import Exchange, Over
from gateway.dns.names import to_name
from gateway.dns.nameservers import NameServer, name_servers
from gateway.dns.questions import ask_primary, make_query
from gateway.dns.replies import Peer, signed_at
from gateway.dns.update import Delete, NameFree, RRsetPresent, send_update
from gateway.dns.zones import Zone

SERVER_SECONDS: Final = 2.0

_HARMLESS: Final = (
    (RdataType.A, "192.0.2.1"),
    (RdataType.AAAA, "2001:db8::1"),
    (RdataType.TXT, '"check"'),
)


@dataclass(frozen=True, slots=True)
class ZoneHealth:
    """`clock_skew_seconds`: how much later the server's clock is than ours, when it told."""

    ok: bool
    detail: str
    clock_skew_seconds: float | None = None


async def probe_zone(exchange: Exchange, zone: Zone, deadline: float) -> ZoneHealth:
    """A signed SOA query: is the primary there, does it know the key and serve the zone?"""
    peer, query = Peer.primary_of(zone), make_query(zone.apex, RdataType.SOA)
    try:
        reply = await ask_primary(exchange, zone, query, deadline)
    except DnsFault as fault:
        ahead = fault.server_ahead_seconds if isinstance(fault, TsigRejected) else None
        return ZoneHealth(ok=False, detail=fault.detail, clock_skew_seconds=ahead)
    skew = _skew(query, reply)
    if reply.rcode() != Rcode.NOERROR:
        text = dns.rcode.to_text(reply.rcode())
        return ZoneHealth(False, f"The {peer} answered {text} to a query for SOA.", skew)
    if not _serves(reply, zone):
        return ZoneHealth(False, f"The {peer} does not serve the zone with authority.", skew)
    return ZoneHealth(True, f"The {peer} serves the zone.", skew)


async def check_zone(exchange: Exchange, zone: Zone, deadline: float) -> ZoneHealth:
    """As `probe_zone`, and an UPDATE that only states that the zone has a SOA record.

    A server that allows updates by rule per name (`update-policy`) says yes to that in any case:
    `refused_types` looks into it.
    """
    health = await probe_zone(exchange, zone, deadline)
    if not health.ok:
        return health
    peer, prerequisite = Peer.primary_of(zone), RRsetPresent(zone.apex, RdataType.SOA)
    try:
        rcode = await send_update(
            exchange, zone, (prerequisite,), (), deadline=deadline, prefer=Over.TCP
        )
    except DnsFault as fault:
        return ZoneHealth(False, fault.detail, health.clock_skew_seconds)
    takes = rcode == Rcode.NOERROR
    words = "takes updates" if takes else f"answered {dns.rcode.to_text(rcode)} to an update"
    return ZoneHealth(takes, f"The {peer} serves the zone and {words}.", health.clock_skew_seconds)


async def refused_types(exchange: Exchange, zone: Zone, deadline: float) -> tuple[str, ...]:
    """Which of A, AAAA and TXT the key may not change at some name that nobody uses.

    A server that allows updates by rule per name and type (BIND's `update-policy`) judges the rules
    by what a message would change, so each asks to delete a record that is not there: nothing is
    written whatever the answer. A policy for certain names only refuses this one rightly.

    Raises: the faults of `Exchange.ask`.
    """
    name = to_name(f"_gateway-check-{secrets.token_hex(8)}.{zone.name}")
    refused = []
    for rdtype, value in _HARMLESS:
        change = Delete(name, dns.rdata.from_text(RdataClass.IN, rdtype, value))
        try:
            await send_update(
                exchange, zone, (NameFree(name),), (change,), deadline=deadline, prefer=Over.TCP
            )
        except ServerRefused:
            refused.append(dns.rdatatype.to_text(rdtype))
    return tuple(refused)


async def silent_servers(exchange: Exchange, zone: Zone, deadline: float) -> tuple[str, ...]:
    """The zone's name servers that do not answer for it with authority, asked unsigned.

    Each would hold up every issuance (`propagation`). Raises: DnsFault when the primary doesn't
    tell which servers there are.
    """
    servers = await name_servers(exchange, zone, deadline)
    answers = await asyncio.gather(
        *(_answers(exchange, zone, server, deadline) for server in servers)
    )
    return tuple(
        server.label for server, answer in zip(servers, answers, strict=True) if not answer
    )


async def _answers(exchange: Exchange, zone: Zone, server: NameServer, deadline: float) -> bool:
    until = min(deadline, asyncio.get_running_loop().time() + SERVER_SECONDS)
    for address in server.addresses:
        query = make_query(zone.apex, RdataType.SOA)
        try:
            peer = Peer(address, zone.name)
            reply = await exchange.ask(peer, query, over=Over.UDP, deadline=until)
        except DnsFault:
            continue
        if _serves(reply, zone):
            return True
    return False


def _serves(reply: dns.message.Message, zone: Zone) -> bool:
    return bool(reply.flags & dns.flags.AA) and any(
        rrset.rdtype == RdataType.SOA and rrset.name == zone.apex for rrset in reply.answer
    )


def _skew(query: dns.message.Message, reply: dns.message.Message) -> float | None:
    ours, theirs = signed_at(query), signed_at(reply)
    return None if ours is None or theirs is None else float(theirs - ours)
