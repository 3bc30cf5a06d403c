"""One address record per ownership: publish, replace, withdraw, and say what is at a name.

Responsible for joining the parts: the zone, the proof, the plan and its rounds, and for turning
every fault into an `Outcome` that says whether asking again can help. Must not know policy, claims
or databases: `held` and `remembered` are what the caller knows of them. Called by `holdings`.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

import dns.name
from dns.rcode import Rcode
from dns.rdatatype import RdataType

from gateway.contract import DnsRecord
from gateway.dns.errors import (
    Contended,
    DnsFault,
    Misplaced,
    OutcomeUnknown,
    OutOfFiles,
    ReplyUnsigned,
    ServerRefused,
    TsigRejected,
)
from gateway.dns.exchange import Exchange
from gateway.dns.marker import Markers
from gateway.dns.names import to_name, to_text
from gateway.dns.observe import Observation, observe
from gateway.dns.outcome import FoundRecord, Outcome, OutcomeKind, PublishedOtherwise
from gateway.dns.owner import Owner
from gateway.dns.plan import (
    Plan,
    Wanted,
    decide_inspect,
    decide_publish,
    decide_restamp,
    decide_withdraw,
)
from gateway.dns.proof import Ours, find_marks, find_ours, is_marked
from gateway.dns.records import (
    ADDRESS_TYPES,
    CNAME,
    TXT,
    Rdata,
    RRset,
    address_value,
    found_records,
    txt_rdata,
)
from gateway.dns.settle import Decide, Settlement, settle
from gateway.dns.update import Delete, NameFree
from gateway.dns.zones import Zone, Zones

_FAILURES = (ServerRefused, TsigRejected, ReplyUnsigned, OutcomeUnknown, Contended)
_WITH_EVIDENCE = (OutcomeKind.CONFLICT, OutcomeKind.OURS, OutcomeKind.FREE)
_WITH_CHANGES = (OutcomeKind.CREATED, OutcomeKind.UPDATED, OutcomeKind.DELETED)
_WITH_RECORD = (OutcomeKind.CREATED, OutcomeKind.UPDATED, OutcomeKind.UNCHANGED)

_WORDS = {
    OutcomeKind.CREATED: "{name} was published in the zone {zone}.",
    OutcomeKind.UPDATED: "{name} was replaced in the zone {zone}.",
    OutcomeKind.UNCHANGED: "The zone {zone} holds this record already.",
    OutcomeKind.DELETED: "This ownership has no record at {name} any more.",
    OutcomeKind.CONFLICT: "{name} is held by records that the gateway did not publish.",
    OutcomeKind.FREE: "Nothing is published at {name}.",
    OutcomeKind.OURS: "{name} carries this ownership's own record.",
}


class Publisher:
    """Serves all zones and any number of concurrent calls; holds no state between them."""

    def __init__(self, zones: Zones, markers: Markers, exchange: Exchange) -> None:
        self._zones = zones
        self._markers = markers
        self._exchange = exchange

    async def publish(
        self,
        owner: Owner,
        record: DnsRecord,
        *,
        held: bool,
        remembered: DnsRecord | None,
        sought: Sequence[DnsRecord] = (),
        deadline: float,
    ) -> Outcome:
        """Make `record` the owner's one record. May be repeated; never raises a DnsFault.

        `held`: the ownership holds the hostname already, by its certificate. `remembered`: its
        record as the database has it, which helps to prove a marker whose address is gone. So do
        `sought`, those that it may have got instead: their outcome was unknown.
        """
        marker = self._markers.sign(owner, record.type, record.value)
        wanted = Wanted(record, marker)

        def decide(observed: Observation, refusal: Rcode | None) -> Plan:
            ours = find_ours(observed, owner, self._markers, (record, remembered, *sought))
            return decide_publish(
                observed,
                wanted,
                ours,
                held=held,
                in_use=refusal == Rcode.YXDOMAIN,
                made_up=refusal == Rcode.NXRRSET,
            )

        return await self._settled(owner, decide, record, deadline, mark=marker)

    async def withdraw(
        self,
        owner: Owner,
        *,
        remembered: DnsRecord | None,
        sought: Sequence[DnsRecord] = (),
        sparing: Owner | None = None,
        only: Sequence[DnsRecord] | None = None,
        deadline: float,
    ) -> Outcome:
        """Remove the owner's record and marker, and nothing else. May be repeated.

        `sparing`: an ownership whose record stays, should the address be proven for both of them.
        `only`: nothing is removed where the owner has another address there than these.

        Raises: PublishedOtherwise: so it is.
        """

        def decide(observed: Observation, refusal: Rcode | None) -> Plan:
            ours = find_ours(observed, owner, self._markers, (remembered, *sought))
            if sparing is not None and find_ours(observed, sparing, self._markers).addresses:
                ours = Ours()
            if only is not None:
                _require_only(observed, ours, only)
            return decide_withdraw(observed, ours, made_up=refusal == Rcode.NXRRSET)

        return await self._settled(owner, decide, None, deadline)

    async def inspect(self, owner: Owner, *, deadline: float) -> Outcome:
        """FREE, OURS or CONFLICT, and changes nothing: may the owner take hold of the hostname?"""

        def decide(observed: Observation, refusal: Rcode | None) -> Plan:
            ours = find_ours(observed, owner, self._markers)
            return decide_inspect(observed, ours, in_use=refusal == Rcode.YXDOMAIN)

        return await self._settled(owner, decide, None, deadline)

    async def restamp(
        self, owner: Owner, *, remembered: DnsRecord | None, deadline: float
    ) -> Outcome:
        """Replace the owner's markers of other keys by the first key's. May be repeated.

        UPDATED, or UNCHANGED when there is none to replace: the addresses stay in any case.
        """

        def decide(observed: Observation, refusal: Rcode | None) -> Plan:
            marks = find_marks(observed, owner, self._markers, (remembered,))
            return decide_restamp(observed, marks, made_up=refusal == Rcode.NXRRSET)

        return await self._settled(owner, decide, None, deadline)

    async def marker_keys(
        self, owner: Owner, *, remembered: DnsRecord | None, deadline: float
    ) -> tuple[str, ...]:
        """The ids of the keys that made the owner's markers at the name. Reads only.

        Raises: DnsFault when the name cannot be read.
        """
        zone = self._zones.holding(owner.hostname)
        if zone is None:
            raise Misplaced(f"No configured zone holds {owner.hostname}.")
        name = to_name(owner.hostname)
        observed = await observe(self._exchange, zone, name, deadline=deadline)
        marks = find_marks(observed, owner, self._markers, (remembered,))
        return tuple(self._markers.key_id_of(mark.text) for mark in marks)

    async def records_at(self, hostname: str, deadline: float) -> tuple[FoundRecord, ...]:
        """What lies at the name, as evidence; nothing when it can't be read.

        What a wildcard makes up for a name that is not in use is none.
        """
        zone = self._zones.holding(hostname)
        if zone is None:
            return ()

        try:
            return await self._evidence(zone, to_name(hostname), deadline)
        except DnsFault:
            return ()

    async def _evidence(
        self, zone: Zone, name: dns.name.Name, deadline: float
    ) -> tuple[FoundRecord, ...]:
        def decide(observed: Observation, refusal: Rcode | None) -> Plan:
            return decide_inspect(observed, Ours(), in_use=refusal == Rcode.YXDOMAIN)

        try:
            settlement = await settle(self._exchange, zone, name, decide, deadline=deadline)
        except Contended:
            # Changed too often to find out whether a wildcard made it up.
            observed = await observe(self._exchange, zone, name, deadline=deadline)
            return found_records(name, observed.rrsets)
        is_free = settlement.kind is OutcomeKind.FREE
        return () if is_free else found_records(name, settlement.observed.rrsets)

    async def _settled(
        self,
        owner: Owner,
        decide: Decide,
        record: DnsRecord | None,
        deadline: float,
        *,
        mark: str | None = None,
    ) -> Outcome:
        """`mark` is the marker that the call may have published before something came between."""
        zone = self._zones.holding(owner.hostname)
        if zone is None:
            detail = f"No configured zone holds {owner.hostname}."
            return Outcome(OutcomeKind.UNAVAILABLE, detail)
        name = to_name(owner.hostname)
        decided: list[_Decided] = []

        def decide_noted(observed: Observation, refusal: Rcode | None) -> Plan:
            plan = decide(observed, refusal)
            decided.append(_Decided(plan, observed))
            return plan

        try:
            settlement = await settle(self._exchange, zone, name, decide_noted, deadline=deadline)
        except DnsFault as fault:
            return _failed(fault)
        if _came_between(settlement, mark):
            detail = f"{owner.hostname} was published, and changed by somebody else at once."
            return _failed(OutcomeUnknown(detail))
        # Of a message whose reply was lost only an earlier round knows what it took out.
        done = decided if settlement.is_doubtful else decided[-1:]
        return _with_what_went(_outcome(settlement, record, zone), done)


def _came_between(settlement: Settlement, mark: str | None) -> bool:
    """Is it in conflict with what was published itself by a message whose reply was lost?"""
    texts = settlement.observed.rrset(TXT)
    return (
        mark is not None
        and settlement.kind is OutcomeKind.CONFLICT
        and settlement.is_doubtful
        and texts is not None
        and txt_rdata(mark) in texts.rdatas
    )


def _require_only(observed: Observation, ours: Ours, only: Sequence[DnsRecord]) -> None:
    """Raises `PublishedOtherwise` where the owner has an address that is none of these."""
    meant = {(each.type, each.value) for each in only}
    there = {
        (rrset.rdtype.name, address_value(rdata))
        for rrset in ours.addresses
        for rdata in rrset.rdatas
    }
    if not there <= meant:
        raise PublishedOtherwise(found_records(observed.name, ours.addresses))


@dataclass(frozen=True, slots=True)
class _Decided:
    """One round's plan, and what it was made upon."""

    plan: Plan
    observed: Observation


