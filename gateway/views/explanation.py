"""How a hostname is judged, in words: pure, from what was found to rows for a person.

A row is a topic and a sentence. The verdicts (`views.verdicts`) are the last ones: there a terminal
stops, and they may point to what stands above them. A fault is told once. Shows no key, neither a
secret of TSIG nor a certificate's. `explaining` finds out; called by `gateway explain`, whose
`cli.explanation_json` says the same to programs, and by the page.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gateway.access.foresight import NO_TIME
from gateway.certificates.ledger import Granted
from gateway.contract.addresses import Address, first_unicast, parse_prefix
from gateway.dns.health import CLOCKS_AGREE_SECONDS
from gateway.dns.marker import Markers
from gateway.dns.situation import Presence
from gateway.views import issuances, verdicts
from gateway.views.holdings import whose_words
from gateway.views.times import time_and_age

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from gateway.access.foresight import Asker, Coverage, Foreseen
    from gateway.certificates.ledger import Held
    from gateway.certificates.outlook import Outlook
    from gateway.contract import DnsRecord
    from gateway.contract.names import Hostname
    from gateway.dns.situation import (
        ChallengeSeen,
        MarkerSeen,
        NameSeen,
        PrimarySeen,
        ServerSeen,
        ZoneSeen,
    )
    from gateway.dns.zones import Zone
    from gateway.store.documents import Document

    Row = tuple[str, str]

CLIENTS_SHOWN: Final = 10
_CLOCKS_AGREE_SECONDS: Final = 2.0
_USUAL_ADDRESSES: Final = (Address("A", 0xC0000201), Address("AAAA", 0x20010DB8 << 96 | 1))
"""192.0.2.1 and 2001:db8::1, of the ranges for documentation (RFC 5737, RFC 3849)."""

_PRESENCES: Final = {
    Presence.APEX: "the apex of the zone {zone}, which is never a client's",
    Presence.IN_USE: "within the zone {zone}, in use",
    Presence.MADE_UP: "within the zone {zone}; a wildcard answers for it, it has no records itself",
    Presence.EMPTY: "within the zone {zone}, an empty non-terminal: names below it have records",
    Presence.ABSENT: "within the zone {zone}; nothing is there",
}


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a part could not be asked, in one sentence."""

    sentence: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """All that was found out. `zones`: every one that matches, the one that holds the name first.

    `authorities`: what each one's ledger would say to an order. `authority_names` are what people
    call the authorities, by directory URL, `zone_names` the configured zones. `unreadable`: a
    sentence for each client that can't be read, and was left out.
    """

    hostname: Hostname
    zones: tuple[Zone, ...]
    zone: ZoneSeen | None
    name: NameSeen | None
    challenge: ChallengeSeen
    document: Document | Fault
    outlook: Outlook | None
    coverage: tuple[Coverage, ...] | Fault
    authorities: dict[str, Granted | Held | Fault]
    asker: Asker
    record: DnsRecord
    sync: Foreseen
    certificate: Foreseen
    authority_names: Mapping[str, str]
    zone_names: tuple[str, ...]
    now_ms: int
    unreadable: tuple[str, ...] = ()

    @property
    def says_anything(self) -> bool:
        """Whether Redis or the zone told something."""
        is_silent = self.name is None or self.name.presence is Presence.UNKNOWN
        return not (isinstance(self.document, Fault) and is_silent)


def first_allowed(prefixes: Iterable[str]) -> str:
    """A unicast address out of the first prefix that has one; one for documentation if it can."""
    for prefix in filter(None, map(parse_prefix, prefixes)):
        usual = next(filter(prefix.holds, _USUAL_ADDRESSES), None)
        if (address := usual or first_unicast(prefix)) is not None:
            return str(address)
    return str(_USUAL_ADDRESSES[0])


def lines(found: Explanation) -> Iterator[str]:
    """What a person reads on a terminal: a topic is named once, before its first line."""
    before = ""
    for topic, text in rows(found):
        yield f"{'' if topic == before else topic:<12} {text}".rstrip()
        before = topic


