"""Queries as the gateway asks them: of a primary signed and over TCP first, never recursive.

Must not interpret answers. Called by all of `dns` that reads.
"""

import dns.message
import dns.name
from dns.rdatatype import RdataType

from gateway.dns.errors import NoReply, Unreachable
from gateway.dns.exchange import Exchange, Over
from gateway.dns.primaries import at_a_primary
from gateway.dns.replies import Peer
from gateway.dns.zones import Zone

_UDP_PAYLOAD_BYTES = 1232


def make_query(
    name: dns.name.Name, rdtype: RdataType, *, signatures: bool = False
) -> dns.message.Message:
    """A query without RD: the server shall say what it knows itself.

    `signatures`: a signed zone's answer carries them too (the DO bit), also when it is negative.
    """
    return dns.message.make_query(
        name,
        rdtype,
        flags=0,
        use_edns=0,
        want_dnssec=signatures,
        payload=_UDP_PAYLOAD_BYTES,
    )


async def ask_primary(
    exchange: Exchange, zone: Zone, query: dns.message.Message, deadline: float
) -> dns.message.Message:
    """Ask one of a zone's primaries, over UDP when nobody answers on TCP; may be repeated.

    Raises: the faults of `Exchange.ask`.
    """

    async def ask_at(at: Zone) -> dns.message.Message:
        peer = Peer.primary_of(at)
        try:
            return await exchange.ask(peer, query, over=Over.TCP, deadline=deadline)
        except (Unreachable, NoReply):
            return await exchange.ask(peer, query, over=Over.UDP, deadline=deadline)

    return await at_a_primary(exchange, zone, ask_at)
