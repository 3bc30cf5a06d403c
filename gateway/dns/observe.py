"""Reads one name as the zone's primary sees it: every RRset at it, and where it lies.

One signed ANY query over TCP tells all of it in a single answer, so what is decided on is a state
that really existed: the RRsets with their TTLs, and by the AA bit, the authority section and a
DNAME, whether a delegation, an alias or another zone holds the name instead of ours.

The design page would confirm "unchanged" with an UPDATE of prerequisites only. This needs no more
exchanges, and tells two things that no prerequisite can: the TTL, and which other records are
there. Rejected as well: one query a type, which shows states that never were.

Two things an answer doesn't tell. Whether the records were made up from a wildcard: whoever decides
must doubt them until an UPDATE with "name not in use" was refused (`plan`). And, with BIND's
`minimal-responses yes` and on other servers, which zone the records are from: then an SOA query for
the name, whose negative answer has to name its zone (RFC 2308), says so.

`judge` is pure. Must not change anything or decide what follows. Called by `settle`, `challenges`
and `publisher`.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum
from functools import reduce

import dns.flags
import dns.message
import dns.name
import dns.rcode
import dns.rrset
from dns.rcode import Rcode
from dns.rdatatype import RdataType

from gateway.dns.errors import Misplaced, ServerFailed, ServerRefused, Unreachable
from gateway.dns.exchange import Exchange, Over
from gateway.dns.names import to_text
from gateway.dns.questions import ask_primary, make_query
from gateway.dns.records import AAAA, TXT, A, RRset
from gateway.dns.replies import Peer
from gateway.dns.zones import Zone

_DNSSEC_OWN = frozenset(
    {
        RdataType.RRSIG,
        RdataType.NSEC,
        RdataType.NSEC3,
        RdataType.NSEC3PARAM,
        RdataType.DNSKEY,
        RdataType.CDS,
        RdataType.CDNSKEY,
    }
)


class Place(Enum):
    """Who answers for a name."""

    WITHIN = "our zone"
    UNTOLD = "our zone, or one below it that the same server has"
    DELEGATED = "the servers that it is delegated to"
    BELOW_DNAME = "nobody: a DNAME above it moves it elsewhere"
    OTHER_ZONE = "another zone"
    NOT_SERVED = "not this server"


@dataclass(frozen=True, slots=True)
class Observation:
    """What one name was when it was read. `edge` is the cut, the DNAME or the other zone's apex."""

    name: dns.name.Name
    apex: dns.name.Name
    place: Place = Place.WITHIN
    edge: dns.name.Name | None = None
    rrsets: tuple[RRset, ...] = ()

    @property
    def is_apex(self) -> bool:
        """Is it the zone's own name, which never is a client's?"""
        return bool(self.name == self.apex)

    def rrset(self, rdtype: RdataType) -> RRset | None:
        """The RRset of a type, or None."""
        return next((rrset for rrset in self.rrsets if rrset.rdtype == rdtype), None)

    def has(self, *rdtypes: RdataType) -> bool:
        """Is there an RRset of any of these types?"""
        return any(rrset.rdtype in rdtypes for rrset in self.rrsets)


async def observe(
    exchange: Exchange, zone: Zone, name: dns.name.Name, *, deadline: float
) -> Observation:
    """Read a name that lies in `zone`; may be repeated.

    Raises: Misplaced, ServerFailed, ServerRefused and the faults of `Exchange.ask`.
    """
    replies = await _read_all(exchange, zone, name, deadline)
    observed = reduce(_merged, (judge(reply, name, zone) for reply in replies))
    if observed.place is Place.UNTOLD:
        told = judge(
            await ask_primary(exchange, zone, make_query(name, RdataType.SOA), deadline), name, zone
        )
        observed = replace(observed, place=told.place, edge=told.edge)
    return _within(observed, zone)


def judge(reply: dns.message.Message, name: dns.name.Name, zone: Zone) -> Observation:
    """What an answer to an ANY or SOA query for `name` says.

    Raises: ServerFailed, ServerRefused.
    """
    _require_answer(reply, zone)
    apex = zone.apex
    place, edge = _place(reply, name, apex)
    rrsets = _rrsets_at(name, reply.answer) if place in (Place.WITHIN, Place.UNTOLD) else ()
    return Observation(name, apex, place, edge, rrsets)


