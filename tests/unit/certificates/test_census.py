"""How a hostname counts in the figures: each once, at its borders, and whatever Redis holds."""

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from gateway.certificates.census import DAYS_LEFT, Census, CensusUnreadable, Tally
from gateway.contract.names import Hostname
from gateway.store.documents import Document, Unreadable, as_document

NOW_MS = 1_800_000_000_000
DAY_MS = 86_400_000


def document(**tables: Any) -> dict[str, str]:
    return {"version": "v", **{name: json.dumps(value) for name, value in tables.items()}}


def certificate(left_ms: int, *, days: int = 90, renew_in_ms: int = DAY_MS) -> dict[str, Any]:
    until_ms = NOW_MS + left_ms
    return {
        "valid_from_ms": until_ms - days * DAY_MS,
        "valid_until_ms": until_ms,
        "renew_at_ms": NOW_MS + renew_in_ms,
        "chain_pem": "-----BEGIN CERTIFICATE-----",
    }


def issuance(state: str, *, begun_ms: int = NOW_MS, changed_ms: int = NOW_MS) -> dict[str, Any]:
    return {"state": state, "begun_at_ms": begun_ms, "changed_at_ms": changed_ms}


def read(fields: dict[str, str] | None) -> Document | None:
    try:
        return None if fields is None else as_document(Hostname("a.example.test"), fields)
    except Unreadable:
        return None


def counted(*documents: dict[str, str] | None) -> Census:
    tally = Tally(NOW_MS)
    for each in documents:
        tally.add(read(each))
    return tally.census(NOW_MS + 250)


HOLDER = {"clientId": "a", "appId": "relay"}


@pytest.mark.parametrize(
    ("left_ms", "bucket"),
    [
        (-DAY_MS, "expired"),
        (0, "expired"),
        (1, "under-1"),
        (DAY_MS - 1, "under-1"),
        (DAY_MS, "under-3"),
        (3 * DAY_MS, "under-7"),
        (7 * DAY_MS, "under-14"),
        (14 * DAY_MS, "under-30"),
        (30 * DAY_MS, "under-60"),
        (60 * DAY_MS - 1, "under-60"),
        (60 * DAY_MS, "60-or-more"),
        (400 * DAY_MS, "60-or-more"),
    ],
)
def test_certificate_counts_once_by_the_days_it_has_left(left_ms: int, bucket: str) -> None:
    found = counted(document(certificate=certificate(left_ms)))
    assert {name: count for name, count in found.certificates.items() if count} == {bucket: 1}


def test_earliest_end_is_of_those_that_are_still_valid() -> None:
    found = counted(
        *(document(certificate=certificate(left)) for left in (-5 * DAY_MS, 9 * DAY_MS, 2 * DAY_MS))
    )
    assert found.earliest_end_ms == NOW_MS + 2 * DAY_MS


def test_renewal_is_due_from_its_time_until_the_certificate_is_another() -> None:
    due = certificate(20 * DAY_MS, renew_in_ms=0)
    found = counted(
        document(holder=HOLDER, certificate=due),
        document(holder=HOLDER, certificate=due, issuance=issuance("ordered")),
        document(holder=HOLDER, certificate=certificate(20 * DAY_MS, renew_in_ms=1)),
    )
    assert (found.renewals_due, found.near_end) == (2, 0)


@pytest.mark.parametrize(("left_days", "near"), [(9, 1), (10, 0), (0, 1), (-1, 1)])
def test_certificate_is_near_its_end_with_a_tenth_of_its_lifetime_left(
    left_days: int, near: int
) -> None:
    held = certificate(left_days * DAY_MS, days=90, renew_in_ms=-DAY_MS)
    assert counted(document(holder=HOLDER, certificate=held)).near_end == near


def test_certificate_that_nobody_wants_renewed_is_not_near_its_end() -> None:
    ending = certificate(DAY_MS, renew_in_ms=-DAY_MS)
    later = certificate(DAY_MS, renew_in_ms=DAY_MS)
    barred = {**issuance("waiting"), "barred": True}
    found = counted(
        document(certificate=ending),
        document(holder=HOLDER, certificate=later),
        document(holder=HOLDER, certificate=ending, issuance=barred),
    )
    assert (found.renewals_due, found.near_end) == (0, 0)


def test_issuances_count_by_state_and_the_oldest_by_when_it_began() -> None:
    found = counted(
        document(issuance=issuance("waiting", begun_ms=NOW_MS - 5_000, changed_ms=NOW_MS - 1_000)),
        document(issuance=issuance("waiting", changed_ms=NOW_MS - 2_000)),
        document(issuance=issuance("published", begun_ms=NOW_MS - 3_000)),
    )
    assert {state: count for state, count in found.issuances.items() if count} == {
        "waiting": 2,
        "published": 1,
    }
    assert found.oldest_issuance_ms == NOW_MS - 5_000


def test_debts_records_and_claims_are_counted() -> None:
    debts = [{"kind": "challenge-record"}, {"kind": "challenge-record"}, {"kind": "order"}]
    found = counted(document(debts=debts, record={"type": "A"}), document(claim={"sinceMs": 1}))
    assert found.debts == {"challenge-record": 2, "order": 1, "authorization": 0}
    assert (found.documents, found.records, found.claims) == (2, 1, 1)


def test_document_that_was_dropped_meanwhile_is_not_counted() -> None:
    assert counted({}).documents == 0


@pytest.mark.parametrize(
    "spoiled",
    [
        None,
        {"version": "v", "certificate": "{"},
        {"version": "v", "certificate": "[]"},
        document(certificate={"valid_from_ms": 1, "valid_until_ms": "soon", "renew_at_ms": 1}),
        document(certificate={"valid_from_ms": 1, "valid_until_ms": 10**400, "renew_at_ms": 1}),
        document(issuance=issuance("of a newer release")),
        document(debts=[1]),
        document(debts=[{"kind": "of a newer release"}]),
    ],
)
def test_unreadable_document_counts_as_such_and_hides_no_other(
    spoiled: dict[str, str] | None,
) -> None:
    found = counted(spoiled, document(certificate=certificate(DAY_MS)))
    assert (found.documents, found.unreadable) == (2, 1)
    assert sum(found.certificates.values()) == 1


def test_census_survives_its_way_through_redis() -> None:
    found = counted(
        document(certificate=certificate(DAY_MS)), document(issuance=issuance("ordered"))
    )
    assert Census.from_text(found.to_text()) == found
    assert Census.from_text(counted().to_text()) == counted()
    assert found.took_ms == 250


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)


@given(st.sampled_from(sorted(json.loads(counted().to_text()))), json_values)
def test_altered_census_is_refused_or_sound(name: str, value: Any) -> None:
    altered = json.dumps({**json.loads(counted().to_text()), name: value})
    try:
        read = Census.from_text(altered)
    except CensusUnreadable:
        return
    assert set(read.certificates) == set(DAYS_LEFT)
    assert all(count >= 0 for count in (*read.certificates.values(), read.documents, read.took_ms))


@given(st.text() | json_values.map(json.dumps))
def test_anything_else_in_its_place_is_refused(text: str) -> None:
    with pytest.raises(CensusUnreadable):
        Census.from_text(text)


@given(
    st.dictionaries(
        st.sampled_from(("certificate", "issuance", "debts", "holder", "record", "claim")),
        st.text() | json_values.map(json.dumps),
    )
)
def test_whatever_a_document_holds_is_counted_or_called_unreadable(fields: dict[str, str]) -> None:
    found = counted({"version": "v", **fields})
    assert found.documents == 1
    assert Census.from_text(found.to_text()) == found
