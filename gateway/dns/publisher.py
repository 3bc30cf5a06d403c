"""One address record per ownership: publish, replace, withdraw, and say what is at a name.

Responsible for joining the parts: the zone, the proof, the plan and its rounds, and for turning
every fault into an `Outcome` that says whether asking again can help. Must not know policy, claims
or databases: `held` and `remembered` are what the caller knows of them. Called by `holdings`.
"""

from dns.rcode import Rcode

from gateway.contract import DnsRecord
from gateway.dns.errors import (
    Contended,
    DnsFault,
    OutcomeUnknown,
    ReplyUnsigned,
    ServerRefused,
    TsigRejected,
)
from gateway.dns.exchange import Exchange
from gateway.dns.marker import Markers
from gateway.dns.names import to_name
from gateway.dns.observe import Observation, observe
from gateway.dns.outcome import FoundRecord, Outcome, OutcomeKind
from gateway.dns.owner import Owner
from gateway.dns.plan import Plan, Wanted, decide_inspect, decide_publish, decide_withdraw
from gateway.dns.proof import find_ours
from gateway.dns.records import found_records
from gateway.dns.settle import Decide, Settlement, settle
from gateway.dns.zones import Zone, Zones

_FAILURES = (ServerRefused, TsigRejected, ReplyUnsigned, OutcomeUnknown, Contended)
_WITH_EVIDENCE = (OutcomeKind.CONFLICT, OutcomeKind.OURS)
_WITH_RECORD = (OutcomeKind.CREATED, OutcomeKind.UPDATED, OutcomeKind.UNCHANGED)


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
        deadline: float,
    ) -> Outcome:
        """Make `record` the owner's one record. May be repeated; never raises a DnsFault.

        `held`: the ownership holds the hostname already, by its certificate. `remembered`: its
        record as the database has it, which helps to prove a marker whose address is gone.
        """
        marker = self._markers.sign(owner, record.type, record.value)
        wanted = Wanted(record, marker)

        def decide(observed: Observation, refusal: Rcode | None) -> Plan:
            ours = find_ours(observed, owner, self._markers, (record, remembered))
            in_use = refusal == Rcode.YXDOMAIN
            return decide_publish(observed, wanted, ours, held=held, in_use=in_use)

        return await self._settled(owner, decide, record, deadline)

    async def withdraw(
        self, owner: Owner, *, remembered: DnsRecord | None, deadline: float
    ) -> Outcome:
        """Remove the owner's record and marker, and nothing else. May be repeated."""

        def decide(observed: Observation, _refusal: Rcode | None) -> Plan:
            return decide_withdraw(
                observed, find_ours(observed, owner, self._markers, (remembered,))
            )

        return await self._settled(owner, decide, None, deadline)

    async def inspect(self, owner: Owner, *, deadline: float) -> Outcome:
        """FREE, OURS or CONFLICT, and changes nothing: may the owner take hold of the hostname?"""

        def decide(observed: Observation, refusal: Rcode | None) -> Plan:
            ours = find_ours(observed, owner, self._markers)
            return decide_inspect(observed, ours, in_use=refusal == Rcode.YXDOMAIN)

        return await self._settled(owner, decide, None, deadline)

    async def records_at(self, hostname: str, deadline: float) -> tuple[FoundRecord, ...]:
        """What lies at the name, as evidence; nothing when it can't be read."""
        zone = self._zones.holding(hostname)
        if zone is None:
            return ()
        try:
            observed = await observe(self._exchange, zone, to_name(hostname), deadline=deadline)
        except DnsFault:
            return ()
        return found_records(observed.name, observed.rrsets)

    async def _settled(
        self, owner: Owner, decide: Decide, record: DnsRecord | None, deadline: float
    ) -> Outcome:
        zone = self._zones.holding(owner.hostname)
        if zone is None:
            detail = f"No configured zone holds {owner.hostname}."
            return Outcome(OutcomeKind.UNAVAILABLE, detail)
        name = to_name(owner.hostname)
        try:
            settlement = await settle(self._exchange, zone, name, decide, deadline=deadline)
        except DnsFault as fault:
            return _failed(fault)
        return _outcome(settlement, record, zone)


def _outcome(settlement: Settlement, record: DnsRecord | None, zone: Zone) -> Outcome:
    kind, observed = settlement.kind, settlement.observed
    found = found_records(observed.name, observed.rrsets) if kind in _WITH_EVIDENCE else ()
    name = observed.name.to_text(omit_final_dot=True)
    words = {
        OutcomeKind.CREATED: f"{name} was published in the zone {zone.name}.",
        OutcomeKind.UPDATED: f"{name} was replaced in the zone {zone.name}.",
        OutcomeKind.UNCHANGED: f"The zone {zone.name} holds this record already.",
        OutcomeKind.DELETED: f"This ownership has no record at {name} any more.",
        OutcomeKind.CONFLICT: f"{name} is held by records that the gateway did not publish.",
        OutcomeKind.FREE: f"Nothing is published at {name}.",
        OutcomeKind.OURS: f"{name} carries this ownership's own record.",
    }
    return Outcome(kind, words[kind], record if kind in _WITH_RECORD else None, found)


def _failed(fault: DnsFault) -> Outcome:
    is_failure = isinstance(fault, _FAILURES)
    return Outcome(
        OutcomeKind.FAILED if is_failure else OutcomeKind.UNAVAILABLE,
        fault.detail,
        retry_after_seconds=fault.retry_after_seconds,
        unknown=isinstance(fault, OutcomeUnknown),
    )
