"""Decides what to do about one name: pure functions from what was read to one update, or an answer.

    at the name                                        publish          withdraw    inspect
    nothing                                            create           nothing     free
    our address, proven, as wanted                     unchanged        delete it   ours
    our address, proven, other value, type or TTL      replace          delete it   ours
      and a foreign address of the wanted type         conflict
    our marker, its address gone                       create again     marker      ours *
    our marker, and an address edited or foreign       conflict         marker      ours *
    nothing of ours; no address, no CNAME; held        create beside    nothing     conflict
    nothing of ours; anything else                     conflict         nothing     conflict
    it is the zone's apex                              conflict         nothing     conflict

    * where an address at the name or the remembered record proves the marker; else a conflict

"Held" is an ownership that got the name before, for its certificate: records that came later
disturb it only where they stand in the way.

What was read may have been made up from a wildcard, as long as it proves nothing of ours. Then the
plan is "create, if the name is not in use": a wildcard's name isn't, and gets its record; a name
in use refuses, and the next round decides for certain (`in_use`).

Every plan's prerequisites state what it was based on. TTLs are no part of that: RFC 2136 can't ask
for them. An RRset has one TTL, so a marker beside other TXT values takes theirs and changes nothing
of them. Must not do I/O. Called by `publisher`; `settle` carries plans out.
"""

from dataclasses import dataclass

import dns.rdata
from dns.rdatatype import RdataType

from gateway.contract import DnsRecord
from gateway.dns.observe import Observation
from gateway.dns.outcome import OutcomeKind
from gateway.dns.proof import Ours
from gateway.dns.records import AAAA, ADDRESS_TYPES, CNAME, TXT, A, address_rdata, txt_rdata
from gateway.dns.update import (
    Add,
    Change,
    Delete,
    NameFree,
    Prerequisite,
    RRsetAbsent,
    RRsetIs,
)


@dataclass(frozen=True, slots=True)
class Plan:
    """One update, and the answer once it is through; without prerequisites just the answer."""

    kind: OutcomeKind
    prerequisites: tuple[Prerequisite, ...] = ()
    changes: tuple[Change, ...] = ()

    @property
    def is_answer(self) -> bool:
        """Is there nothing to send?"""
        return not self.prerequisites and not self.changes


@dataclass(frozen=True, slots=True)
class Wanted:
    """The record to publish and the marker text that proves it."""

    record: DnsRecord
    marker: str

    @property
    def rdtype(self) -> RdataType:
        """A or AAAA."""
        return RdataType[self.record.type]

    @property
    def rdata(self) -> dns.rdata.Rdata:
        """The address."""
        return address_rdata(self.record.type, self.record.value)


_CONFLICT = Plan(OutcomeKind.CONFLICT)


def decide_publish(
    observed: Observation, wanted: Wanted, ours: Ours, *, held: bool, in_use: bool
) -> Plan:
    """How `wanted` gets to the name, as the table above has it."""
    if observed.is_apex:
        return _CONFLICT
    if ours.addresses:
        return _replace(observed, wanted, ours)
    is_blocked = observed.has(*ADDRESS_TYPES, CNAME)
    if ours.is_anything:
        return _CONFLICT if is_blocked else _create_beside(observed, wanted, ours)
    if not observed.rrsets or not in_use:
        return _create_unused(observed, wanted)
    if held and not is_blocked:
        return _create_beside(observed, wanted, ours)
    return _CONFLICT


def decide_withdraw(observed: Observation, ours: Ours) -> Plan:
    """How the owner's record leaves the name; nothing else is touched."""
    if not ours.is_anything:
        return Plan(OutcomeKind.DELETED)
    name = observed.name
    seen: tuple[Prerequisite, ...]
    if ours.addresses:
        seen = tuple(RRsetIs(name, rrset) for rrset in ours.addresses)
    else:
        # The address isn't ours any more. Should it become so again, the marker must not go alone.
        seen = tuple(_as_seen(observed, rdtype) for rdtype in ADDRESS_TYPES)
    return Plan(
        OutcomeKind.DELETED,
        (*seen, _as_seen(observed, TXT)),
        _deletions(observed, ours),
    )


def decide_inspect(observed: Observation, ours: Ours, *, in_use: bool) -> Plan:
    """May the owner take hold of the name? Writes nothing."""
    if observed.is_apex:
        return _CONFLICT
    if ours.is_anything:
        return Plan(OutcomeKind.OURS)
    if not observed.rrsets:
        return Plan(OutcomeKind.FREE)
    if not in_use:
        return Plan(OutcomeKind.FREE, (NameFree(observed.name),))
    return _CONFLICT


def _replace(observed: Observation, wanted: Wanted, ours: Ours) -> Plan:
    current = ours.address(wanted.rdtype)
    if current is None and observed.has(wanted.rdtype):
        return _CONFLICT
    is_alone = len(ours.addresses) == 1
    if is_alone and current is not None and _is_wanted(current.rdatas, current.ttl, wanted):
        return Plan(OutcomeKind.UNCHANGED)
    name = observed.name
    prerequisites: list[Prerequisite] = [RRsetIs(name, rrset) for rrset in ours.addresses]
    if current is None:
        prerequisites.append(RRsetAbsent(name, wanted.rdtype))
    return Plan(
        OutcomeKind.UPDATED,
        (*prerequisites, _as_seen(observed, TXT)),
        (*_deletions(observed, ours), *_additions(observed, wanted, ours)),
    )


def _create_unused(observed: Observation, wanted: Wanted) -> Plan:
    name, ttl = observed.name, wanted.record.ttl
    return Plan(
        OutcomeKind.CREATED,
        (NameFree(name),),
        (Add(name, ttl, wanted.rdata), Add(name, ttl, txt_rdata(wanted.marker))),
    )


def _create_beside(observed: Observation, wanted: Wanted, ours: Ours) -> Plan:
    blocking = tuple(RRsetAbsent(observed.name, rdtype) for rdtype in (A, AAAA, CNAME))
    return Plan(
        OutcomeKind.CREATED,
        (*blocking, _as_seen(observed, TXT)),
        (*_deletions(observed, ours), *_additions(observed, wanted, ours)),
    )


def _deletions(observed: Observation, ours: Ours) -> tuple[Change, ...]:
    rdatas = [rdata for rrset in ours.addresses for rdata in rrset.rdatas]
    return tuple(Delete(observed.name, rdata) for rdata in (*rdatas, *ours.markers))


def _additions(observed: Observation, wanted: Wanted, ours: Ours) -> tuple[Change, ...]:
    texts = observed.rrset(TXT)
    ttl = wanted.record.ttl
    is_beside_foreign = texts is not None and set(texts.rdatas) - set(ours.markers)
    marker_ttl = texts.ttl if texts is not None and is_beside_foreign else ttl
    return (
        Add(observed.name, ttl, wanted.rdata),
        Add(observed.name, marker_ttl, txt_rdata(wanted.marker)),
    )


def _is_wanted(rdatas: tuple[dns.rdata.Rdata, ...], ttl: int, wanted: Wanted) -> bool:
    return rdatas == (wanted.rdata,) and ttl == wanted.record.ttl


def _as_seen(observed: Observation, rdtype: RdataType) -> Prerequisite:
    rrset = observed.rrset(rdtype)
    if rrset is None:
        return RRsetAbsent(observed.name, rdtype)
    return RRsetIs(observed.name, rrset)
