"""Reads one name as the zone's primary sees it: every RRset at it, and where it lies.

One signed ANY query over TCP tells all of it in a single answer, so what is decided on is a state
that really existed: the RRsets with their TTLs, and by the AA bit, the authority section and a
DNAME, whether a delegation, an alias or another zone holds the name instead of ours.

The design page would confirm "unchanged" with an UPDATE of prerequisites only. This needs no more
exchanges, and tells two things that no prerequisite can: the TTL, and which other records are
there. Rejected as well: one query a type, which shows states that never were. Only a server that
answers ANY with one RRset (Knot), or with none, is asked so.

Two things an answer doesn't tell. Whether the records were made up from a wildcard: whoever decides
must doubt them until an UPDATE with "name not in use" was refused (`plan`). And, with BIND's
`minimal-responses yes` and on other servers, which zone the records are from: then an SOA query for
the name, whose negative answer has to name its zone (RFC 2308), says so.

A signed zone may be two: BIND's inline signing checks updates against the unsigned one and answers
from the signed one, which follows it by milliseconds, or more under load. So signatures are asked
for, and an observation says that it `may_lag`; `settle` has such a one confirmed.

`judge` is pure. Must not change anything or decide what follows. Called by `settle`, and by
whoever reads a name without changing it.
"""

from collections.abc import Awaitable, Iterable
from dataclasses import dataclass, replace
from enum import Enum
from functools import reduce

import dns.name
import dns.rcode
from dns.rcode import Rcode
from dns.rdatatype import RdataType

from gateway.dns.errors import (
    Misplaced,
    NoReply,
    ReplyTruncated,
    ServerFailed,
    ServerRefused,
    Unreachable,
)
from gateway.dns.exchange import Exchange, Over
from gateway.dns.names import is_same, to_text
from gateway.dns.primaries import at_a_primary
from gateway.dns.questions import ask_primary, make_query
from gateway.dns.reading import At, Content, Reply
from gateway.dns.records import AAAA, CNAME, TXT, A, RRset
from gateway.dns.replies import Peer
from gateway.dns.zones import Zone

_DNSSEC_OWN = (
    RdataType.RRSIG,
    RdataType.NSEC,
    RdataType.NSEC3,
    RdataType.NSEC3PARAM,
    RdataType.DNSKEY,
    RdataType.CDS,
    RdataType.CDNSKEY,
)

_DECIDING = (A, AAAA, TXT, CNAME)
"""The types that decide, asked for one by one where ANY does not tell them all."""

WITHHELD = (Rcode.REFUSED, Rcode.NOTIMP)
"""How a server says that it answers a type of query to nobody."""

_BELOW = dns.name.from_text("_gateway-place", origin=None)
"""A label that nobody has below an alias."""


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
    """What one name was when it was read. `edge` is the cut, the DNAME or the other zone's apex.

    `may_lag`: the zone is signed, or was asked type by type, so that updates may be judged by
    another state than this one.
    """

    name: dns.name.Name
    apex: dns.name.Name
    place: Place = Place.WITHIN
    edge: dns.name.Name | None = None
    rrsets: tuple[RRset, ...] = ()
    may_lag: bool = False

    @property
    def is_apex(self) -> bool:
        """Is it the zone's own name, which never is a client's?"""
        return is_same(self.name, self.apex)

    def rrset(self, rdtype: RdataType) -> RRset | None:
        """The RRset of a type, or None."""
        for rrset in self.rrsets:
            if rrset.rdtype == rdtype:
                return rrset
        return None

    def has(self, *rdtypes: RdataType) -> bool:
        """Is there an RRset of any of these types?"""
        return any(rrset.rdtype in rdtypes for rrset in self.rrsets)


def observe(
    exchange: Exchange, zone: Zone, name: dns.name.Name, *, deadline: float
) -> Awaitable[Observation]:
    """Read a name that lies in `zone`, at one of its primaries; may be repeated.

    Raises: Misplaced, ServerFailed, ServerRefused and the faults of `Exchange.ask`.
    """

    def observe_at(at: Zone) -> Awaitable[Observation]:
        return _observe_at(exchange, at, name, deadline)

    return at_a_primary(exchange, zone, observe_at)


