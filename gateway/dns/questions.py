"""Queries as the gateway asks them: of a primary signed and over TCP first, never recursive.

Must not interpret answers. Called by `observe`, `nameservers`, `propagation` and `health`.
"""

import dns.message
import dns.name
from dns.rdatatype import RdataType

from gateway.dns.errors import Unreachable
from gateway.dns.exchange import Exchange, Over
from gateway.dns.replies import Peer
from gateway.dns.zones import Zone

_UDP_PAYLOAD_BYTES = 1232


def make_query(name: dns.name.Name, rdtype: RdataType) -> dns.message.Message:
    """A query without RD: the server shall say what it knows itself."""
    return dns.message.make_query(name, rdtype, flags=0, use_edns=0, payload=_UDP_PAYLOAD_BYTES)


async def ask_primary(
    exchange: Exchange, zone: Zone, query: dns.message.Message, deadline: float
) -> dns.message.Message:
    """Ask a zone's primary, over UDP when nobody listens on TCP; may be repeated.

    Raises: the faults of `Exchange.ask`.
    """
    peer = Peer.primary_of(zone)
    try:
        return await exchange.ask(peer, query, over=Over.TCP, deadline=deadline)
    except Unreachable:
        return await exchange.ask(peer, query, over=Over.UDP, deadline=deadline)
