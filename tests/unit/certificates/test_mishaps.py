"""Turning to another authority, holding back, and what a renewal says it replaces."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gateway.certificates import events, mishaps, moves
from gateway.certificates.events import Command
from gateway.certificates.machine import advance, request, request_renewal
from gateway.certificates.moves import Moment
from gateway.certificates.orders import FaultKind
from gateway.certificates.states import Issuance, Reason, State
from tests.unit.certificates.test_renewal_windows import HELD

NOW = Moment(1_700_000_000_000, 0.5)
BEFORE_CSR = [State.REQUESTED, State.ORDERED, State.PUBLISHED, State.PROPAGATED, State.VALIDATING]


def issuance(state: State, **changes: object) -> Issuance:
    fresh = replace(
        request("i", NOW),
        state=state,
        directory_url="first",
        sealed_key="sealed",
        csr="csr",
        order_url="order",
        challenge_value="txt",
    )
    return replace(fresh, **changes)  # type: ignore[arg-type]


def failed(kind: FaultKind, retry_after: float | None = None) -> events.AuthorityFailed:
    return events.AuthorityFailed(kind, "its words", retry_after, elsewhere=True)


@pytest.mark.parametrize("state", BEFORE_CSR)
@pytest.mark.parametrize(
    ("kind", "retry_after", "passed_over_ms"),
    [
        (FaultKind.REFUSED, None, moves.LONGEST_FAILURE_MS),
        (FaultKind.ACCOUNT_REFUSED, None, moves.LONGEST_FAILURE_MS),
        (FaultKind.RATE_LIMITED, 3_600.0, 3_600_000),
    ],
)
def test_authority_that_refuses_is_passed_over_for_a_while(
    state: State, kind: FaultKind, retry_after: float | None, passed_over_ms: int
) -> None:
    step = advance(issuance(state), failed(kind, retry_after), NOW)
    assert step.issuance.state is State.REQUESTED
    assert step.issuance.due_at_ms == NOW.now_ms
    assert step.issuance.passed_over == {"first": NOW.now_ms + passed_over_ms}
    assert advance(step.issuance, events.Due(), NOW).command is Command.CHOOSE_AUTHORITY
    left = (step.issuance.directory_url, step.issuance.order_url, step.issuance.sealed_key)
    assert left == (None, None, None)


def test_short_rate_limit_is_waited_for() -> None:
    after = advance(issuance(State.REQUESTED), failed(FaultKind.RATE_LIMITED, 30.0), NOW).issuance
    assert (after.state, after.directory_url) == (State.WAITING, "first")
    assert after.due_at_ms == NOW.now_ms + 30_000


@pytest.mark.parametrize("kind", [FaultKind.UNREACHABLE, FaultKind.SERVER_ERROR])
def test_authority_that_stays_away_is_left_after_some_patience(kind: FaultKind) -> None:
    current = issuance(State.ORDERED)
    for _ in range(mishaps.PATIENCE_FAULTS - 1):
        current = advance(current, failed(kind), NOW).issuance
        assert current.state is State.WAITING
        current = advance(current, events.Due(), NOW).issuance
    current = advance(current, failed(kind), NOW).issuance
    assert current.state is State.REQUESTED
    assert current.passed_over == {"first": NOW.now_ms + mishaps.PASSED_OVER_MS}
    assert (current.faults, current.away) == (0, 0)


def test_faults_of_a_zone_do_not_count_against_the_authority() -> None:
    current = issuance(State.ORDERED)
    for _ in range(5):
        current = advance(current, events.ZoneFailed("no answer", 1.0), NOW).issuance
        current = advance(current, events.Due(), NOW).issuance
    after = advance(current, failed(FaultKind.UNREACHABLE), NOW).issuance
    assert (after.state, after.directory_url) == (State.WAITING, "first")


@pytest.mark.parametrize("state", [State.READY, State.FINALIZING])
def test_order_whose_certificate_may_exist_stays_where_it_is(state: State) -> None:
    current = issuance(state)
    for _ in range(mishaps.PATIENCE_AFTER_CSR_FAULTS - 1):
        current = advance(current, failed(FaultKind.UNREACHABLE), NOW).issuance
        assert current.order_url == "order"
        current = replace(current, state=state)
    assert advance(current, failed(FaultKind.UNREACHABLE), NOW).issuance.order_url is None


@pytest.mark.parametrize("state", [State.READY, State.FINALIZING])
def test_rate_limit_after_the_csr_keeps_the_order(state: State) -> None:
    after = advance(issuance(state), failed(FaultKind.RATE_LIMITED, 3_600.0), NOW).issuance
    assert (after.state, after.order_url) == (State.WAITING, "order")


def test_held_back_order_waits_for_its_time_and_is_no_fault() -> None:
    before = issuance(State.REQUESTED, directory_url=None, order_url=None)
    until_ms = NOW.now_ms + 3_600_000
    event = events.AuthoritiesHeld(until_ms, Reason.RATE_LIMITED, "used up")
    after = advance(before, event, NOW).issuance
    assert (after.state, after.reason, after.message) == (
        State.WAITING,
        Reason.RATE_LIMITED,
        "used up",
    )
    assert until_ms <= (after.told_until_ms or 0) <= until_ms + 60_000
    assert after.due_at_ms <= NOW.now_ms + moves.LONGEST_REST_MS + 60_000
    assert after.faults == 0
    assert advance(after, events.Due(), NOW).command is Command.CHOOSE_AUTHORITY


def held_again(before: Issuance, reason: Reason, *, for_ms: int) -> tuple[Issuance, int]:
    """What comes of a held issuance that looks when it is due and is held again; how long for."""
    now = Moment(before.due_at_ms, 0.0)
    asking = advance(before, events.Due(), now).issuance
    event = events.AuthoritiesHeld(now.now_ms + for_ms, reason, "used up")
    after = advance(asking, event, now).issuance
    return after, after.due_at_ms - now.now_ms


def test_order_that_finds_others_faster_each_time_leaves_the_limit_to_them_for_longer() -> None:
    current = issuance(State.REQUESTED, directory_url=None, order_url=None, due_at_ms=NOW.now_ms)
    rests_ms = []
    for _ in range(11):
        current, rest_ms = held_again(current, Reason.RATE_LIMITED, for_ms=36_000)
        rests_ms.append(rest_ms)
        assert current.told_until_ms == current.due_at_ms
    doubled = [30_000 * 2**times for times in range(1, 7)]
    assert rests_ms == [36_000, 36_000, *doubled, *([moves.LONGEST_CONTEST_MS] * 3)]


def test_order_that_is_held_for_long_is_looked_at_in_between_as_often_as_ever() -> None:
    current = issuance(State.REQUESTED, directory_url=None, order_url=None, due_at_ms=NOW.now_ms)
    until_ms = NOW.now_ms + 5 * moves.LONGEST_REST_MS // 2
    rests_ms = []
    while current.due_at_ms < until_ms:
        for_ms = until_ms - current.due_at_ms
        current, rest_ms = held_again(current, Reason.RATE_LIMITED, for_ms=for_ms)
        rests_ms.append(rest_ms)
        assert current.told_until_ms == until_ms
    assert rests_ms == [moves.LONGEST_REST_MS, moves.LONGEST_REST_MS, moves.LONGEST_REST_MS // 2]


def test_order_that_waits_for_an_authority_to_come_back_rests_no_longer_each_time() -> None:
    current = issuance(State.REQUESTED, directory_url=None, order_url=None, due_at_ms=NOW.now_ms)
    for _ in range(10):
        current, rest_ms = held_again(current, Reason.AUTHORITY_UNAVAILABLE, for_ms=300_000)
        assert rest_ms == 300_000


def test_new_account_key_makes_the_challenge_be_read_again() -> None:
    after = advance(issuance(State.PROPAGATED), failed(FaultKind.STALE_CHALLENGE), NOW).issuance
    assert (after.state, after.challenge_value) == (State.ORDERED, None)
    assert after.order_url == "order"
    assert after.due_at_ms == NOW.now_ms


def test_renewal_says_what_it_replaces_only_where_that_is_understood() -> None:
    renewal = request_renewal("i", HELD, "aki.serial", NOW)
    assert (renewal.renewal, renewal.overdue_at_ms) == (True, HELD.share_at_ms)
    taken = advance(renewal, events.AuthorityChosen("directory", True), NOW).issuance
    assert taken.replaces == "aki.serial"
    other = advance(renewal, events.AuthorityChosen("other", False), NOW).issuance
    assert other.replaces is None


@pytest.mark.parametrize(
    "kind",
    [FaultKind.MALFORMED, FaultKind.REFUSED, FaultKind.ACCOUNT_REFUSED, FaultKind.GONE],
)
def test_order_is_placed_without_what_it_replaces_after_any_refusal_of_it(kind: FaultKind) -> None:
    before = issuance(State.REQUESTED, order_url=None, replaces="aki.serial")
    step = advance(before, failed(kind), NOW)
    assert (step.command, step.issuance.replaces) == (Command.PLACE_ORDER, None)
    assert advance(step.issuance, failed(kind), NOW).command is not Command.PLACE_ORDER


@pytest.mark.parametrize("kind", [FaultKind.RATE_LIMITED, FaultKind.UNREACHABLE])
def test_passing_fault_keeps_what_the_order_replaces(kind: FaultKind) -> None:
    before = issuance(State.REQUESTED, order_url=None, replaces="aki.serial")
    event = events.AuthorityFailed(kind, "later", 30.0)
    assert advance(before, event, NOW).issuance.replaces == "aki.serial"


def test_order_is_placed_without_what_it_replaces_after_a_fault_of_the_server() -> None:
    # Pebble's answer to a certificate that it does not know.
    before = issuance(State.REQUESTED, order_url=None, replaces="aki.serial")
    after = advance(before, events.AuthorityFailed(FaultKind.SERVER_ERROR, "500"), NOW).issuance
    assert (after.state, after.replaces) == (State.WAITING, None)


def test_grant_that_is_held_by_now_is_chosen_anew() -> None:
    before = issuance(State.REQUESTED, order_url=None)
    event = events.AuthoritiesHeld(NOW.now_ms + 5_000, Reason.RATE_LIMITED, "slow down")
    step = advance(before, event, NOW)
    assert (step.command, step.issuance.directory_url) == (Command.CHOOSE_AUTHORITY, None)
    assert advance(step.issuance, event, NOW).issuance.state is State.WAITING


def test_too_many_calls_here_are_nobodys_fault() -> None:
    event = events.AuthorityFailed(FaultKind.BUSY, "busy", elsewhere=True)
    after = advance(issuance(State.REQUESTED), event, NOW).issuance
    assert (after.state, after.directory_url, after.faults, after.away) == (
        State.WAITING,
        "first",
        0,
        0,
    )
    assert NOW.now_ms < after.due_at_ms <= NOW.now_ms + 2 * mishaps.BUSY_PAUSE_MS


def test_authority_unknown_here_is_chosen_anew_without_an_order() -> None:
    before = issuance(State.REQUESTED, order_url=None)
    event = events.AuthorityFailed(FaultKind.NOT_CONFIGURED, "not here")
    after = advance(before, event, NOW).issuance
    assert (after.state, after.directory_url, after.due_at_ms) == (
        State.REQUESTED,
        None,
        NOW.now_ms,
    )


@pytest.mark.parametrize(
    ("state", "patience"),
    [
        (State.ORDERED, mishaps.UNKNOWN_HERE_FAULTS),
        (State.FINALIZING, mishaps.PATIENCE_AFTER_CSR_FAULTS),
    ],
)
def test_order_at_an_authority_unknown_here_is_left_to_others_for_a_while(
    state: State, patience: int
) -> None:
    event = events.AuthorityFailed(FaultKind.NOT_CONFIGURED, "not here")
    current = issuance(state)
    for _ in range(patience - 1):
        current = advance(current, event, NOW).issuance
        assert current.order_url == "order"
        current = replace(current, state=state)
    assert advance(current, event, NOW).issuance.order_url is None


@pytest.mark.parametrize("state", [State.ORDERED, State.VALIDATING, State.READY, State.FINALIZING])
def test_read_that_is_called_malformed_is_repeated_for_a_while(state: State) -> None:
    event = events.AuthorityFailed(FaultKind.MALFORMED, "what?")
    current = issuance(state)
    for _ in range(mishaps.MALFORMED_FAULTS - 1):
        current = advance(current, event, NOW).issuance
        assert (current.state, current.order_url) == (State.WAITING, "order")
        current = replace(current, state=state)
    assert advance(current, event, NOW).issuance.state is State.FAILED


def test_order_called_malformed_is_placed_elsewhere_if_there_is_one() -> None:
    before = issuance(State.REQUESTED, order_url=None)
    assert advance(before, failed(FaultKind.MALFORMED), NOW).issuance.passed_over
    alone = events.AuthorityFailed(FaultKind.MALFORMED, "what?")
    assert advance(before, alone, NOW).issuance.state is State.FAILED