async def _observe_at(
    exchange: Exchange, zone: Zone, name: dns.name.Name, deadline: float
) -> Observation:
    first, *others = await _read_all(exchange, zone, name, deadline)
    observed = judge(first, name, zone)
    if others:
        observed = reduce(_merged, (judge(reply, name, zone) for reply in others), observed)
        observed = replace(observed, may_lag=True)
    if observed.place is Place.UNTOLD and (teller := _teller(observed)) is not None:
        reply = await ask_primary(exchange, zone, make_query(teller, RdataType.SOA), deadline)
        # A server may answer SOA to nobody. Then the prerequisites of the update find a cut.
        if reply.rcode not in WITHHELD:
            told = judge(reply, teller, zone)
            observed = replace(observed, place=told.place, edge=told.edge)
    return _within(observed, zone)


def _teller(observed: Observation) -> dns.name.Name | None:
    """The name whose SOA query tells the zone; None when an alias leaves no room for one below it.

    Servers follow an alias, so that the answer is about its target's zone.
    """
    if not observed.has(CNAME):
        return observed.name
    try:
        return _BELOW.concatenate(observed.name)
    except dns.name.NameTooLong:
        return None


def judge(reply: Reply, name: dns.name.Name, zone: Zone) -> Observation:
    """What an answer to an ANY or SOA query for `name` says.

    Raises: ServerFailed, ServerRefused.
    """
    _require_answer(reply, zone)
    about = name.labels, zone.name
    observed: Observation | None = reply.content.judged.get(about)
    if observed is None:
        observed = reply.content.judged[about] = _judged(reply.content, name, zone.apex)
    return observed


def _judged(content: Content, name: dns.name.Name, apex: dns.name.Name) -> Observation:
    place, edge = _place(content, name, apex)
    rrsets = _rrsets_at(name, content.answer) if place in (Place.WITHIN, Place.UNTOLD) else ()
    return Observation(name, apex, place, edge, rrsets, _is_signed(content))


def _require_answer(reply: Reply, zone: Zone) -> None:
    rcode = reply.rcode
    if rcode in (Rcode.NOERROR, Rcode.NXDOMAIN):
        return
    detail = f"The {Peer.primary_of(zone)} answered {dns.rcode.to_text(rcode)} to a query."
    if rcode == Rcode.SERVFAIL:
        raise ServerFailed(detail)
    if rcode == Rcode.REFUSED:
        why = "see whether it lets the key query the zone (BIND: allow-query, and the key's view)"
        detail = f"{detail.removesuffix('.')}: {why}."
    raise ServerRefused(detail, rcode)


def _place(
    content: Content, name: dns.name.Name, apex: dns.name.Name
) -> tuple[Place, dns.name.Name | None]:
    for at, rrset in content.answer:
        if rrset.rdtype == RdataType.DNAME and name != at and name.is_subdomain(at):
            return Place.BELOW_DNAME, at
        if rrset.rdtype == RdataType.SOA and is_same(at, name) and not is_same(name, apex):
            return Place.OTHER_ZONE, name
    tellers = {rrset.rdtype: at for at, rrset in content.authority}
    teller = tellers.get(RdataType.SOA, tellers.get(RdataType.NS))
    if not content.is_authoritative:
        is_below = teller is not None and teller != apex and teller.is_subdomain(apex)
        return (Place.DELEGATED, teller) if is_below else (Place.NOT_SERVED, None)
    is_ours = teller is not None and is_same(teller, apex)
    if not is_ours and _is_alias(content, name):
        return Place.UNTOLD, None  # the authority is about where the alias leads to
    if teller is None:
        return (Place.WITHIN if is_same(name, apex) else Place.UNTOLD), None
    return (Place.WITHIN, None) if is_ours else (Place.OTHER_ZONE, teller)