def _with_what_went(outcome: Outcome, rounds: Sequence[_Decided]) -> Outcome:
    """The outcome with what the change has taken out, and what lies there after a withdrawal."""
    if outcome.kind not in _WITH_CHANGES:
        return outcome
    went = {
        change.rdata for each in rounds for change in each.plan.changes if type(change) is Delete
    }
    if not went and outcome.kind is not OutcomeKind.DELETED:
        return outcome
    seen = dict.fromkeys(
        record
        for each in rounds
        for record in _records_of(each.observed, ADDRESS_TYPES, went.__contains__)
    )
    last = rounds[-1]
    # What was made up from a wildcard is not there (`made_up` of the plan).
    is_made_up = last.plan.prerequisites == (NameFree(last.observed.name),)
    left: tuple[FoundRecord, ...] = ()
    if outcome.kind is OutcomeKind.DELETED and not is_made_up:
        left = _records_of(last.observed, (*ADDRESS_TYPES, CNAME), lambda each: each not in went)
    is_unmarked = any(rdata.rdtype == TXT for rdata in went)
    return replace(outcome, removed=tuple(seen), unmarked=is_unmarked, left=left)


def _records_of(
    observed: Observation,
    types: Collection[RdataType],
    is_meant: Callable[[Rdata], bool],
) -> tuple[FoundRecord, ...]:
    meant = [
        RRset(rrset.rdtype, rrset.ttl, tuple(filter(is_meant, rrset.rdatas)))
        for rrset in observed.rrsets
        if rrset.rdtype in types
    ]
    return found_records(observed.name, meant)


def _outcome(settlement: Settlement, record: DnsRecord | None, zone: Zone) -> Outcome:
    kind, observed = settlement.kind, settlement.observed
    found = found_records(observed.name, observed.rrsets) if kind in _WITH_EVIDENCE else ()
    return Outcome(
        kind,
        _WORDS[kind].format(name=to_text(observed.name), zone=zone.name),
        record if kind in _WITH_RECORD else None,
        found,
        marked=bool(found) and is_marked(observed),
    )


def _failed(fault: DnsFault) -> Outcome:
    is_failure = isinstance(fault, _FAILURES)
    return Outcome(
        OutcomeKind.FAILED if is_failure else OutcomeKind.UNAVAILABLE,
        fault.detail,
        retry_after_seconds=fault.retry_after_seconds,
        unknown=isinstance(fault, OutcomeUnknown),
        short=isinstance(fault, OutOfFiles),
    )
