"""What holds for every plan, over states put together at random."""

from collections.abc import Sequence

import dns.rdata
from hypothesis import given, strategies as st

from gateway.contract import DnsRecord
from gateway.dns.observe import Observation
from gateway.dns.outcome import OutcomeKind
from gateway.dns.plan import Plan, Wanted, decide_publish, decide_withdraw
from gateway.dns.proof import find_ours
from gateway.dns.records import RRset
from tests.unit.dns.building import (
    MARKERS,
    OLD_MARKERS,
    OTHER,
    OWNER,
    V4,
    V4_OTHER,
    V6,
    marker_of,
    observed,
    rrset,
)
from tests.unit.dns.model import Contents, applied, contents

OUR_RECORDS = (V4, V4_OTHER, V6)
OUR_TEXTS = tuple(
    marker_of(each, markers=ring) for each in OUR_RECORDS for ring in (MARKERS, OLD_MARKERS)
)
TEXTS = ('"v=spf1 -all"', marker_of(V4, owner=OTHER), "gateway-owner=broken", *OUR_TEXTS)

ttls = st.sampled_from([60, 300, 3600])
wanted_records = st.builds(
    lambda record, ttl: DnsRecord(type=record.type, value=record.value, ttl=ttl),
    st.sampled_from(OUR_RECORDS),
    ttls,
)


def rrsets(type_: str, texts: Sequence[str]) -> st.SearchStrategy[list[RRset]]:
    some = st.sets(st.sampled_from(texts), max_size=2)
    return st.builds(
        lambda chosen, ttl: [rrset(type_, *chosen, ttl=ttl)] if chosen else [], some, ttls
    )


states = st.builds(
    lambda *parts: observed(*[each for part in parts for each in part]),
    rrsets("A", [V4.value, V4_OTHER.value, "203.0.113.7"]),
    rrsets("AAAA", [V6.value, "2001:db8:bad::1"]),
    rrsets("TXT", TEXTS),
    rrsets("CAA", ['0 issue "ca.test"']),
)
remembered_records = st.none() | wanted_records


def plan_for(
    seen: Observation, record: DnsRecord, remembered: DnsRecord | None, *, held: bool, in_use: bool
) -> Plan:
    ours = find_ours(seen, OWNER, MARKERS, (record, remembered))
    return decide_publish(seen, Wanted(record, marker_of(record)), ours, held=held, in_use=in_use)


def foreign(records: Contents, proven: frozenset[dns.rdata.Rdata]) -> dict[object, int]:
    return {
        rdata: ttl for ttl, rdatas in records.values() for rdata in rdatas if rdata not in proven
    }


def proven_rdatas(seen: Observation, *known: DnsRecord | None) -> frozenset[dns.rdata.Rdata]:
    ours = find_ours(seen, OWNER, MARKERS, known)
    addresses = [rdata for each in ours.addresses for rdata in each.rdatas]
    return frozenset((*addresses, *ours.markers))


@given(states, wanted_records, remembered_records, st.booleans(), st.booleans())
def test_publish_leaves_foreign_records_and_their_ttl_alone(
    seen: Observation,
    record: DnsRecord,
    remembered: DnsRecord | None,
    held: bool,
    in_use: bool,
) -> None:
    plan = plan_for(seen, record, remembered, held=held, in_use=in_use)
    after = applied(seen, plan)
    if after is None:
        return
    proven = proven_rdatas(seen, record, remembered)
    before = foreign(contents(seen.rrsets), proven)
    made = {change.rdata for change in plan.changes}
    assert {
        rdata: ttl for rdata, ttl in foreign(after, proven).items() if rdata not in made
    } == before
    assert not made & before.keys()


@given(states, wanted_records, remembered_records, st.booleans(), st.booleans())
def test_publish_again_is_unchanged(
    seen: Observation,
    record: DnsRecord,
    remembered: DnsRecord | None,
    held: bool,
    in_use: bool,
) -> None:
    plan = plan_for(seen, record, remembered, held=held, in_use=in_use)
    after = applied(seen, plan)
    if plan.is_answer or after is None:
        return
    now = observed(*[RRset.of(rdtype, ttl, rdatas) for rdtype, (ttl, rdatas) in after.items()])
    again = plan_for(now, record, None, held=held, in_use=in_use)
    assert (again.kind, again.is_answer) == (OutcomeKind.UNCHANGED, True)


@given(states, states, wanted_records, remembered_records, st.booleans(), st.booleans())
def test_plan_is_refused_when_addresses_or_texts_have_changed(
    seen: Observation,
    meanwhile: Observation,
    record: DnsRecord,
    remembered: DnsRecord | None,
    held: bool,
    in_use: bool,
) -> None:
    """Whatever is replaced is what was read; a foreign record that came meanwhile stays."""
    plan = plan_for(seen, record, remembered, held=held, in_use=in_use)
    after = applied(meanwhile, plan)
    if plan.is_answer or after is None:
        return
    proven = proven_rdatas(seen, record, remembered)
    assert foreign(contents(meanwhile.rrsets), proven).keys() <= after_keys(after)


def after_keys(after: Contents) -> set[object]:
    return {rdata for _, rdatas in after.values() for rdata in rdatas}


@given(states, remembered_records)
def test_withdraw_leaves_everything_but_what_is_proven(
    seen: Observation, remembered: DnsRecord | None
) -> None:
    plan = decide_withdraw(seen, find_ours(seen, OWNER, MARKERS, (remembered,)))
    before = contents(seen.rrsets)
    proven = proven_rdatas(seen, remembered)
    after = applied(seen, plan)
    assert after is not None
    assert foreign(after, frozenset()) == foreign(before, proven)
