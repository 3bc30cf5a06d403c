"""Which servers answer for a zone: the configured ones, or those of its NS RRset, by address.

The NS RRset comes from the primary, and so do the addresses of servers named inside the zone;
others are looked up by the system's resolver, in a thread. Must not ask the servers anything: that
is what its callers do, `propagation`, `health` and `situation`.
"""

import asyncio
from dataclasses import dataclass

import dns.name
from dns.rcode import Rcode
from dns.rdatatype import RdataType

from gateway.dns.errors import ServerFailed
from gateway.dns.exchange import Exchange
from gateway.dns.names import to_text
from gateway.dns.questions import ask_primary, make_query
from gateway.dns.reading import Reply
from gateway.dns.records import ADDRESS_TYPES, address_value, target_of
from gateway.dns.replies import Peer
from gateway.dns.zones import Endpoint, Zone


@dataclass(frozen=True, slots=True)
class NameServer:
    """One server and its addresses; none when its name has none, which makes it a dead one."""

    label: str
    addresses: tuple[Endpoint, ...]


async def name_servers(exchange: Exchange, zone: Zone, deadline: float) -> tuple[NameServer, ...]:
    """All servers that must know a change before the world is told. May be repeated.

    Raises: ServerFailed and the faults of `Exchange.ask` when the primary doesn't tell.
    """
    if zone.servers:
        return tuple(NameServer(str(server), (server,)) for server in zone.servers)
    reply = await ask_primary(exchange, zone, make_query(zone.apex, RdataType.NS), deadline)
    names = sorted(
        target_of(rdata)
        for name, rrset in reply.answer
        if rrset.rdtype == RdataType.NS and name == zone.apex
        for rdata in rrset.rdatas
    )
    if reply.rcode != Rcode.NOERROR or not names:
        raise ServerFailed(f"The {Peer.primary_of(zone)} names no servers of the zone.")
    found = await asyncio.gather(
        *(_addresses(exchange, zone, name, reply, deadline) for name in names)
    )
    return tuple(
        NameServer(
            f"{to_text(name)}:{zone.nameserver_port}",
            tuple(Endpoint(address, zone.nameserver_port) for address in addresses),
        )
        for name, addresses in zip(names, found, strict=True)
    )


async def _addresses(
    exchange: Exchange,
    zone: Zone,
    name: dns.name.Name,
    reply: Reply,
    deadline: float,
) -> list[str]:
    given = _addresses_in(reply, name)
    if not given and name.is_subdomain(zone.apex):
        for rdtype in ADDRESS_TYPES:
            answer = await ask_primary(exchange, zone, make_query(name, rdtype), deadline)
            given += _addresses_in(answer, name)
    # Named elsewhere, or below a delegation.
    return given or await exchange.look_up(to_text(name), until=deadline)


def _addresses_in(reply: Reply, name: dns.name.Name) -> list[str]:
    return [
        address_value(rdata)
        for at, rrset in (*reply.answer, *reply.additional)
        if at == name and rrset.rdtype in ADDRESS_TYPES
        for rdata in rrset.rdatas
    ]