def _require_answer(reply: dns.message.Message, zone: Zone) -> None:
    rcode = reply.rcode()
    if rcode in (Rcode.NOERROR, Rcode.NXDOMAIN):
        return
    detail = f"The {Peer.primary_of(zone)} answered {dns.rcode.to_text(rcode)} to a query."
    if rcode == Rcode.SERVFAIL:
        raise ServerFailed(detail)
    raise ServerRefused(detail, rcode)


def _place(
    reply: dns.message.Message, name: dns.name.Name, apex: dns.name.Name
) -> tuple[Place, dns.name.Name | None]:
    for rrset in reply.answer:
        if rrset.rdtype == RdataType.DNAME and name != rrset.name and name.is_subdomain(rrset.name):
            return Place.BELOW_DNAME, rrset.name
        if rrset.rdtype == RdataType.SOA and rrset.name == name != apex:
            return Place.OTHER_ZONE, name
    authority = {rrset.rdtype: rrset.name for rrset in reply.authority}
    teller = authority.get(RdataType.SOA, authority.get(RdataType.NS))
    if not reply.flags & dns.flags.AA:
        is_below = teller is not None and teller != apex and teller.is_subdomain(apex)
        return (Place.DELEGATED, teller) if is_below else (Place.NOT_SERVED, None)
    if teller is None:
        return (Place.WITHIN if name == apex else Place.UNTOLD), None
    return (Place.WITHIN, None) if teller == apex else (Place.OTHER_ZONE, teller)


def _rrsets_at(name: dns.name.Name, answer: Iterable[dns.rrset.RRset]) -> tuple[RRset, ...]:
    rrsets = (
        RRset.of(rrset.rdtype, rrset.ttl, rrset)
        for rrset in answer
        if rrset.name == name and rrset.rdtype not in _DNSSEC_OWN
    )
    return tuple(sorted(rrsets, key=lambda rrset: rrset.rdtype))


def _within(observed: Observation, zone: Zone) -> Observation:
    name, place = to_text(observed.name), observed.place
    if place is Place.NOT_SERVED:
        peer = Peer.primary_of(zone)
        raise ServerFailed(f"The {peer} does not answer with authority for {name}.")
    if place in (Place.WITHIN, Place.UNTOLD):
        return observed
    edge = to_text(observed.edge) if observed.edge else name
    words = {
        Place.DELEGATED: f"is delegated away from the zone {zone.name} at {edge}",
        Place.BELOW_DNAME: f"lies below the DNAME at {edge} in the zone {zone.name}",
        Place.OTHER_ZONE: f"belongs to the zone {edge}, not to {zone.name}",
    }
    raise Misplaced(f"{name} {words[place]}.")


async def _read_all(
    exchange: Exchange, zone: Zone, name: dns.name.Name, deadline: float
) -> list[dns.message.Message]:
    peer = Peer.primary_of(zone)
    try:
        query = make_query(name, RdataType.ANY)
        return [await exchange.ask(peer, query, over=Over.TCP, deadline=deadline)]
    except Unreachable:
        # Nobody listens on TCP. Over UDP a server may answer ANY with any one RRset (RFC 8482), so
        # the types that decide are asked for as well. Prerequisites still guard every change.
        queries = [make_query(name, rdtype) for rdtype in (RdataType.ANY, A, AAAA, TXT)]
        return [
            await exchange.ask(peer, query, over=Over.UDP, deadline=deadline) for query in queries
        ]


def _merged(first: Observation, second: Observation) -> Observation:
    """Two answers about one name, as one; whoever tells the place, or a place elsewhere, wins."""
    rrsets = {rrset.rdtype: rrset for rrset in (*second.rrsets, *first.rrsets)}
    is_settled = first.place not in (Place.WITHIN, Place.UNTOLD) or second.place is Place.UNTOLD
    return replace(
        first if is_settled else second,
        rrsets=tuple(rrsets[rdtype] for rdtype in sorted(rrsets)),
    )