def rows(found: Explanation) -> Iterator[Row]:
    """Topics and sentences, the verdicts last, after a row with neither. A fault is told once."""
    faults = _faults(found)
    told: dict[str, str] = {}
    for topic, text in _rows(found):
        shown = text
        for fault in faults:
            if fault in shown and told.setdefault(fault, topic) != topic:
                shown = _pointing(shown, fault, told[fault])
        yield topic, shown


def _faults(found: Explanation) -> tuple[str, ...]:
    """What several parts may have met, in the order in which it is told."""
    zone, name, target = found.zone, found.name, found.challenge.target
    of_primaries = () if zone is None else zone.primaries
    sentences = [each.health.detail for each in of_primaries if not each.health.ok]
    sentences += [each.fault or "" for each in (zone, name, found.challenge, target) if each]
    of_redis = (found.document, found.coverage, *found.authorities.values())
    sentences += [each.sentence for each in of_redis if isinstance(each, Fault)]
    # What no time was left for says so in its place: no part is to blame for another's.
    return tuple(dict.fromkeys(each for each in sentences if each not in ("", NO_TIME)))


def _pointing(text: str, fault: str, topic: str) -> str:
    """The text with a topic where it repeats a fault that stands there."""
    shown = text.replace(f": {fault}", f" (see {topic})").replace(fault, f"(see {topic})")
    shown = shown.replace(") (see ", ", ")  # of two primaries
    return f"not known {shown}" if shown.startswith("(") else shown


def _rows(found: Explanation) -> Iterator[Row]:
    yield "hostname", found.hostname
    yield from _zone_rows(found)
    if found.name is not None:
        yield from _name_rows(found.name)
    yield from _challenge_rows(found.challenge)
    yield from _holder_rows(found)
    yield from _policy_rows(found.coverage, found.now_ms)
    for name, verdict in found.authorities.items():
        yield "authority", f"{name}: {_order_words(verdict)}"
    if not found.authorities:
        yield "authority", "none is configured: certificates are off"
    yield "", ""
    yield from verdicts.rows(found)


def _zone_rows(found: Explanation) -> Iterator[Row]:
    if not found.zones:
        names = ", ".join(found.zone_names) or "none"
        yield "zone", f"no configured zone holds the hostname; configured: {names}"
        return
    zone, *shorter = found.zones
    others = ", ".join(each.name for each in shorter)
    yield "zone", f"{zone.name}{f' (also configured above it: {others})' if others else ''}"
    yield "key", f"{zone.key.name}, {zone.key.algorithm}"
    if found.zone is None:
        return
    for number, primary in enumerate(found.zone.primaries):
        yield "standby" if number else "primary", _primary_words(primary)
    if found.zone.fault is not None:
        yield "servers", f"not known: {found.zone.fault}"
    for server in found.zone.servers:
        yield "servers", _server_words(server, zone.silent_server_seconds)


def _primary_words(primary: PrimarySeen) -> str:
    health = primary.health
    if not health.ok:
        return health.detail  # it tells of the clock where that is what is wrong
    words = f"{primary.endpoint} serves the zone and takes updates"
    skew = health.clock_skew_seconds
    if health.is_clock_off:
        return f"{words}; its clock is {CLOCKS_AGREE_SECONDS} s or more off this one"
    if skew is None:
        return words
    if abs(skew) < _CLOCKS_AGREE_SECONDS:
        return f"{words}; its clock and this one agree"
    side = "ahead of" if skew > 0 else "behind"
    return f"{words}; its clock is {abs(skew):.0f} s {side} this one"


def _server_words(seen: ServerSeen, bound_seconds: float | None) -> str:
    addresses = ", ".join(map(str, seen.server.addresses)) or "no address"
    where = "" if addresses == seen.server.label else f" ({addresses})"
    if seen.is_answering is None:
        return f"{seen.server.label}{where} may answer or not: {NO_TIME}"
    if seen.is_answering:
        return f"{seen.server.label}{where} answers"
    end = "" if bound_seconds is None else f" until {bound_seconds:g} s after their publication"
    return f"{seen.server.label}{where} does not answer: challenges wait for it{end}"


def _name_rows(name: NameSeen) -> Iterator[Row]:
    if name.fault is not None:
        is_unknown = name.presence is Presence.UNKNOWN
        yield "name", f"not known: {name.fault}" if is_unknown else name.fault
        return
    yield "name", _PRESENCES[name.presence].format(zone=name.zone.name)
    for record in name.records:
        yield "records", f"{record.type} {record.value}, TTL {record.ttl} s"
    for marker in name.markers:
        yield "marker", _marker_words(marker)


