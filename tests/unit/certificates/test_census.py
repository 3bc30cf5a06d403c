"""How a hostname counts in the figures: each once, at its borders, and whatever Redis holds."""

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from gateway.certificates.attention import LISTED_AT_MOST, AttentionLists, Concern
from gateway.certificates.census import (
    DAYS_LEFT,
    ENDS_DAYS,
    LATE_AFTER_MS,
    Census,
    CensusUnreadable,
    Tally,
)
from gateway.contract.names import Hostname
from gateway.store.documents import Document, Unreadable, as_document

NOW_MS = 1_800_000_000_000
DAY_MS = 86_400_000
HOUR_MS = 3_600_000


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


def issuance(
    state: str, *, begun_ms: int = NOW_MS, changed_ms: int = NOW_MS, **fields: Any
) -> dict[str, Any]:
    return {"state": state, "begun_at_ms": begun_ms, "changed_at_ms": changed_ms, **fields}


def read(fields: dict[str, str] | None) -> Document | None:
    try:
        return None if fields is None else as_document(Hostname("a.example.test"), fields)
    except Unreadable:
        return None


def counted(*documents: dict[str, str] | None) -> Census:
    tally = Tally(NOW_MS)
    for number, each in enumerate(documents):
        tally.add(name(number), read(each))
    return tally.census(NOW_MS + 250)


def name(number: int) -> Hostname:
    return Hostname(f"n{number}.example.test")


def named(found: Census) -> dict[str, list[str]]:
    """Whom the lists name, those that are empty left out."""
    return {concern: list(names) for concern, names in found.attention.items() if names}


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
    assert {left: count for left, count in found.certificates.items() if count} == {bucket: 1}


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
        document(debts=[{"kind": "order", "tries": "many"}]),
        document(debts=[{"kind": "order", "tries": -1}]),
    ],
)
def test_unreadable_document_counts_as_such_and_hides_no_other(
    spoiled: dict[str, str] | None,
) -> None:
    found = counted(spoiled, document(certificate=certificate(DAY_MS)))
    assert (found.documents, found.unreadable) == (2, 1)
    assert sum(found.certificates.values()) == 1
    assert named(found) == {"unreadable": [name(0)]}


# The census is taken on a UTC day that is eight hours old.
@pytest.mark.parametrize(
    ("left_ms", "day"),
    [
        (-1, None),
        (0, None),
        (1, 0),
        (16 * HOUR_MS - 1, 0),
        (16 * HOUR_MS, 1),
        (DAY_MS, 1),
        (90 * DAY_MS + 16 * HOUR_MS - 1, 90),
        (90 * DAY_MS + 16 * HOUR_MS, None),
    ],
)
def test_certificate_ends_on_its_day(left_ms: int, day: int | None) -> None:
    found = counted(document(certificate=certificate(left_ms)))
    assert len(found.ends) == ENDS_DAYS
    assert [each for each, count in enumerate(found.ends) if count] == [day] * (day is not None)


def test_issuances_that_failed_or_wait_with_a_reason_are_named_the_oldest_first() -> None:
    reason = {"reason": "rate-limited"}
    found = counted(
        document(issuance=issuance("failed", begun_ms=NOW_MS - 1)),
        document(issuance=issuance("failed", begun_ms=NOW_MS - 9)),
        document(issuance={**issuance("waiting"), **reason}),
        document(issuance={**issuance("waiting", changed_ms=NOW_MS - 5), **reason}),
        document(issuance=issuance("waiting")),
        document(issuance={**issuance("ordered"), **reason}),
    )
    assert named(found) == {"failed": [name(1), name(0)], "waiting": [name(3), name(2)]}
    assert (found.issuances["failed"], found.issuances["waiting"]) == (2, 3)


def test_certificates_near_their_end_are_named_the_earliest_first() -> None:
    ends = [certificate(days * DAY_MS, renew_in_ms=-DAY_MS) for days in (3, -2, 1, 20)]
    found = counted(*(document(holder=HOLDER, certificate=each) for each in ends))
    assert named(found) == {"near_end": [name(1), name(2), name(0)]}
    assert found.near_end == 3


