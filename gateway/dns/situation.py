"""How a zone, a name in it and a hostname's challenge stand now, for a person to read.

Responsible for looking, with what decides otherwise: `health`, `observe`, `proof` and `challenges`.
Sends queries and updates without changes. Whatever cannot be found out is a sentence in its place,
so that the rest is told all the same. Must not decide what follows. Called by `gateway explain`.

Every `deadline` is a loop time, after which nothing is asked.
"""

import asyncio
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from enum import Enum

import dns.name
from dns.rcode import Rcode
from dns.rdatatype import RdataType

from gateway.contract import DnsRecord
from gateway.dns.challenges import Challenges, ChallengeTarget, Interruption
from gateway.dns.errors import ChallengeUnavailable, DnsFault, Misplaced
from gateway.dns.exchange import Exchange, Over
from gateway.dns.health import SERVER_SECONDS, ZoneHealth, check_zone, silent_at
from gateway.dns.marker import Markers
from gateway.dns.names import to_name, upwards
from gateway.dns.nameservers import NameServer, name_servers
from gateway.dns.observe import Observation, observe
from gateway.dns.outcome import FoundRecord
from gateway.dns.owner import Owner
from gateway.dns.primaries import at_a_primary
from gateway.dns.proof import find_marks, marker_texts
from gateway.dns.questions import ask_primary, make_query
from gateway.dns.records import address_value, found_records
from gateway.dns.update import NameFree, send_update
from gateway.dns.zones import Endpoint, Zone, Zones


class Presence(Enum):
    """What a name is."""

    APEX = "the zone's apex"
    IN_USE = "in use"
    MADE_UP = "made up by a wildcard"
    EMPTY = "an empty non-terminal"
    ABSENT = "not there"
    ELSEWHERE = "not the zone's"
    UNKNOWN = "not known"


@dataclass(frozen=True, slots=True)
class PrimarySeen:
    """One primary of a zone, and whether it can be worked with."""

    endpoint: Endpoint
    health: ZoneHealth


@dataclass(frozen=True, slots=True)
class ServerSeen:
    """A name server that must know a challenge, and whether it answers for the zone.

    `is_answering` is None where no time was left to wait for its answer.
    """

    server: NameServer
    is_answering: bool | None


@dataclass(frozen=True, slots=True)
class ZoneSeen:
    """A zone. `fault`: why the name servers are not known."""

    zone: Zone
    primaries: tuple[PrimarySeen, ...]
    servers: tuple[ServerSeen, ...]
    fault: str | None = None


@dataclass(frozen=True, slots=True)
class MarkerSeen:
    """A marker at a name, and who of those asked about it proves to be the owner of.

    `is_own_key`: it is well-formed and names a key that this gateway has. `is_there`: the address
    that it was made for lies at the name. `is_whole`: and no other of its type, so that the marker
    proves it.
    """

    text: str
    key_id: str
    is_own_key: bool
    owner: Owner | None = None
    is_there: bool = False
    is_whole: bool = False


@dataclass(frozen=True, slots=True)
class NameSeen:
    """A name as its zone's primary has it. `fault`: why it is elsewhere or not known."""

    name: str
    zone: Zone
    presence: Presence
    records: tuple[FoundRecord, ...] = ()
    markers: tuple[MarkerSeen, ...] = ()
    fault: str | None = None


@dataclass(frozen=True, slots=True)
class ChallengeSeen:
    """Where a challenge goes, alias by alias; `fault`: why it can go nowhere.

    `interruption`: what does not resolve while it is there, where the zone allows that;
    `interruption_fault`: why that is not known.
    """

    steps: tuple[str, ...]
    target: NameSeen | None = None
    fault: str | None = None
    interruption: Interruption | None = None
    interruption_fault: str | None = None


def matching_zones(zones: Zones, hostname: str) -> tuple[Zone, ...]:
    """Every configured zone whose suffix matches; the one that holds the name is the first."""
    by_apex = {zone.apex: zone for zone in zones.all}
    return tuple(
        by_apex[name] for name in upwards(to_name(hostname), dns.name.root) if name in by_apex
    )


async def see_zone(exchange: Exchange, zone: Zone, deadline: float) -> ZoneSeen:
    """Ask each primary of a zone and each of its name servers."""
    at_each = zone.at_each_primary()
    (servers, fault), healths = await asyncio.gather(
        _servers_or_fault(exchange, zone, deadline),
        asyncio.gather(*(check_zone(exchange, one, deadline) for one in at_each)),
    )
    seen = zip(at_each, healths, strict=True)
    return ZoneSeen(
        zone, tuple(PrimarySeen(one.primary, health) for one, health in seen), servers, fault
    )