def _marker_words(marker: MarkerSeen) -> str:
    key = f"of the key {marker.key_id}"
    if marker.owner is None:
        return _unproven_words(marker)
    whose = whose_words(marker.owner)
    if marker.is_whole:
        return f"{key}: it proves the address to be that of {whose}"
    if marker.is_there:
        return f"{key}: it was made for an address of {whose}, which is not the only one there"
    return f"{key}: it proves a record of {whose}, whose address is not there any more"


def _unproven_words(marker: MarkerSeen) -> str:
    if marker.is_own_key:
        return (
            f"of this gateway's key {marker.key_id}: it proves neither this ownership nor this"
            " address: another owner's, or the address was edited; try --client … --app-id …"
        )
    if not Markers.is_well_formed(marker.text):
        return "what looks like one is none: it was altered, or is of a newer release"
    return f"of the key {marker.key_id}, which the keyring lacks: another gateway's, or a lost one"


def _challenge_rows(challenge: ChallengeSeen) -> Iterator[Row]:
    for number, name in enumerate(challenge.steps):
        yield "challenge", f"which is an alias of {name}" if number else name
    if challenge.fault is not None:
        yield "challenge", challenge.fault
    target = challenge.target
    if target is None:
        return
    if target.fault is not None:
        yield "challenge", target.fault
        return
    made_up = ", made up by a wildcard" if target.presence is Presence.MADE_UP else ""
    values = [record.value for record in target.records if record.type == "TXT"]
    there = f"TXT there{made_up}: {', '.join(values)}" if values else "no TXT is there"
    yield "challenge", f"in the zone {target.zone.name}; {there}"
    interruption = challenge.interruption
    if interruption is not None:
        yield (
            "challenge",
            f"while one is there, {interruption.name} does not resolve: only the wildcard"
            f" {interruption.wildcard} answers for it",
        )
    if challenge.interruption_fault is not None:
        yield "challenge", f"what it would interrupt is not known: {challenge.interruption_fault}"


def _holder_rows(found: Explanation) -> Iterator[Row]:
    document = found.document
    if isinstance(document, Fault):
        yield "holder", f"not known: {document.sentence}"
        return
    claim = document.claim
    if claim is not None:
        since = time_and_age(claim["sinceMs"], found.now_ms)
        note = f": {claim['note']}" if claim["note"] else ""
        yield "claim", f"an operator's, since {since}{note}"
    holder = document.holder
    yield "holder", "nobody" if holder is None else whose_words(holder)
    record = document.record
    if record is not None:
        how = "published" if record["published"] else "about to be published"
        yield "record", f"{record['type']} {record['value']}, TTL {record['ttl']} s, {how}"
    if found.outlook is not None:
        names = found.authority_names
        for label, text in issuances.rows(found.outlook, names, found.now_ms):
            if label not in {"hostname", "held by"}:
                yield label, text


def _policy_rows(coverage: tuple[Coverage, ...] | Fault, now_ms: int) -> Iterator[Row]:
    if isinstance(coverage, Fault):
        yield "policy", f"not known: {coverage.sentence}"
        return
    for each in coverage[:CLIENTS_SHOWN]:
        client = each.client
        may = ", ".join(sorted(client.capabilities)) or "nothing"
        prefixes = ", ".join(client.allowed_dns_record_addresses) or "none"
        patterns = ", ".join(each.patterns)
        token = "" if client.newest_credential(now_ms) else "; without a token that is valid"
        yield "policy", f"{client.client_id} by {patterns}: {may}; addresses {prefixes}{token}"
    more = len(coverage) - CLIENTS_SHOWN
    if more > 0:
        yield "policy", f"and {more} more, which --json lists"
    if not coverage:
        yield "policy", "no client's patterns match the hostname"


def _order_words(verdict: Granted | Held | Fault) -> str:
    if isinstance(verdict, Fault):
        return f"not known: {verdict.sentence}"
    return "has room for an order" if isinstance(verdict, Granted) else f"held: {verdict.detail}"
