"""Can a zone's primary be worked with? Asked for readiness and by `gateway check`; changes nothing.

Responsible for saying what is wrong in words that lead to the fault: address, key, clock, zone,
permission. Must not retry or remember.
"""

import asyncio
import secrets
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

import dns.rcode
import dns.rdatatype
from dns.rcode import Rcode
from dns.rdatatype import RdataType

from gateway.dns.errors import (
    DnsFault,
    NoReply,
    NoRoute,
    OutcomeUnknown,
    ReplyUnsigned,
    ServerFailed,
    ServerRefused,
    TsigRejected,
    Unreachable,
)
from gateway.dns.exchange import Exchange, Over
from gateway.dns.names import to_name
from gateway.dns.nameservers import NameServer, name_servers
from gateway.dns.observe import WITHHELD
from gateway.dns.primaries import in_turn
from gateway.dns.questions import ask_primary, make_query
from gateway.dns.reading import Reply
from gateway.dns.records import address_rdata, txt_rdata
from gateway.dns.replies import Peer, clock_ahead
from gateway.dns.update import Delete, NameFree, RRsetPresent, send_update
from gateway.dns.zones import Endpoint, Zone

SERVER_SECONDS: Final = 2.0

_HARMLESS: Final = (
    address_rdata("A", "192.0.2.1"),
    address_rdata("AAAA", "2001:db8::1"),
    txt_rdata("check"),
)


CLOCKS_AGREE_SECONDS: Final = 30
"""How far apart clocks may be before anybody need know; TSIG allows 300."""


class Trouble(Enum):
    """What kind of fault keeps a zone's primary from being worked with: each has its own remedy."""

    SILENT = "nobody answers"
    SIGNATURE = "the secret is another"
    KEY = "the key's name or algorithm is not known"
    CLOCK = "the clocks are too far apart"
    REFUSES = "it does not answer for the zone"
    TAKES_NO_UPDATES = "it does not let the key update"
    FAILS = "it can't answer at the moment"
    OTHER = "something else"


@dataclass(frozen=True, slots=True)
class ZoneHealth:
    """`clock_skew_seconds`: how much later the server's clock is than ours, when it told.

    `is_clock_off`: it did not tell, and is `CLOCKS_AGREE_SECONDS` off or more, one way or the
    other. `trouble` is set unless `ok`.
    """

    ok: bool
    detail: str
    clock_skew_seconds: float | None = None
    is_clock_off: bool = False
    trouble: Trouble | None = None


@dataclass(frozen=True, slots=True)
class Silence:
    """The name servers that do not answer for a zone, each by where it was asked."""

    at: tuple[str, ...]
    is_everywhere: bool
    """None of the zone's servers answers at any address."""


async def probe_zone(exchange: Exchange, zone: Zone, deadline: float) -> ZoneHealth:
    """A signed SOA query: is a primary there, does it know the key and serve the zone?

    Of several primaries the first one that can be worked with is told of; if there is none, what
    is wrong with each.
    """
    faults: list[ZoneHealth] = []
    for at in in_turn(exchange, zone):
        health = await _probe_primary(exchange, at, deadline)
        if health.ok:
            return health
        faults.append(health)
    return replace(faults[0], detail=" ".join(fault.detail for fault in faults))


async def _probe_primary(exchange: Exchange, zone: Zone, deadline: float) -> ZoneHealth:
    peer, query = Peer.primary_of(zone), make_query(zone.apex, RdataType.SOA)
    try:
        reply = await ask_primary(exchange, zone, query, deadline)
        skew = clock_ahead(reply)
        if reply.rcode in WITHHELD and await _takes_updates(exchange, zone, deadline):
            return ZoneHealth(True, f"The {peer} serves the zone, and tells nobody its SOA.", skew)
    except DnsFault as fault:
        ahead = fault.server_ahead_seconds if isinstance(fault, TsigRejected) else None
        return ZoneHealth(False, fault.detail, ahead, trouble=trouble_of(fault))
    if reply.rcode != Rcode.NOERROR:
        text = dns.rcode.to_text(reply.rcode)
        trouble = Trouble.FAILS if reply.rcode == Rcode.SERVFAIL else Trouble.REFUSES
        detail = f"The {peer} answered {text} to a query for SOA."
        return ZoneHealth(False, detail, skew, trouble=trouble)
    if not _serves(reply, zone):
        detail = f"The {peer} does not serve the zone with authority."
        return ZoneHealth(False, detail, skew, trouble=Trouble.REFUSES)
    return ZoneHealth(True, f"The {peer} serves the zone.", skew)


def trouble_of(fault: DnsFault) -> Trouble:
    """The kind of what went wrong with a query."""
    match fault:
        case Unreachable() | NoReply():
            return Trouble.SILENT
        case TsigRejected(rcode=Rcode.BADSIG):
            return Trouble.SIGNATURE
        case TsigRejected(rcode=Rcode.BADKEY):
            return Trouble.KEY
        case TsigRejected(rcode=Rcode.BADTIME):
            return Trouble.CLOCK
        case ServerRefused() | ReplyUnsigned(rcode=Rcode.REFUSED | Rcode.NOTAUTH):
            return Trouble.REFUSES
        case ServerFailed() | ReplyUnsigned(rcode=Rcode.SERVFAIL):
            return Trouble.FAILS
        case _:
            return Trouble.OTHER


async def _takes_updates(exchange: Exchange, zone: Zone, deadline: float) -> bool:
    try:
        return await _state_soa(exchange, zone, deadline) == Rcode.NOERROR
    except ServerRefused:
        return False


