"""Whose record lies at a name, out of the ownerships that it may be: by the marker, as always.

A marker names nobody, so it is proven by trying: every candidate against every marker, for every
address at the name and for the record that the database remembers. What a wildcard makes up, a
marker that somebody copied to it too, lies at no name: an update that states what was read tells.

`judge_marks` is pure. Must not change a zone, nor decide what follows from a verdict
(`holdings.rebuilding`). Called by `holdings`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from dns.rcode import Rcode

from gateway.contract import DnsRecord
from gateway.contract.bounds import GATEWAY_CLIENT_HOSTNAME_CONTRACT as BOUNDS
from gateway.contract.names import Hostname
from gateway.dns.challenges import challenge_name
from gateway.dns.errors import ChallengeUnavailable, DnsFault, Misplaced
from gateway.dns.exchange import Exchange
from gateway.dns.marker import Markers
from gateway.dns.names import to_name, to_text
from gateway.dns.observe import Observation, observe
from gateway.dns.outcome import FoundRecord, OutcomeKind
from gateway.dns.owner import Owner
from gateway.dns.plan import Plan, decide_confirm
from gateway.dns.proof import Ours, find_ours, marker_texts
from gateway.dns.records import ADDRESS_TYPES, TXT, A, address_value, found_records, txt_text
from gateway.dns.settle import settle
from gateway.dns.transfer import Challenge, Contents, read_zone
from gateway.dns.zones import Zone, Zones


class Verdict(StrEnum):
    """What the markers at a name prove."""

    PROVEN = "one candidate owns the one address"
    AMBIGUOUS = "several records, or several candidates, are proven, or may be"
    EDITED = "a candidate's marker is there, beside another address than it was made for"
    ADDRESS_GONE = "there is a marker and no address"
    UNPROVEN = "made with a key of the keyring, for none of the candidates and these addresses"
    UNKNOWN_KEY = "made with a key that the keyring lacks"
    MALFORMED = "begins like a marker and is none"
    UNMARKED = "there is no marker"


@dataclass(frozen=True, slots=True)
class Sight:
    """One name as it was read.

    `owner` and `record` are what is proven (PROVEN), `owner` alone where only the marker is
    (EDITED, ADDRESS_GONE). `key_ids` are those that the markers name; `markers` counts them.
    """

    verdict: Verdict
    owner: Owner | None = None
    record: DnsRecord | None = None
    key_ids: tuple[str, ...] = ()
    markers: int = 0
    found: tuple[FoundRecord, ...] = ()


@dataclass(frozen=True, slots=True)
class Remembered:
    """The record that the database says an ownership published last, or was about to publish."""

    owner: Owner
    record: DnsRecord


class Surveyor:
    """Reads zones and names; serves all zones, holds no state between calls."""

    def __init__(self, zones: Zones, markers: Markers, exchange: Exchange) -> None:
        self._zones = zones
        self._markers = markers
        self._exchange = exchange

    async def contents(self, zone: Zone) -> Contents:
        """What lies in a zone, where a transfer is allowed.

        Raises: the faults of `read_zone`.
        """
        return await read_zone(self._exchange, zone)

    async def look(
        self,
        zone: Zone,
        hostname: Hostname,
        candidates: Iterable[Owner],
        remembered: Remembered | None,
        *,
        deadline: float,
    ) -> Sight:
        """Read a name of the zone and judge its markers. May be repeated.

        Raises: DnsFault when the name can't be read, or does not belong to the zone.
        """
        owners = tuple(candidates)

        def decide(observed: Observation, refusal: Rcode | None) -> Plan:
            if judge_marks(observed, self._markers, owners).verdict is Verdict.UNMARKED:
                return Plan(OutcomeKind.DELETED)
            return decide_confirm(observed, made_up=refusal == Rcode.NXRRSET)

        name = to_name(hostname)
        settlement = await settle(self._exchange, zone, name, decide, deadline=deadline)
        if settlement.kind is OutcomeKind.FREE:
            return Sight(Verdict.UNMARKED)
        return judge_marks(settlement.observed, self._markers, owners, remembered)

    async def is_away(self, hostname: Hostname, *, deadline: float) -> bool:
        """Does no configured zone hold the name, or only one that has it delegated or moved away?

        False where the zone can't be asked.
        """
        zone = self._zones.holding(hostname)
        if zone is None:
            return True
        try:
            await self.look(zone, hostname, (), None, deadline=deadline)
        except Misplaced:
            return True
        except DnsFault:
            return False
        return False

    async def challenges_of(
        self, zone: Zone, hostname: Hostname, *, deadline: float
    ) -> tuple[Challenge, ...]:
        """The TXT values at a hostname's challenge name itself, aliases not followed.

        Raises: DnsFault.
        """
        try:
            name = challenge_name(hostname)
        except ChallengeUnavailable:
            return ()
        if self._zones.holding(name) != zone:
            return ()
        observed = await observe(self._exchange, zone, name, deadline=deadline)
        rrset = observed.rrset(TXT)
        texts = (txt_text(rdata) for rdata in (rrset.rdatas if rrset else ()))
        return tuple(Challenge(to_text(name), text) for text in texts if text is not None)


def judge_marks(
    observed: Observation,
    markers: Markers,
    candidates: Iterable[Owner],
    remembered: Remembered | None = None,
) -> Sight:
    """What the markers at a name prove, and for whom."""
    marks = marker_texts(observed)
    found = found_records(observed.name, observed.rrsets)
    whole = filter(Markers.is_well_formed, marks)
    key_ids = tuple(sorted({Markers.key_id_of(text) for text in whole}))
    if not marks:
        return Sight(Verdict.UNMARKED, found=found)
    proofs = _proofs(observed, markers, candidates, remembered)
    verdict, owner, record = _judged(observed, markers, proofs)
    if verdict is None:
        verdict = _unproven(observed, markers, marks)
    return Sight(verdict, owner, record, key_ids, len(marks), found)


def record_of(ours: Ours) -> DnsRecord | None:
    """The one record that is proven; None when it is none or several.

    A TTL proves nothing and may have been edited: it is kept within what a record may have.
    """
    if len(ours.addresses) != 1:
        return None
    (rrset,) = ours.addresses
    ttl = min(max(rrset.ttl, BOUNDS.min_ttl_seconds), BOUNDS.max_ttl_seconds)
    return DnsRecord(
        type="A" if rrset.rdtype == A else "AAAA",
        value=address_value(rrset.rdatas[0]),
        ttl=ttl,
    )


def _proofs(
    observed: Observation,
    markers: Markers,
    candidates: Iterable[Owner],
    remembered: Remembered | None,
) -> dict[Owner, Ours]:
    proofs = {}
    owners = dict.fromkeys(candidates)
    if remembered is not None:
        owners[remembered.owner] = None
    for owner in owners:
        known = remembered.record if remembered and remembered.owner == owner else None
        ours = find_ours(observed, owner, markers, (known,))
        if ours.is_anything:
            proofs[owner] = ours
    return proofs


def _judged(
    observed: Observation, markers: Markers, proofs: dict[Owner, Ours]
) -> tuple[Verdict | None, Owner | None, DnsRecord | None]:
    """By what is proven; nothing when nothing is."""
    owning = {owner: ours for owner, ours in proofs.items() if ours.addresses}
    if len(owning) == 1:
        ((owner, ours),) = owning.items()
        record = record_of(ours)
        if record is not None and not _may_be_anothers(observed, markers, proofs):
            return Verdict.PROVEN, owner, record
    if owning or len(proofs) > 1:
        return Verdict.AMBIGUOUS, None, None
    for owner in proofs:
        has_address = observed.has(*ADDRESS_TYPES)
        return (Verdict.EDITED if has_address else Verdict.ADDRESS_GONE), owner, None
    return None, None, None


def _may_be_anothers(observed: Observation, markers: Markers, proofs: dict[Owner, Ours]) -> bool:
    """Are there an address and a marker that may belong together, for somebody not supposed?"""
    addresses = {rrset for ours in proofs.values() for rrset in ours.addresses}
    if all(rrset in addresses for rrset in observed.rrsets if rrset.rdtype in ADDRESS_TYPES):
        return False
    proven = {txt_text(rdata) for ours in proofs.values() for rdata in ours.markers}
    return any(markers.knows_key_of(text) for text in marker_texts(observed) if text not in proven)


def _unproven(observed: Observation, markers: Markers, marks: list[str]) -> Verdict:
    """Of several markers, what the best of them is."""
    if not any(map(Markers.is_well_formed, marks)):
        return Verdict.MALFORMED
    if not any(map(markers.knows_key_of, marks)):
        return Verdict.UNKNOWN_KEY
    return Verdict.UNPROVEN if observed.has(*ADDRESS_TYPES) else Verdict.ADDRESS_GONE
