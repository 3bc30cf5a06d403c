"""The simulated year: its referee, and what is seen when the product's rules are not kept."""

import asyncio
import dataclasses

from gateway.certificates.budget import Budget
from tests.bench.referee import Referee
from tests.bench.simulation import DAY_MS, LIFETIME_MS, Outcome, Scenario, Simulation
from tests.bench.year import faults_of

HOUR_MS = 3_600_000
FEW = Scenario(40, days=70, new_a_day=1, imported=60, import_day=5, outage_day=20, recall_day=50)


def passed(scenario: Scenario, budget: Budget | None = None) -> Outcome:
    return asyncio.run(Simulation(scenario, 1, budget or Budget()).run())


def test_a_year_by_the_rules_crosses_no_limit_and_lets_nothing_expire() -> None:
    outcome = passed(FEW)
    assert (outcome.referee.refused, outcome.expired, outcome.still_waiting) == ({}, 0, 0)
    assert len(outcome.new_waits_ms) == FEW.days
    # Ten more than a domain may have in a week come later.
    assert len(outcome.import_waits_ms) == FEW.imported
    assert max(outcome.import_waits_ms) > DAY_MS
    # All of them once at the least, and those that were recalled once more.
    assert outcome.issued_in_hour.total() > FEW.certificates * 2


def test_a_budget_without_a_figure_for_domains_is_seen_to_cross_the_limit() -> None:
    outcome = passed(FEW, Budget(certificates_per_domain_per_week=0))
    assert outcome.referee.refused == {"domain": FEW.imported - 50}


def test_what_waited_for_a_ca_that_was_away_is_not_ordered_all_at_once_afterwards() -> None:
    """At such a time 510 orders were placed beyond the account's limit."""
    crowd = dataclasses.replace(FEW, days=2, new_a_day=1_500, certificates=1, imported=0)
    outcome = passed(dataclasses.replace(crowd, outage_day=0, outage_ms=15 * HOUR_MS))
    assert outcome.referee.refused == {}
    assert len(outcome.new_waits_ms) > 600


def test_names_that_wait_for_one_limit_are_looked_at_a_few_times_each() -> None:
    crowd = dataclasses.replace(FEW, days=1, new_a_day=1_500, certificates=1, imported=0)
    outcome = passed(crowd)
    assert max(outcome.new_waits_ms) > 2 * HOUR_MS
    assert 0 < outcome.held < 10 * len(outcome.new_waits_ms)


def test_hostnames_that_cannot_be_validated_for_too_long_are_seen_to_expire() -> None:
    outcome = passed(
        dataclasses.replace(
            FEW, certificates=5, imported=0, broken_share=1.0, broken_ms=LIFETIME_MS
        )
    )
    assert outcome.expired > 0
    assert outcome.referee.refused == {}


def test_certificates_that_expired_and_orders_beyond_a_limit_are_faults() -> None:
    broken = dataclasses.replace(
        FEW, certificates=5, imported=0, broken_share=1.0, broken_ms=LIFETIME_MS
    )
    beyond = Budget(certificates_per_domain_per_week=0)
    outcomes = [passed(broken), passed(FEW, beyond)]
    assert faults_of(outcomes[:0]) == []
    assert faults_of(outcomes) == [
        f"{outcomes[0].expired} certificates expired",
        f"{FEW.imported - 50} orders were beyond the CA's limit: domain",
    ]


def test_the_referee_refuses_one_more_than_a_limit_until_one_has_come_back() -> None:
    referee = Referee()
    for _ in range(5):
        referee.order("a.example", "example", 0, is_exempt=False)
    assert referee.refused == {}
    referee.order("a.example", "example", 0, is_exempt=False)
    assert referee.refused == {"host": 1}
    referee.order("a.example", "example", 34 * HOUR_MS, is_exempt=False)
    assert referee.refused == {"host": 1}


def test_a_renewal_that_names_what_it_replaces_is_not_counted() -> None:
    referee = Referee()
    for _ in range(100):
        referee.order("a.example", "example", 0, is_exempt=True)
    assert referee.refused == {}


def test_the_referee_forgets_nothing_that_still_counts() -> None:
    referee = Referee()
    for _ in range(5):
        referee.order("a.example", "example", 0, is_exempt=False)
    referee.forget(24 * HOUR_MS)
    referee.order("a.example", "example", 24 * HOUR_MS, is_exempt=False)
    assert referee.refused == {"host": 1}


def test_the_referee_refuses_an_order_after_five_failed_validations_in_an_hour() -> None:
    referee = Referee()
    for _ in range(5):
        referee.failed("a.example", 0)
    referee.order("a.example", "example", 0, is_exempt=True)
    assert referee.refused == {"failures": 1}
    referee.order("a.example", "example", 13 * 60_000, is_exempt=True)
    assert referee.refused == {"failures": 1}