def _is_alias(content: Content, name: dns.name.Name) -> bool:
    return any(rrset.rdtype == CNAME and at == name for at, rrset in content.answer)


def _is_signed(content: Content) -> bool:
    sections = (*content.answer, *content.authority)
    return any(rrset.rdtype == RdataType.RRSIG for _, rrset in sections)


def _rrsets_at(name: dns.name.Name, answer: Iterable[At]) -> tuple[RRset, ...]:
    rrsets = (
        rrset for at, rrset in answer if rrset.rdtype not in _DNSSEC_OWN and is_same(at, name)
    )
    return tuple(sorted(rrsets, key=lambda rrset: rrset.rdtype))


def _within(observed: Observation, zone: Zone) -> Observation:
    place = observed.place
    if place in (Place.WITHIN, Place.UNTOLD):
        return observed
    name = to_text(observed.name)
    if place is Place.NOT_SERVED:
        peer = Peer.primary_of(zone)
        raise ServerFailed(f"The {peer} does not answer with authority for {name}.")
    edge = to_text(observed.edge) if observed.edge else name
    words = {
        Place.DELEGATED: f"is delegated away from the zone {zone.name} at {edge}",
        Place.BELOW_DNAME: f"lies below the DNAME at {edge} in the zone {zone.name}",
        Place.OTHER_ZONE: f"belongs to the zone {edge}, not to {zone.name}",
    }
    raise Misplaced(f"{name} {words[place]}.")


async def _read_all(
    exchange: Exchange, zone: Zone, name: dns.name.Name, deadline: float
) -> list[Reply]:
    peer, over = Peer.primary_of(zone), Over.TCP
    query = make_query(name, RdataType.ANY, signatures=True)
    told: list[Reply] = []
    try:
        told = [await exchange.ask(peer, query, over=over, deadline=deadline)]
    except ReplyTruncated:
        pass  # More than a message can have; type by type it may fit.
    except (Unreachable, NoReply):
        # Nobody answers on TCP. Over UDP ANY may be answered with any one RRset (RFC 8482).
        over = Over.UDP
        told = [await exchange.ask(peer, query, over=over, deadline=deadline)]
    told = [reply for reply in told if not _is_withheld(reply, name)]
    if over is Over.TCP and told and not _may_be_one_of_several(told[0], name):
        return told
    # Of other types some may stay unseen; prerequisites still guard every change.
    queries = [make_query(name, rdtype, signatures=True) for rdtype in _DECIDING]
    others = [await exchange.ask(peer, query, over=over, deadline=deadline) for query in queries]
    return [*told, *others]


def _is_withheld(reply: Reply, name: dns.name.Name) -> bool:
    """Does the server tell nobody all that lies at a name? It may say so by a HINFO (RFC 8482)."""
    if reply.rcode in WITHHELD:
        return True
    return any(
        rrset.rdtype == RdataType.HINFO
        and at == name
        and rrset.rdatas[0].wire.startswith(b"\x07RFC8482")
        for at, rrset in reply.answer
    )


def _may_be_one_of_several(reply: Reply, name: dns.name.Name) -> bool:
    """Is it one RRset and no word on its zone? Knot answers ANY with one of them over TCP too."""
    if reply.authority:
        return False
    found = _rrsets_at(name, reply.answer)
    return len(found) == 1 and found[0].rdtype != CNAME


def _merged(first: Observation, second: Observation) -> Observation:
    """Two answers about one name, as one; whoever tells the place, or a place elsewhere, wins."""
    rrsets = {rrset.rdtype: rrset for rrset in (*second.rrsets, *first.rrsets)}
    is_settled = first.place not in (Place.WITHIN, Place.UNTOLD) or second.place is Place.UNTOLD
    return replace(
        first if is_settled else second,
        rrsets=tuple(rrsets[rdtype] for rdtype in sorted(rrsets)),
        may_lag=first.may_lag or second.may_lag,
    )
