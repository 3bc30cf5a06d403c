"""Decides what to do about one name: pure functions from what was read to one update, or an answer.

    at the name                                        publish          withdraw    inspect
    nothing                                            create           nothing     free
    nothing seen, and yet the name is in use           conflict         nothing     conflict
    our address, proven, as wanted                     unchanged        delete it   ours
      and a stale marker of ours *                     replace          both go     ours
    our address, proven, other value, type or TTL      replace          delete it   ours
      and a foreign address of the wanted type         conflict
    our marker, our address and another of its type    conflict         marker      ours
    our marker *, its address gone                     create again     marker      conflict
    our marker *, and an address edited or foreign     conflict         marker      conflict
    nothing of ours; no address, no CNAME; held        create beside    nothing     conflict
    nothing of ours; anything else                     conflict         nothing     conflict
    it is the zone's apex                              conflict         nothing     conflict

    * where the remembered record proves it, or the one to be published; else it is nothing of ours.
      Inspecting, nothing is remembered.

"Held" is an ownership that got the name before, for its certificate: records that came later
disturb it only where they stand in the way.

Restamping touches no address: of the owner's markers, those that another key than the first made
are replaced by the first key's, whatever else lies there. Handing over touches none either: one
proven address gets another owner's marker in the place of its own.

What was read may have been made up from a wildcard. Where it proves nothing of ours, the plan is
"create, if the name is not in use": a wildcard's name isn't, and gets its record; a name in use
refuses, and the next round decides for certain (`in_use`). Where it does (somebody copied both, the
address and its marker, to the wildcard), a change of what was read is refused although nothing
has changed, and is followed by the same plan (`made_up`).

Every plan's prerequisites state what it was based on. TTLs are no part of that: RFC 2136 can't ask
for them. An RRset has one TTL, so a marker beside other TXT values takes theirs and changes nothing
of them. Must not do I/O. Called by `publisher`, `handing` and `survey`;
`settle` carries plans out.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from dns.rdatatype import RdataType

from gateway.contract import DnsRecord
from gateway.dns.observe import Observation
from gateway.dns.outcome import OutcomeKind
from gateway.dns.proof import Mark, Ours
from gateway.dns.records import AAAA, ADDRESS_TYPES, CNAME, TXT, A, Rdata, address_rdata, txt_rdata
from gateway.dns.update import (
    Add,
    Change,
    Delete,
    NameFree,
    NameInUse,
    Prerequisite,
    RRsetAbsent,
    RRsetIs,
)


@dataclass(frozen=True, slots=True)
class Plan:
    """One update, and the answer once it is through; without prerequisites just the answer.

    `restated`: what a mere answer says is there, TTL included, where what was read may lag: adding
    it changes nothing then.
    """

    kind: OutcomeKind
    prerequisites: tuple[Prerequisite, ...] = ()
    changes: tuple[Change, ...] = ()
    restated: tuple[Change, ...] = ()

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
    def rdata(self) -> Rdata:
        """The address."""
        return address_rdata(self.record.type, self.record.value)


_CONFLICT = Plan(OutcomeKind.CONFLICT)


def decide_publish(
    observed: Observation,
    wanted: Wanted,
    ours: Ours,
    *,
    held: bool,
    in_use: bool,
    made_up: bool = False,
) -> Plan:
    """How `wanted` gets to the name, as the table above has it.

    What stands in the way may be made up from a wildcard: a conflict is for a name in use only.
    """
    if observed.is_apex:
        return _CONFLICT
    if made_up:
        return _create_unused(observed, wanted)
    plan = _publish_beside_what_is_seen(observed, wanted, ours, held=held, in_use=in_use)
    return _create_unused(observed, wanted) if plan is _CONFLICT and not in_use else plan


def _publish_beside_what_is_seen(
    observed: Observation, wanted: Wanted, ours: Ours, *, held: bool, in_use: bool
) -> Plan:
    if ours.addresses:
        return _replace(observed, wanted, ours)
    is_blocked = observed.has(*ADDRESS_TYPES, CNAME)
    if ours.is_anything:
        return _CONFLICT if is_blocked else _create_beside(observed, wanted, ours)
    if not in_use or not _may_be_in_use(observed):
        return _create_unused(observed, wanted)
    if held and not is_blocked:
        return _create_beside(observed, wanted, ours)
    return _CONFLICT


def decide_withdraw(observed: Observation, ours: Ours, *, made_up: bool = False) -> Plan:
    """How the owner's record leaves the name; nothing else is touched."""
    if not ours.is_anything:
        return Plan(OutcomeKind.DELETED)
    name = observed.name
    if made_up:
        return Plan(OutcomeKind.DELETED, (NameFree(name),))
    return Plan(OutcomeKind.DELETED, _all_as_seen(observed), _deletions(observed, ours))


def decide_inspect(observed: Observation, ours: Ours, *, in_use: bool) -> Plan:
    """May the owner take hold of the name? Writes nothing."""
    if observed.is_apex:
        return _CONFLICT
    if ours.is_anything:
        return Plan(OutcomeKind.OURS)
    if not _may_be_in_use(observed):
        return Plan(OutcomeKind.FREE)
    if not in_use:
        return Plan(OutcomeKind.FREE, (NameFree(observed.name),))
    return _CONFLICT


