"""What confirms an answer that was read from a zone that may lag."""

from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from gateway.dns.observe import Observation, judge
from gateway.dns.outcome import OutcomeKind
from gateway.dns.plan import Plan, Wanted, confirmations, decide_inspect, decide_publish
from gateway.dns.proof import Ours, find_ours
from gateway.dns.records import ADDRESS_TYPES, CNAME, TXT, RRset, txt_rdata
from gateway.dns.update import Add, NameFree
from tests.unit.dns.building import (
    A_EDITED,
    A_OURS,
    AAAA_OURS,
    MARKERS,
    NAME,
    OWNER,
    SPF,
    V4,
    ZONE,
    marker_of,
    observed,
    reply,
    rrset,
    txt,
)
from tests.unit.dns.model import applied, contents

MX = rrset("MX", "10 mail.test.")
STATES = (
    observed(),
    observed(A_OURS),
    observed(A_EDITED),
    observed(AAAA_OURS),
    observed(txt(SPF)),
    observed(MX),
    observed(A_OURS, txt(marker_of(V4))),
    observed(A_OURS, txt(marker_of(V4), SPF)),
    observed(A_EDITED, txt(marker_of(V4))),
    observed(rrset("CNAME", "elsewhere.test.")),
)
KINDS = (OutcomeKind.UNCHANGED, OutcomeKind.OURS, OutcomeKind.CONFLICT, OutcomeKind.DELETED)


def is_confirmed(seen: Observation, newest: Observation, kind: OutcomeKind) -> bool:
    return any(applied(newest, plan) is not None for plan in confirmations(seen, Plan(kind)))


@given(st.sampled_from(STATES), st.sampled_from(KINDS))
def test_newest_reading_is_confirmed_and_nothing_is_written(
    seen: Observation, kind: OutcomeKind
) -> None:
    if kind is OutcomeKind.CONFLICT and not seen.rrsets:
        return
    plan = confirmations(seen, Plan(kind))[0]
    assert applied(seen, plan) == contents(seen.rrsets)


@given(st.sampled_from(STATES), st.sampled_from(STATES), st.sampled_from(KINDS))
def test_older_reading_is_confirmed_only_where_it_decides_the_same(
    seen: Observation, newest: Observation, kind: OutcomeKind
) -> None:
    if kind is OutcomeKind.DELETED:
        same = newest == observed() or deciding(seen) == deciding(newest)
    else:
        # Of types that were not seen, one that came meanwhile may stay unseen.
        same = all(newest.rrset(each.rdtype) == each for each in seen.rrsets)
        same &= {*deciding(newest), *aliases(newest)} <= {*seen.rrsets}
        if kind is OutcomeKind.CONFLICT:
            same &= bool(newest.rrsets)
    assert is_confirmed(seen, newest, kind) == same


def deciding(seen: Observation) -> list[RRset]:
    """What proves an owner: addresses and markers."""
    return [each for each in seen.rrsets if each.rdtype in (*ADDRESS_TYPES, TXT)]


def aliases(seen: Observation) -> list[RRset]:
    return [each for each in seen.rrsets if each.rdtype == CNAME]


@pytest.mark.parametrize("kind", KINDS)
def test_records_made_up_from_a_wildcard_confirm_only_that_nothing_is_there(
    kind: OutcomeKind,
) -> None:
    assert is_confirmed(observed(A_EDITED), observed(), kind) == (kind is OutcomeKind.DELETED)


def test_apex_needs_no_confirmation() -> None:
    seen = observed(rrset("SOA", "ns1.test. hostmaster.test. 1 3600 600 86400 60"), name=ZONE.name)
    assert confirmations(seen, Plan(OutcomeKind.CONFLICT)) == ()


@pytest.mark.parametrize(
    ("texts", "restated"),
    [
        (txt(marker_of(V4)), 2),
        (txt(marker_of(V4), ttl=900), 1),
        (txt(marker_of(V4), SPF), 1),
    ],
)
def test_unchanged_record_is_stated_again_and_no_text_of_others(
    texts: RRset, restated: int
) -> None:
    seen = replace(observed(A_OURS, texts), may_lag=True)
    wanted = Wanted(V4, marker_of(V4))
    ours = find_ours(seen, OWNER, MARKERS)
    answer = decide_publish(seen, wanted, ours, held=True, in_use=False)
    assert answer.is_answer
    changes = confirmations(seen, answer)[0].changes
    both = (Add(NAME, V4.ttl, wanted.rdata), Add(NAME, V4.ttl, txt_rdata(wanted.marker)))
    assert changes == both[:restated]
    assert applied(seen, confirmations(seen, answer)[0]) == contents(seen.rrsets)


SOA = "example.test. 60 SOA ns1.test. hostmaster.test. 1 3600 600 86400 60"
SIGNATURE = "example.test. 60 RRSIG SOA 13 2 60 20261213201236 20261129232939 1 example.test. AAAA"


@pytest.mark.parametrize(
    ("answer", "authority", "may_lag"),
    [
        ([f"{NAME} 60 A 192.0.2.1"], [SOA], False),
        ([], [SOA], False),
        ([], [SOA, SIGNATURE], True),
        (
            [
                f"{NAME} 60 A 192.0.2.1",
                f"{NAME} 60 RRSIG A 13 3 60 20261213201236 20261129232939 1 example.test. AAAA",
            ],
            [],
            True,
        ),
    ],
)
def test_answer_with_signatures_may_lag(
    answer: list[str], authority: list[str], may_lag: bool
) -> None:
    assert judge(reply(answer=answer, authority=authority), NAME, ZONE).may_lag is may_lag


@pytest.mark.parametrize("in_use", [False, True])
def test_name_in_use_at_which_nothing_is_seen_is_a_conflict(in_use: bool) -> None:
    seen = replace(observed(), may_lag=True)
    wanted = Wanted(V4, marker_of(V4))
    for plan in (
        decide_publish(seen, wanted, Ours(), held=False, in_use=in_use),
        decide_inspect(seen, Ours(), in_use=in_use),
    ):
        if in_use:
            assert plan == Plan(OutcomeKind.CONFLICT)
        else:
            assert plan.prerequisites == (NameFree(NAME),)


def test_free_answer_is_confirmed_by_a_name_that_is_not_in_use() -> None:
    plans = confirmations(observed(), Plan(OutcomeKind.FREE))
    assert [plan.prerequisites for plan in plans] == [(NameFree(NAME),)]