async def _state_soa(exchange: Exchange, zone: Zone, deadline: float) -> Rcode:
    """What becomes of an UPDATE that only states that the zone has a SOA record."""
    prerequisite = RRsetPresent(zone.apex, RdataType.SOA)
    return await send_update(
        exchange, zone, (prerequisite,), (), deadline=deadline, prefer=Over.TCP
    )


async def check_zone(exchange: Exchange, zone: Zone, deadline: float) -> ZoneHealth:
    """As `probe_zone`, and an UPDATE that only states that the zone has a SOA record.

    For the zone at one primary (`Zone.at_each_primary`), of which this is said.
    A server that allows updates by rule per name (`update-policy`) says yes to that in any case:
    `refused_types` looks into it.
    """
    health = await _probe_primary(exchange, zone, deadline)
    if not health.ok:
        return health
    if health.clock_skew_seconds == 0:
        health = await _with_clock(health, exchange, zone, deadline)
    try:
        rcode = await _state_soa(exchange, zone, deadline)
    except DnsFault as fault:
        trouble = trouble_of(fault)
        if trouble in (Trouble.REFUSES, Trouble.KEY):  # the key was good for the query
            trouble = Trouble.TAKES_NO_UPDATES
        return replace(health, ok=False, detail=fault.detail, trouble=trouble)
    takes = rcode == Rcode.NOERROR
    words = "takes updates" if takes else f"answered {dns.rcode.to_text(rcode)} to an update"
    return replace(
        health,
        ok=takes,
        detail=f"The {Peer.primary_of(zone)} serves the zone and {words}.",
        trouble=None if takes else Trouble.TAKES_NO_UPDATES,
    )


async def _with_clock(
    health: ZoneHealth, exchange: Exchange, zone: Zone, deadline: float
) -> ZoneHealth:
    """Whether a server that signed with the very time of the question has that time itself.

    PowerDNS repeats the question's. So it is asked once more, not to take a signature that is
    `CLOCKS_AGREE_SECONDS` off by its own clock.
    """
    peer = replace(Peer.primary_of(zone), fudge_seconds=CLOCKS_AGREE_SECONDS - 1)
    query = make_query(zone.apex, RdataType.SOA)
    try:
        await exchange.ask(peer, query, over=Over.TCP, deadline=deadline)
    except (TsigRejected, ReplyUnsigned):
        return replace(health, clock_skew_seconds=None, is_clock_off=True)
    except DnsFault:
        return replace(health, clock_skew_seconds=None)
    return health


def unused_name(zone: Zone) -> str:
    """A name right below the apex that nobody uses."""
    return f"_gateway-check-{secrets.token_hex(8)}.{zone.name}"


async def refused_types(
    exchange: Exchange, zone: Zone, deadline: float, *, name: str | None = None
) -> tuple[str, ...]:
    """Which of A, AAAA and TXT the key may not change at `name`, else at an `unused_name`.

    A server that allows updates by rule per name and type (BIND's `update-policy`) judges the rules
    by what a message would change, so each asks to delete a record that is not there: nothing is
    written whatever the answer. A policy for certain names only refuses this one rightly.

    Raises: the faults of `Exchange.ask`.
    """
    tried = to_name(name or unused_name(zone))
    refused = []
    for rdata in _HARMLESS:
        change = Delete(tried, rdata)
        try:
            await send_update(
                exchange, zone, (NameFree(tried),), (change,), deadline=deadline, prefer=Over.TCP
            )
        except ServerRefused:
            refused.append(dns.rdatatype.to_text(rdata.rdtype))
        except OutcomeUnknown as fault:
            # Knot answers BADKEY to a key that it knows and gives no right to this.
            if not isinstance(fault.__cause__, TsigRejected):
                raise
            refused.append(dns.rdatatype.to_text(rdata.rdtype))
    return tuple(refused)


async def silent_servers(exchange: Exchange, zone: Zone, deadline: float) -> Silence:
    """The zone's name servers that do not answer for it with authority, asked unsigned.

    Of a server that answers at one of its addresses, the addresses at which it does not: each would
    hold up every issuance (`propagation`). Raises: DnsFault when the primary doesn't tell which
    servers there are.
    """
    servers = await name_servers(exchange, zone, deadline)
    silent = await asyncio.gather(
        *(silent_at(exchange, zone, server, deadline) for server in servers)
    )
    return Silence(
        at=tuple(label for labels in silent for label in labels),
        is_everywhere=all(
            where == (server.label,) for server, where in zip(servers, silent, strict=True)
        ),
    )


async def silent_at(
    exchange: Exchange, zone: Zone, server: NameServer, deadline: float
) -> tuple[str, ...]:
    """Where the server does not answer for the zone with authority; by its name if nowhere.

    Asked unsigned. An address that this machine has no route to is passed over beside another.
    """
    answers = await asyncio.gather(
        *(_answers(exchange, zone, address, deadline) for address in server.addresses)
    )
    if not any(answers):
        return (server.label,)
    return tuple(
        str(address)
        for address, answer in zip(server.addresses, answers, strict=True)
        if answer is False
    )


async def _answers(
    exchange: Exchange, zone: Zone, address: Endpoint, deadline: float
) -> bool | None:
    """None: this machine has no route there."""
    until = min(deadline, asyncio.get_running_loop().time() + SERVER_SECONDS)
    peer, query = Peer(address, zone.name), make_query(zone.apex, RdataType.SOA)
    try:
        reply = await exchange.ask(peer, query, over=Over.UDP, deadline=until)
    except NoRoute:
        return None
    except DnsFault:
        return False
    return _serves(reply, zone)


def _serves(reply: Reply, zone: Zone) -> bool:
    return reply.is_authoritative and any(
        rrset.rdtype == RdataType.SOA and name == zone.apex for name, rrset in reply.answer
    )
