"""What the markers at a name prove, for whom, and what a hand-over makes of them."""

from dataclasses import replace

import pytest

from gateway.contract.names import AppId
from gateway.dns.handing import judged
from gateway.dns.outcome import OutcomeKind
from gateway.dns.records import TXT, RRset, txt_rdata
from gateway.dns.survey import Remembered, Verdict, judge_marks
from gateway.dns.update import Add, Delete, RRsetAbsent, RRsetIs
from tests.unit.dns.building import (
    A_EDITED,
    A_OURS,
    AAAA_OURS,
    FOREIGN_MARKERS,
    MARKERS,
    NAME,
    OLD_MARKERS,
    OTHER,
    OWNER,
    SPF,
    V4,
    V4_OTHER,
    V6,
    marker_of,
    observed,
    rrset,
    txt,
)

OURS = marker_of(V4)
THEIRS = marker_of(V4, OTHER)
LOST = marker_of(V4).replace(":new:", ":lost:")
UNSUPPOSED = marker_of(V6, replace(OTHER, app_id=AppId("nobody:names:it")))
TWO_ADDRESSES = rrset("A", V4.value, V4_OTHER.value)


def seen(address: RRset | None, *texts: str) -> tuple[RRset, ...]:
    return (*(() if address is None else (address,)), *((txt(*texts),) if texts else ()))


@pytest.mark.parametrize(
    ("rrsets", "verdict"),
    [
        (seen(None), Verdict.UNMARKED),
        (seen(A_OURS, SPF), Verdict.UNMARKED),
        (seen(A_OURS, f'"{OURS}" "cut in two"'), Verdict.UNMARKED),
        (seen(A_OURS, OURS), Verdict.PROVEN),
        (seen(A_OURS, OURS, SPF), Verdict.PROVEN),
        (seen(A_OURS, marker_of(V4, markers=OLD_MARKERS)), Verdict.PROVEN),
        (seen(A_OURS, OURS, LOST), Verdict.PROVEN),
        (seen(A_OURS, OURS, THEIRS), Verdict.AMBIGUOUS),
        ((*seen(A_OURS, OURS, marker_of(V6)), AAAA_OURS), Verdict.AMBIGUOUS),
        ((*seen(A_OURS, OURS, UNSUPPOSED), AAAA_OURS), Verdict.AMBIGUOUS),
        ((*seen(A_OURS, OURS, LOST), AAAA_OURS), Verdict.PROVEN),
        ((*seen(A_OURS, OURS), AAAA_OURS), Verdict.PROVEN),
        (seen(A_OURS, OURS, UNSUPPOSED), Verdict.PROVEN),
        (seen(TWO_ADDRESSES, OURS), Verdict.EDITED),
        (seen(A_EDITED, OURS), Verdict.UNPROVEN),
        (seen(A_OURS, marker_of(V4, markers=FOREIGN_MARKERS)), Verdict.UNPROVEN),
        (seen(A_OURS, LOST), Verdict.UNKNOWN_KEY),
        (seen(A_OURS, "gateway-owner="), Verdict.MALFORMED),
        (seen(A_OURS, OURS.replace("v1", "v2")), Verdict.MALFORMED),
        (seen(A_OURS, f"{OURS}x"), Verdict.MALFORMED),
        (seen(A_OURS, LOST, "gateway-owner=nonsense"), Verdict.UNKNOWN_KEY),
        (seen(None, OURS), Verdict.ADDRESS_GONE),
        (seen(rrset("CNAME", "elsewhere.test."), OURS), Verdict.ADDRESS_GONE),
    ],
)
def test_markers_at_a_name_are_judged(rrsets: tuple[RRset, ...], verdict: Verdict) -> None:
    sight = judge_marks(observed(*rrsets), MARKERS, (OTHER, OWNER))
    assert sight.verdict is verdict
    assert (sight.record is not None) is (verdict is Verdict.PROVEN)
    assert len(sight.found) == sum(len(each.rdatas) for each in rrsets)


def test_proven_record_is_told_with_its_owner() -> None:
    sight = judge_marks(observed(A_OURS, txt(OURS, LOST)), MARKERS, (OTHER, OWNER))
    assert (sight.owner, sight.record) == (OWNER, V4)
    assert (sight.key_ids, sight.markers) == (("lost", "new"), 2)