@pytest.mark.parametrize("state", ["requested", "ordered", "published", "waiting", "finalizing"])
def test_issuance_that_is_not_finished_for_minutes_is_named_whatever_its_state(state: str) -> None:
    long_ago, just_now = NOW_MS - LATE_AFTER_MS, NOW_MS - LATE_AFTER_MS + 1
    found = counted(
        document(issuance=issuance(state, begun_ms=long_ago)),
        document(issuance=issuance(state, begun_ms=just_now)),
        document(issuance=issuance(state, wanted_since_ms=long_ago - 1)),
        document(issuance=issuance(state, wanted_since_ms=long_ago, barred=True)),
    )
    assert named(found) == {"waiting": [name(2), name(0)]}
    assert found.held_up == 2


def test_issuance_that_waits_for_name_servers_is_named_once_it_says_so() -> None:
    found = counted(
        document(issuance=issuance("published", message="not yet answered by ns2")),
        document(issuance=issuance("published")),
    )
    assert named(found) == {"waiting": [name(0)]}


def test_oldest_issuance_is_the_one_that_is_wanted_the_longest() -> None:
    found = counted(
        document(issuance=issuance("waiting", wanted_since_ms=NOW_MS - 9_000)),
        document(issuance=issuance("failed", begun_ms=NOW_MS - 5_000)),
    )
    assert found.oldest_issuance_ms == NOW_MS - 9_000


def test_debts_tried_three_times_are_named_the_most_tries_first() -> None:
    tried = [(0,), (2, 3), (2,), (1, 40)]
    found = counted(
        *(document(debts=[{"kind": "order", "tries": each} for each in tries]) for tries in tried)
    )
    assert named(found) == {"owing": [name(3), name(1)]}
    assert found.owing == 2


@given(st.lists(st.tuples(st.integers(0, 150), st.text("abc", max_size=2)), max_size=300))
def test_the_most_urgent_are_listed_in_whatever_order_they_come(
    entries: list[tuple[int, str]],
) -> None:
    lists = AttentionLists()
    for rank, hostname in entries:
        lists.add(Concern.FAILED, hostname, rank)
    most_urgent = sorted(set(entries))[:LISTED_AT_MOST]
    assert lists.lists()["failed"] == list(dict.fromkeys(hostname for _, hostname in most_urgent))


def test_no_list_is_longer_than_it_may_be() -> None:
    failed = document(issuance=issuance("failed"))
    found = counted(*([failed] * (LISTED_AT_MOST + 5)), *([None] * (LISTED_AT_MOST + 5)))
    assert {concern: len(names) for concern, names in named(found).items()} == {
        "failed": LISTED_AT_MOST,
        "unreadable": LISTED_AT_MOST,
    }
    assert found.issuances["failed"] == LISTED_AT_MOST + 5


def test_what_is_too_long_for_a_hostname_is_counted_and_not_named() -> None:
    tally = Tally(NOW_MS)
    tally.add(Hostname("a" * 254), None)
    found = tally.census(NOW_MS)
    assert (found.unreadable, named(found)) == (1, {})


def test_census_survives_its_way_through_redis() -> None:
    found = counted(
        document(certificate=certificate(DAY_MS)), document(issuance=issuance("failed")), None
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
    assert len(read.ends) == ENDS_DAYS
    assert all(len(names) <= LISTED_AT_MOST for names in read.attention.values())


@pytest.mark.parametrize(
    "spoiled",
    [
        {"ends": [0] * 90},
        {"ends": [0] * 90 + [-1]},
        {"ends": [0] * 90 + [None]},
        {"attention": {}},
        {"attention": {**AttentionLists().lists(), "owing": ["a"] * (LISTED_AT_MOST + 1)}},
        {"attention": {**AttentionLists().lists(), "owing": ["a" * 254]}},
        {"attention": {**AttentionLists().lists(), "owing": [1]}},
        {"attention": {**AttentionLists().lists(), "owing": "a"}},
        {"attention": {**AttentionLists().lists(), "of a newer release": []}},
        {"owing": None},
        {"held_up": -1},
        {"taken_at_ms": 10**15},
        {"taken_at_ms": None},
        {"earliest_end_ms": 10**15},
        {"oldest_issuance_ms": -1},
    ],
)
def test_census_of_another_shape_is_refused(spoiled: dict[str, Any]) -> None:
    with pytest.raises(CensusUnreadable):
        Census.from_text(json.dumps({**json.loads(counted().to_text()), **spoiled}))


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
