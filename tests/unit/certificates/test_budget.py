"""The budget's figures: what is granted, what is held and until when."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, strategies as st

from gateway.certificates.budget import (
    HOUR_MS,
    WEEK_MS,
    Bucket,
    Budget,
    Claim,
    Limit,
    Renewal,
    Short,
    bucket_of,
    claims,
    decide,
    failed_validations,
    returns,
)
from gateway.moments import rfc3339_moment

NOW_MS = 1_796_119_200_000
"""2026-12-01T10:00:00Z."""

COUNTED = Budget(renewals_are_counted=True)
BUCKETS = st.builds(
    Bucket, st.just(Limit.ORDERS), st.integers(1, 40), st.integers(1, 5_000), st.just("")
)
CLAIMS = BUCKETS.flatmap(
    lambda bucket: st.builds(Claim, st.just(bucket), st.integers(1, bucket.count))
)


def wanted(
    budget: Budget,
    renewal: Renewal = Renewal.NEW,
    *,
    client_id: str = "blue",
    shared: bool = True,
    hostname: str = "relay.example.com",
) -> tuple[Claim, ...]:
    return claims(budget, hostname, "example.com", client_id, renewal, shared=shared)


def grants(
    stored: dict[Bucket, int], asked: tuple[Claim, ...], now_ms: int = NOW_MS, tries: int = 1_000
) -> int:
    """How many are granted one after the other at one moment; `stored` is kept up."""
    for granted in range(tries):
        decision = decide(asked, stored, now_ms)
        if isinstance(decision, Short):
            return granted
        stored.update(decision)
    return tries


# --- one bucket -------------------------------------------------------------------------------


@given(BUCKETS)
def test_full_bucket_grants_its_count_at_once(bucket: Bucket) -> None:
    assert grants({}, (Claim(bucket, bucket.count),)) == bucket.count


@given(BUCKETS, st.lists(st.integers(0, 400), max_size=200))
def test_any_span_grants_no_more_than_the_count_and_its_refill(
    bucket: Bucket, gaps: list[int]
) -> None:
    stored: dict[Bucket, int] = {}
    times, now_ms = [], NOW_MS
    for gap in gaps:
        now_ms += gap
        if grants(stored, (Claim(bucket, bucket.count),), now_ms, tries=1):
            times.append(now_ms)
    for first, start_ms in enumerate(times):
        for last in range(first, len(times)):
            refill = (times[last] - start_ms) // bucket.interval_ms
            assert last - first + 1 <= bucket.count + refill


@given(BUCKETS)
def test_empty_bucket_grants_its_count_again_after_the_period(bucket: Bucket) -> None:
    stored = {bucket: NOW_MS + bucket.empty_ms}
    later_ms = NOW_MS + max(bucket.period_ms, bucket.empty_ms)
    assert grants(stored, (Claim(bucket, bucket.count),), later_ms) == bucket.count


@given(BUCKETS, st.integers(0, 10 * WEEK_MS))
def test_bucket_is_never_emptier_than_empty(bucket: Bucket, ahead_ms: int) -> None:
    stored_ms = NOW_MS + ahead_ms
    assert 0 <= bucket.used(stored_ms, NOW_MS) <= bucket.count
    assert NOW_MS < bucket.after_one(stored_ms, NOW_MS) <= NOW_MS + bucket.empty_ms


@given(BUCKETS, st.lists(st.booleans(), max_size=100))
def test_giving_back_never_makes_more_than_the_count(bucket: Bucket, gives: list[bool]) -> None:
    stored: dict[Bucket, int] = {}
    for give in gives:
        change = bucket.after_return if give else bucket.after_one
        stored[bucket] = change(stored.get(bucket), NOW_MS)
    assert grants(stored, (Claim(bucket, bucket.count),)) <= bucket.count


@given(BUCKETS, st.data())
def test_giving_back_undoes_taking(bucket: Bucket, data: st.DataObject) -> None:
    room_ms = bucket.empty_ms - bucket.interval_ms
    stored_ms = NOW_MS + data.draw(st.integers(0, room_ms))
    assert bucket.after_return(bucket.after_one(stored_ms, NOW_MS), NOW_MS) == stored_ms


# --- several at once --------------------------------------------------------------------------


@given(st.lists(CLAIMS, min_size=1, max_size=5, unique_by=lambda each: each.bucket), st.data())
def test_time_named_is_the_first_at_which_all_is_granted(
    asked: list[Claim], data: st.DataObject
) -> None:
    stored = {
        claim.bucket: NOW_MS + data.draw(st.integers(0, claim.bucket.empty_ms)) for claim in asked
    }
    decision = decide(asked, stored, NOW_MS)
    if isinstance(decision, Short):
        assert decision.until_ms > NOW_MS
        assert isinstance(decide(asked, stored, decision.until_ms - 1), Short)
        assert isinstance(decide(asked, stored, decision.until_ms), dict)
    else:
        assert set(decision) == {claim.bucket for claim in asked}


def test_claim_that_does_not_bind_is_counted_when_there_is_no_room() -> None:
    bucket = Bucket(Limit.ORDERS, 2, 1_000)
    empty = {bucket: NOW_MS + 600}
    assert decide((Claim(bucket, 2, binds=False),), empty, NOW_MS) == {bucket: NOW_MS + 1_000}


def test_claim_that_does_not_spend_is_only_asked() -> None:
    bucket = Bucket(Limit.FAILED_VALIDATIONS, 2, 1_000)
    asked = (Claim(bucket, 2, spends=False),)
    assert decide(asked, {bucket: NOW_MS + 500}, NOW_MS) == {}
    assert isinstance(decide(asked, {bucket: NOW_MS + 501}, NOW_MS), Short)


# --- which figures concern which order ----------------------------------------------------------


def names(asked: tuple[Claim, ...], *, binding: bool) -> set[str]:
    return {str(claim.bucket.limit) for claim in asked if claim.binds or not binding}


@pytest.mark.parametrize(
    ("budget", "renewal", "counted", "binding"),
    [
        (
            Budget(),
            Renewal.NEW,
            {"orders", "orders-of", "domain", "domain-of", "host", "failed"},
            {"orders", "orders-of", "domain", "domain-of", "host", "failed"},
        ),
        (
            Budget(),
            Renewal.BY_HAND,
            {"orders", "domain", "host", "failed"},
            {"orders", "domain", "host", "failed"},
        ),
        (Budget(), Renewal.EARLY, {"host", "failed"}, {"host", "failed"}),
        (Budget(), Renewal.DUE, {"host", "failed"}, {"failed"}),
        (COUNTED, Renewal.EARLY, {"orders", "domain", "host", "failed"}, {"host", "failed"}),
        (COUNTED, Renewal.DUE, {"orders", "domain", "host", "failed"}, {"failed"}),
    ],
)
def test_figures_that_count_and_hold_an_order(
    budget: Budget, renewal: Renewal, counted: set[str], binding: set[str]
) -> None:
    asked = wanted(budget, renewal)
    assert names(asked, binding=False) == counted
    assert names(asked, binding=True) == binding


def test_failed_validations_are_not_spent_by_an_order() -> None:
    (claim,) = (each for each in wanted(Budget()) if each.bucket.limit == "failed")
    assert not claim.spends
    assert claim.bucket == failed_validations(Budget(), "relay.example.com")


@pytest.mark.parametrize("renewal", Renewal)
def test_figure_of_nothing_is_no_limit(renewal: Renewal) -> None:
    free = Budget(0, 0, 0, 0, renewals_are_counted=True)
    assert wanted(free, renewal) == ()
    for was_placed in (True, False):
        given = returns(
            *(free, "a.example.com", "example.com", "blue", renewal), was_placed=was_placed
        )
        assert given == ()


def test_default_figures_are_those_of_lets_encrypt() -> None:
    figures = {
        claim.bucket.limit: (claim.bucket.count, claim.bucket.period_ms)
        for claim in wanted(Budget())
        if not claim.bucket.client_id
    }
    assert figures == {
        Limit.ORDERS: (300, 3 * HOUR_MS),
        Limit.DOMAIN: (50, WEEK_MS),
        Limit.HOSTNAME: (5, WEEK_MS),
        Limit.FAILED_VALIDATIONS: (5, HOUR_MS),
    }


@pytest.mark.parametrize(("budget", "renewal"), [*product((Budget(), COUNTED), Renewal)])
def test_every_bucket_is_found_again_by_its_names(budget: Budget, renewal: Renewal) -> None:
    for claim in wanted(budget, renewal):
        bucket = claim.bucket
        assert bucket_of(budget, bucket.limit, bucket.subject, bucket.client_id) == bucket


@pytest.mark.parametrize(
    ("renewal", "given"),
    [
        (Renewal.NEW, {Limit.DOMAIN, Limit.CLIENT_DOMAIN, Limit.HOSTNAME}),
        (Renewal.BY_HAND, {Limit.DOMAIN, Limit.HOSTNAME}),
        (Renewal.EARLY, {Limit.HOSTNAME}),
        (Renewal.DUE, {Limit.HOSTNAME}),
    ],
)
def test_certificates_are_given_back_and_orders_are_not(
    renewal: Renewal, given: set[Limit]
) -> None:
    names = "relay.example.com", "example.com", "blue"
    buckets = returns(Budget(), *names, renewal, was_placed=True)
    assert {bucket.limit for bucket in buckets} == given


@pytest.mark.parametrize("renewal", Renewal)
def test_all_that_was_spent_is_given_back_for_an_order_that_was_never_placed(
    renewal: Renewal,
) -> None:
    names = "relay.example.com", "example.com", "blue"
    wants = claims(COUNTED, *names, renewal, shared=True)
    spent = decide(wants, {}, 0)
    assert isinstance(spent, dict)
    given = returns(COUNTED, *names, renewal, was_placed=False)
    assert set(given) == set(spent)


# --- shares -------------------------------------------------------------------------------------

FIGURES = st.builds(
    Budget,
    orders_per_3_hours=st.integers(1, 60),
    certificates_per_domain_per_week=st.integers(1, 60),
    certificates_per_hostname_per_week=st.just(0),
    renewals_are_counted=st.just(True),
    reserved_for_renewals=st.sampled_from((0.0, 0.07, 0.1, 0.2, 0.5, 0.9)),
    client_share=st.sampled_from((0.1, 0.3, 0.5, 0.7, 1.0)),
)


@given(FIGURES, st.lists(st.tuples(st.integers(0, HOUR_MS), st.sampled_from("ab")), max_size=80))
def test_new_names_leave_the_reserved_share_to_renewals(
    budget: Budget, asks: list[tuple[int, str]]
) -> None:
    stored: dict[Bucket, int] = {}
    now_ms = NOW_MS
    for gap_ms, client_id in asks:
        now_ms += gap_ms
        grants(stored, wanted(budget, client_id=client_id, shared=False), now_ms, tries=20)
        for claim in wanted(budget, Renewal.DUE):
            bucket = claim.bucket
            if bucket.count > 1 and bucket.limit in (Limit.ORDERS, Limit.DOMAIN):
                free = bucket.count - bucket.used(stored.get(bucket), now_ms)
                assert free >= min(
                    bucket.count - 1, int(bucket.count * budget.reserved_for_renewals)
                )


def test_reserved_share_is_for_renewals_where_they_are_counted() -> None:
    stored: dict[Bucket, int] = {}
    budget = Budget(100, 10, 0, 0, renewals_are_counted=True, client_share=1)
    assert grants(stored, wanted(budget)) == 8
    due = wanted(budget, Renewal.DUE)
    assert isinstance(decide(due, stored, NOW_MS), dict)
    assert grants({}, wanted(Budget(100, 10, 0, 0, client_share=1))) == 10


@given(FIGURES)
def test_one_client_has_its_share_at_most_while_there_are_others(budget: Budget) -> None:
    stored: dict[Bucket, int] = {}
    figures = (budget.orders_per_3_hours, budget.certificates_per_domain_per_week)
    granted = grants(stored, wanted(budget))
    assert granted <= max(1, min(figures) * budget.client_share + 1e-6)


def test_other_clients_find_room_when_one_has_had_its_share() -> None:
    stored: dict[Bucket, int] = {}
    budget = Budget(certificates_per_hostname_per_week=0)
    assert grants(stored, wanted(budget, client_id="blue")) == 25
    assert grants(stored, wanted(budget, client_id="green")) == 25
    assert grants(stored, wanted(budget, client_id="red")) == 0


def test_only_client_may_use_all() -> None:
    budget = Budget(certificates_per_hostname_per_week=0)
    assert grants({}, wanted(budget, shared=False)) == 50


def test_client_that_was_alone_waits_for_its_share_no_longer_than_the_period() -> None:
    stored: dict[Bucket, int] = {}
    budget = Budget(certificates_per_hostname_per_week=0)
    grants(stored, wanted(budget, shared=False))
    held = decide(wanted(budget, shared=True), stored, NOW_MS)
    assert isinstance(held, Short)
    assert held.until_ms <= NOW_MS + WEEK_MS // 25


# --- words --------------------------------------------------------------------------------------


def held_sentence(budget: Budget, renewal: Renewal = Renewal.NEW, *, shared: bool = False) -> str:
    stored: dict[Bucket, int] = {}
    asked = wanted(budget, renewal, shared=shared)
    grants(stored, asked)
    held = decide(asked, stored, NOW_MS)
    assert isinstance(held, Short)
    return held.sentence


@pytest.mark.parametrize(
    ("budget", "renewal", "shared", "sentence"),
    [
        (
            Budget(30, 0, 0, 0),
            Renewal.NEW,
            False,
            "30 new orders in 3 hours are used up;"
            " the order is placed at the earliest at 2026-12-01T10:06:00Z",
        ),
        (
            Budget(0, 7, 0, 0),
            Renewal.NEW,
            False,
            "7 certificates for example.com in 7 days are used up;"
            " the order is placed at the earliest at 2026-12-02T10:00:00Z",
        ),
        (
            Budget(0, 0, 7, 0),
            Renewal.EARLY,
            False,
            "7 certificates for relay.example.com in 7 days are used up;"
            " the order is placed at the earliest at 2026-12-02T10:00:00Z",
        ),
        (
            Budget(0, 14, 0, 0),
            Renewal.NEW,
            True,
            "this client's share of the certificates for example.com in 7 days is used up (7);"
            " the order is placed at the earliest at 2026-12-02T10:00:00Z",
        ),
        (
            Budget(30, 0, 0, 0, client_share=0.2),
            Renewal.NEW,
            True,
            "this client's share of the new orders in 3 hours is used up (6);"
            " the order is placed at the earliest at 2026-12-01T10:30:00Z",
        ),
        (
            Budget(0, 7, 0, 0, renewals_are_counted=True),
            Renewal.NEW,
            False,
            "7 certificates for example.com in 7 days are allowed and new names may use 5 of them;"
            " the order is placed at the earliest at 2026-12-02T10:00:00Z",
        ),
    ],
)
def test_sentence_names_the_figure_that_holds(
    budget: Budget, renewal: Renewal, sentence: str, *, shared: bool
) -> None:
    assert held_sentence(budget, renewal, shared=shared) == sentence


@pytest.mark.parametrize("renewal", Renewal)
def test_failed_validations_hold_renewals_too(renewal: Renewal) -> None:
    bucket = failed_validations(Budget(), "relay.example.com")
    stored = {bucket: NOW_MS + bucket.empty_ms}
    held = decide(wanted(Budget(), renewal), stored, NOW_MS)
    assert isinstance(held, Short)
    assert held.sentence == (
        "relay.example.com failed 5 validations in an hour;"
        " the order is placed at the earliest at 2026-12-01T10:12:00Z"
    )


def test_moment_is_never_too_early() -> None:
    assert rfc3339_moment(NOW_MS) == "2026-12-01T10:00:00Z"
    assert rfc3339_moment(NOW_MS + 1) == "2026-12-01T10:00:01Z"