async def _servers_or_fault(
    exchange: Exchange, zone: Zone, deadline: float
) -> tuple[tuple[ServerSeen, ...], str | None]:
    try:
        return await _see_servers(exchange, zone, deadline), None
    except DnsFault as found:
        return (), found.detail


async def see_name(
    exchange: Exchange,
    zone: Zone,
    name: str,
    deadline: float,
    *,
    markers: Markers,
    owners: Iterable[Owner] = (),
    known: Iterable[DnsRecord | None] = (),
) -> NameSeen:
    """What lies at a name, and which of the `owners` a marker proves, for a record seen or `known`.

    `name` is a domain name that lies in `zone`.
    """

    async def at(one: Zone) -> tuple[Observation, Presence]:
        observed = await observe(exchange, one, to_name(name), deadline=deadline)
        return observed, await _presence(exchange, one, observed, deadline)

    try:
        observed, presence = await at_a_primary(exchange, zone, at)
    except DnsFault as fault:
        presence = Presence.ELSEWHERE if isinstance(fault, Misplaced) else Presence.UNKNOWN
        return NameSeen(name, zone, presence, fault=fault.detail)
    return NameSeen(
        name,
        zone,
        presence,
        found_records(observed.name, observed.rrsets),
        markers_seen(observed, markers, owners, tuple(known)),
    )


def markers_seen(
    observed: Observation,
    markers: Markers,
    owners: Iterable[Owner],
    known: Collection[DnsRecord | None] = (),
) -> tuple[MarkerSeen, ...]:
    """Every marker at a name, each judged by itself, for a record seen or `known`."""
    seen = {
        text: MarkerSeen(text, markers.key_id_of(text), markers.knows_key_of(text))
        for text in marker_texts(observed)
    }
    for owner in owners:
        for mark in find_marks(observed, owner, markers, known):
            there = observed.rrset(RdataType.from_text(mark.type))
            values = [] if there is None else [address_value(rdata) for rdata in there.rdatas]
            seen[mark.text] = replace(
                seen[mark.text],
                owner=owner,
                is_there=mark.value in values,
                is_whole=values == [mark.value],
            )
    return tuple(seen.values())


async def see_challenge(
    exchange: Exchange, challenges: Challenges, hostname: str, deadline: float, *, markers: Markers
) -> ChallengeSeen:
    """Where the hostname's challenge would be published, and what lies there."""
    steps: list[str] = []
    try:
        target = await challenges.locate(hostname, deadline, steps)
    except ChallengeUnavailable as fault:
        return ChallengeSeen(tuple(steps), fault=fault.detail)
    seen, (interruption, unknown) = await asyncio.gather(
        see_name(exchange, target.zone, target.name, deadline, markers=markers),
        _interruption(challenges, target, deadline),
    )
    return ChallengeSeen(tuple(steps), seen, interruption=interruption, interruption_fault=unknown)


async def _interruption(
    challenges: Challenges, target: ChallengeTarget, deadline: float
) -> tuple[Interruption | None, str | None]:
    """What a challenge would interrupt where the zone allows that, and why that is not known."""
    if not target.zone.interrupts_wildcards:
        return None, None
    try:
        return await challenges.interruption(target, deadline), None
    except DnsFault as fault:
        return None, fault.detail


async def _see_servers(exchange: Exchange, zone: Zone, deadline: float) -> tuple[ServerSeen, ...]:
    servers = await name_servers(exchange, zone, deadline)
    # Nobody who was waited for less long is silent.
    is_waited_for = asyncio.get_running_loop().time() + SERVER_SECONDS <= deadline
    silent = await asyncio.gather(
        *(silent_at(exchange, zone, server, deadline) for server in servers)
    )
    return tuple(
        ServerSeen(server, is_answering=not where if is_waited_for or not where else None)
        for server, where in zip(servers, silent, strict=True)
    )


async def _presence(
    exchange: Exchange, zone: Zone, observed: Observation, deadline: float
) -> Presence:
    if observed.is_apex:
        return Presence.APEX
    if observed.rrsets:
        # A server answers a wildcard's records for a name that has none; asked whether the name is
        # in use, it tells.
        rcode = await send_update(
            exchange, zone, (NameFree(observed.name),), (), deadline=deadline, prefer=Over.TCP
        )
        return Presence.MADE_UP if rcode == Rcode.NOERROR else Presence.IN_USE
    query = make_query(observed.name, RdataType.TXT)
    reply = await ask_primary(exchange, zone, query, deadline)
    return Presence.ABSENT if reply.rcode == Rcode.NXDOMAIN else Presence.EMPTY