def decide_restamp(observed: Observation, marks: Iterable[Mark], *, made_up: bool = False) -> Plan:
    """How the owner's markers come to be the first key's; the addresses stay as they are."""
    if made_up:
        return Plan(OutcomeKind.UNCHANGED, (NameFree(observed.name),))
    old = tuple(mark for mark in marks if not mark.is_fresh)
    texts = observed.rrset(TXT)
    if not old or texts is None:
        return Plan(OutcomeKind.UNCHANGED)
    name = observed.name
    # Two old markers of one record have one successor.
    successors = sorted({mark.fresh for mark in old})
    return Plan(
        OutcomeKind.UPDATED,
        _all_as_seen(observed),
        (
            *(Delete(name, mark.rdata) for mark in old),
            *(Add(name, texts.ttl, txt_rdata(fresh)) for fresh in successors),
        ),
    )


def decide_hand_over(observed: Observation, ours: Ours, marker: str) -> Plan:
    """How the owner's one address comes to be another's, by that one's marker; it stays itself.

    DELETED when the owner has none: what was seen may be made up from a wildcard.
    """
    texts = observed.rrset(TXT)
    if observed.is_apex or texts is None or len(ours.addresses) != 1:
        return Plan(OutcomeKind.DELETED)
    name = observed.name
    return Plan(
        OutcomeKind.UPDATED,
        _all_as_seen(observed),
        (
            *(Delete(name, mark) for mark in ours.markers),
            Add(name, texts.ttl, txt_rdata(marker)),
        ),
    )


def decide_confirm(observed: Observation, stale: Iterable[Rdata] = (), *, made_up: bool) -> Plan:
    """That the name is as it was read, but for the `stale` markers, which go.

    UNCHANGED or UPDATED; FREE where what was seen may be made up from a wildcard.
    """
    name = observed.name
    if made_up:
        return Plan(OutcomeKind.FREE, (NameFree(name),))
    deletions = tuple(Delete(name, marker) for marker in stale)
    kind = OutcomeKind.UPDATED if deletions else OutcomeKind.UNCHANGED
    return Plan(kind, _all_as_seen(observed), deletions)


def confirmations(observed: Observation, answer: Plan) -> tuple[Plan, ...]:
    """Updates of which the server takes one if the answer is so by its newest data.

    The apex is never the gateway's, whatever is there. Nothing is any owner's at a name that is not
    in use, so what was seen there was made up from a wildcard. A name in use at which nothing was
    seen holds types that the server does not tell.
    """
    if observed.is_apex:
        return ()
    name, kind = observed.name, answer.kind
    unused = Plan(kind, (NameFree(name),))
    if kind is OutcomeKind.FREE:
        return (unused,)
    if kind is OutcomeKind.DELETED:
        return (Plan(kind, _all_as_seen(observed)), unused)
    others = (rrset.rdtype for rrset in observed.rrsets)
    types = dict.fromkeys((*ADDRESS_TYPES, TXT, CNAME, *others))
    seen = tuple(_as_seen(observed, rdtype) for rdtype in types)
    if kind is OutcomeKind.CONFLICT and not observed.rrsets:
        seen = (NameInUse(name), *seen)
    return (Plan(kind, seen, answer.restated),)


def _replace(observed: Observation, wanted: Wanted, ours: Ours) -> Plan:
    current = ours.address(wanted.rdtype)
    if current is None and observed.has(wanted.rdtype):
        return _CONFLICT
    is_alone = len(ours.addresses) == 1 and not ours.stale
    if is_alone and current is not None and _is_wanted(current.rdatas, current.ttl, wanted):
        restated = _restated(observed, wanted, ours) if observed.may_lag else ()
        return Plan(OutcomeKind.UNCHANGED, restated=restated)
    return Plan(
        OutcomeKind.UPDATED,
        _all_as_seen(observed),
        (*_deletions(observed, ours), *_additions(observed, wanted, ours)),
    )


def _restated(observed: Observation, wanted: Wanted, ours: Ours) -> tuple[Change, ...]:
    """The record again, and its marker where that has the same TTL and no TXT value beside it."""
    name, ttl, texts = observed.name, wanted.record.ttl, observed.rrset(TXT)
    is_alone = texts is not None and texts.ttl == ttl and set(texts.rdatas) == set(ours.markers)
    markers = ours.markers if is_alone else ()
    return (Add(name, ttl, wanted.rdata), *(Add(name, ttl, marker) for marker in markers))


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


def _is_wanted(rdatas: tuple[Rdata, ...], ttl: int, wanted: Wanted) -> bool:
    return rdatas == (wanted.rdata,) and ttl == wanted.record.ttl


def _may_be_in_use(observed: Observation) -> bool:
    """Something was seen, or may have stayed unseen: then only an update tells for certain."""
    return bool(observed.rrsets) or observed.may_lag


def _all_as_seen(observed: Observation) -> tuple[Prerequisite, ...]:
    """What every removal of a marker demands: that the addresses are still what they were.

    A marker may prove an address that is none of ours for now, since a second one lies beside it;
    should that one go at the same moment, the marker must not go alone.
    """
    return tuple(_as_seen(observed, rdtype) for rdtype in (*ADDRESS_TYPES, TXT))


def _as_seen(observed: Observation, rdtype: RdataType) -> Prerequisite:
    rrset = observed.rrset(rdtype)
    if rrset is None:
        return RRsetAbsent(observed.name, rdtype)
    return RRsetIs(observed.name, rrset)