@pytest.mark.parametrize(("ttl", "kept"), [(0, 60), (60, 60), (86_400, 86_400), (604_800, 86_400)])
def test_ttl_is_kept_within_what_a_record_may_have(ttl: int, kept: int) -> None:
    sight = judge_marks(observed(replace(A_OURS, ttl=ttl), txt(OURS)), MARKERS, (OWNER,))
    assert sight.record == V4.model_copy(update={"ttl": kept})


@pytest.mark.parametrize(
    ("address", "verdict"), [(A_EDITED, Verdict.EDITED), (None, Verdict.ADDRESS_GONE)]
)
def test_remembered_record_proves_whose_marker_it_is(
    address: RRset | None, verdict: Verdict
) -> None:
    at_name = observed(*seen(address, OURS))
    sight = judge_marks(at_name, MARKERS, (OTHER,), Remembered(OWNER, V4))
    assert (sight.verdict, sight.owner, sight.record) == (verdict, OWNER, None)


def test_handing_over_replaces_the_marker_and_states_all_that_was_read() -> None:
    at_name = observed(A_OURS, txt(OURS, SPF, ttl=900))
    plan, handed = judged(at_name, MARKERS, OWNER, OTHER)
    texts = at_name.rrset(TXT)
    assert texts is not None
    assert plan.kind is OutcomeKind.UPDATED
    assert plan.prerequisites == (
        RRsetIs(NAME, A_OURS),
        RRsetAbsent(NAME, AAAA_OURS.rdtype),
        RRsetIs(NAME, texts),
    )
    assert plan.changes == (
        Delete(NAME, txt_rdata(OURS)),
        Add(NAME, 900, txt_rdata(THEIRS)),
    )
    assert (handed.record, handed.was_done) == (V4, False)


def test_both_keys_markers_of_the_giver_go() -> None:
    old = marker_of(V4, markers=OLD_MARKERS)
    plan, _ = judged(observed(A_OURS, txt(OURS, old)), MARKERS, OWNER, OTHER)
    deleted = {each.rdata for each in plan.changes if isinstance(each, Delete)}
    assert deleted == {txt_rdata(OURS), txt_rdata(old)}


def test_handing_over_again_states_what_was_read_and_does_nothing() -> None:
    plan, handed = judged(observed(A_OURS, txt(THEIRS)), MARKERS, OWNER, OTHER)
    assert (plan.kind, plan.changes) == (OutcomeKind.UNCHANGED, ())
    assert plan.prerequisites[0] == RRsetIs(NAME, A_OURS)
    assert (handed.record, handed.was_done) == (V4, True)


@pytest.mark.parametrize("proof", [OURS, THEIRS])
def test_givers_marker_for_the_record_that_is_remembered_goes_too(proof: str) -> None:
    stale = marker_of(V4_OTHER)
    at_name = observed(A_OURS, txt(proof, stale))
    plan, handed = judged(at_name, MARKERS, OWNER, OTHER, (V4_OTHER, V4))
    deleted = {each.rdata for each in plan.changes if isinstance(each, Delete)}
    assert (plan.kind, handed.record) == (OutcomeKind.UPDATED, V4)
    assert deleted == {txt_rdata(stale)} | ({txt_rdata(OURS)} if proof == OURS else set())


def test_marker_of_both_becomes_the_takers_alone() -> None:
    plan, handed = judged(observed(A_OURS, txt(OURS, THEIRS)), MARKERS, OWNER, OTHER)
    assert plan.changes == (Delete(NAME, txt_rdata(OURS)), Add(NAME, 300, txt_rdata(THEIRS)))
    assert handed.record == V4


@pytest.mark.parametrize(
    "rrsets",
    [
        seen(None),
        seen(A_OURS),
        seen(None, OURS),
        seen(A_EDITED, OURS),
        seen(TWO_ADDRESSES, OURS),
        seen(A_OURS, LOST),
        (*seen(A_OURS, OURS, marker_of(V6)), AAAA_OURS),
    ],
)
def test_what_is_not_the_givers_one_record_is_not_handed_over(rrsets: tuple[RRset, ...]) -> None:
    plan, handed = judged(observed(*rrsets), MARKERS, OWNER, OTHER)
    assert (plan.kind, plan.changes) == (OutcomeKind.DELETED, ())
    assert handed.record is None


def test_apex_is_not_handed_over() -> None:
    at_name = replace(observed(A_OURS, txt(OURS)), apex=NAME)
    plan, handed = judged(at_name, MARKERS, OWNER, OTHER)
    assert (plan.kind, handed.record) == (OutcomeKind.DELETED, None)
