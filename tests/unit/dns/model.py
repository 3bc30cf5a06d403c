"""What a server does with an update at one name (RFC 2136, 3.2 and 3.4), in memory.

BIND is asked in the integration tests; this is for tables and properties over thousands of states.
"""

from collections.abc import Iterable

from dns.rdatatype import RdataType

from gateway.dns.observe import Observation
from gateway.dns.plan import Plan
from gateway.dns.records import Rdata, RRset
from gateway.dns.update import Add, NameFree, NameInUse, Prerequisite, RRsetAbsent, RRsetIs

Contents = dict[RdataType, tuple[int, frozenset[Rdata]]]


def contents(rrsets: Iterable[RRset]) -> Contents:
    return {rrset.rdtype: (rrset.ttl, frozenset(rrset.rdatas)) for rrset in rrsets}


def applied(before: Observation, plan: Plan) -> Contents | None:
    """What is at the name afterwards; None when a prerequisite fails."""
    records = contents(before.rrsets)
    if not all(_holds(prerequisite, records) for prerequisite in plan.prerequisites):
        return None
    for change in plan.changes:
        rdtype = change.rdata.rdtype
        ttl, rdatas = records.get(rdtype, (0, frozenset()))
        if isinstance(change, Add):
            records[rdtype] = (change.ttl, rdatas | {change.rdata})
        else:
            records[rdtype] = (ttl, rdatas - {change.rdata})
    return {rdtype: (ttl, rdatas) for rdtype, (ttl, rdatas) in records.items() if rdatas}


def _holds(prerequisite: Prerequisite, records: Contents) -> bool:
    match prerequisite:
        case NameFree():
            return not records
        case NameInUse():
            return bool(records)
        case RRsetAbsent(_, rdtype):
            return rdtype not in records
        case RRsetIs(_, rrset):
            return records.get(rrset.rdtype, (0, None))[1] == frozenset(rrset.rdatas)
        case _:
            return prerequisite.rdtype in records
