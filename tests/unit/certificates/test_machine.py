"""The issuance machine: every listed transition, and random walks over it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gateway.certificates import events, machine, moves
from gateway.certificates.events import Command
from gateway.certificates.machine import Unexpected, advance, request
from gateway.certificates.moves import Moment, Step
from gateway.certificates.orders import AuthorizationView, FaultKind, OrderView
from gateway.certificates.states import Issuance, Reason, State, StoredCertificate

NOW = Moment(1_700_000_000_000, 0.5)
CERTIFICATE = StoredCertificate(
    "i", "chain", "sealed", 0, 9, 5, 6, 5, "01", "issuer", "directory", 7
)


def order(status: str, **changes: object) -> OrderView:
    view = OrderView("order", status, ("authorization",), "finalize")
    return replace(view, **changes)  # type: ignore[arg-type]


def authorization(status: str, **changes: object) -> AuthorizationView:
    view = AuthorizationView("authorization", "a.example", status, "challenge", "txt")
    return replace(view, **changes)  # type: ignore[arg-type]


def issuance(state: State, **changes: object) -> Issuance:
    """An issuance as it stands when it has come to `state` the smooth way."""
    fresh = replace(
        request("i", NOW), directory_url="directory", sealed_key="sealed", csr="csr", state=state
    )
    if state is not State.REQUESTED:
        fresh = replace(fresh, order_url="order", finalize_url="finalize")
    if state in {State.PUBLISHED, State.PROPAGATED, State.VALIDATING}:
        fresh = replace(
            fresh,
            authorization_url="authorization",
            challenge_url="challenge",
            challenge_value="txt",
            challenge_zone="example",
            challenge_name="_acme-challenge.a.example",
        )
    return replace(fresh, **changes)  # type: ignore[arg-type]


def test_smooth_issuance_passes_through_every_state_in_order() -> None:
    answers = {
        Command.CHOOSE_AUTHORITY: events.AuthorityChosen("directory", takes_replaces=False),
        Command.MAKE_KEY: events.KeyMade("sealed", "csr"),
        Command.PLACE_ORDER: events.OrderSeen(order("pending")),
        Command.READ_AUTHORIZATION: events.AuthorizationSeen(authorization("pending")),
        Command.LOCATE_CHALLENGE: events.ChallengeLocated("example", "_acme-challenge.a.example"),
        Command.PUBLISH_CHALLENGE: events.ChallengePublished(),
        Command.CHECK_PROPAGATION: events.PropagationSeen(()),
        Command.ANSWER_CHALLENGE: events.ChallengeAnswered(),
        Command.READ_ORDER: events.OrderSeen(order("ready")),
        Command.FINALIZE: events.Finalized(order("valid", certificate_url="certificate")),
        Command.FETCH_CERTIFICATE: events.CertificateFetched(CERTIFICATE),
    }
    step = advance(request("i", NOW), events.Due(), NOW)
    commands, states = [], [step.issuance.state]
    while step.issuance.state is not State.ISSUED:
        if step.command is None:
            answers[Command.READ_AUTHORIZATION] = events.AuthorizationSeen(authorization("valid"))
            event: events.Event = events.Due()
        else:
            commands.append(step.command)
            event = answers[step.command]
        step = advance(step.issuance, event, NOW)
        if step.issuance.state is not states[-1]:
            states.append(step.issuance.state)
    assert set(commands) == set(Command)
    assert states == [
        State.REQUESTED,
        State.ORDERED,
        State.PUBLISHED,
        State.PROPAGATED,
        State.VALIDATING,
        State.READY,
        State.FINALIZING,
        State.ISSUED,
    ]


DUE = [
    (issuance(State.REQUESTED, directory_url=None), Command.CHOOSE_AUTHORITY),
    (issuance(State.REQUESTED, sealed_key=None), Command.MAKE_KEY),
    (issuance(State.REQUESTED), Command.PLACE_ORDER),
    (issuance(State.ORDERED), Command.READ_ORDER),
    (issuance(State.PUBLISHED), Command.CHECK_PROPAGATION),
    (issuance(State.PROPAGATED), Command.READ_ORDER),
    (issuance(State.VALIDATING), Command.READ_ORDER),
    (issuance(State.VALIDATING, looks=3), Command.READ_ORDER),
    (issuance(State.VALIDATING, looks=4), Command.READ_AUTHORIZATION),
    (issuance(State.VALIDATING, looks=5), Command.READ_ORDER),
    (issuance(State.READY), Command.READ_ORDER),
    (issuance(State.FINALIZING), Command.READ_ORDER),
    (issuance(State.WAITING, resume=State.PUBLISHED), Command.CHECK_PROPAGATION),
    (issuance(State.WAITING, resume=State.READY), Command.READ_ORDER),
    (issuance(State.WAITING, resume=State.REQUESTED), Command.PLACE_ORDER),
    (issuance(State.WAITING, resume=State.REQUESTED, lapsed=True), Command.CHOOSE_AUTHORITY),
    (issuance(State.FAILED, directory_url=None, sealed_key=None), Command.CHOOSE_AUTHORITY),
    (issuance(State.ISSUED), None),
]


@pytest.mark.parametrize(("before", "command"), DUE, ids=lambda each: str(each)[:40])
def test_due_goes_on_where_another_process_stopped(
    before: Issuance, command: Command | None
) -> None:
    assert advance(before, events.Due(), NOW).command is command


ORDERS = [
    (issuance(State.REQUESTED), order("pending"), State.ORDERED, Command.READ_AUTHORIZATION),
    (issuance(State.REQUESTED), order("ready"), State.READY, Command.FINALIZE),
    (issuance(State.ORDERED), order("ready"), State.READY, Command.FINALIZE),
    (
        issuance(State.ORDERED, challenge_value="txt"),
        order("pending"),
        State.ORDERED,
        Command.LOCATE_CHALLENGE,
    ),
    (
        issuance(State.ORDERED, challenge_value="txt", challenge_name="name"),
        order("pending"),
        State.ORDERED,
        Command.PUBLISH_CHALLENGE,
    ),
    (issuance(State.PROPAGATED), order("pending"), State.PROPAGATED, Command.ANSWER_CHALLENGE),
    (issuance(State.PROPAGATED), order("ready"), State.READY, Command.FINALIZE),
    (issuance(State.VALIDATING), order("pending"), State.VALIDATING, None),
    (issuance(State.VALIDATING), order("ready"), State.READY, Command.FINALIZE),
    (issuance(State.READY), order("ready"), State.READY, Command.FINALIZE),
    (issuance(State.READY), order("pending"), State.READY, None),
    (issuance(State.READY), order("processing"), State.FINALIZING, None),
    (
        issuance(State.READY),
        order("valid", certificate_url="c"),
        State.FINALIZING,
        Command.FETCH_CERTIFICATE,
    ),
    (issuance(State.FINALIZING), order("processing"), State.FINALIZING, None),
    (issuance(State.FINALIZING), order("ready"), State.FINALIZING, None),
    (issuance(State.FINALIZING, looks=9), order("ready"), State.FINALIZING, Command.FINALIZE),
    (issuance(State.ORDERED), order("invalid"), State.FAILED, None),
    (issuance(State.ORDERED), order("pending", authorization_urls=()), State.FAILED, None),
    (issuance(State.FINALIZING), order("valid"), State.FAILED, None),
]


@pytest.mark.parametrize(("before", "seen", "state", "command"), ORDERS)
def test_order_seen_decides_the_next_step(
    before: Issuance, seen: OrderView, state: State, command: Command | None
) -> None:
    step = advance(before, events.OrderSeen(seen), NOW)
    assert (step.issuance.state, step.command) == (state, command)


AUTHORIZATIONS = [
    (State.ORDERED, authorization("pending"), State.ORDERED, Command.LOCATE_CHALLENGE),
    (State.ORDERED, authorization("valid"), State.ORDERED, None),
    (State.ORDERED, authorization("pending", challenge_url=None), State.FAILED, None),
    (State.ORDERED, authorization("invalid"), State.FAILED, None),
    (State.ORDERED, authorization("expired"), State.WAITING, None),
    (State.VALIDATING, authorization("pending"), State.VALIDATING, None),
    (State.VALIDATING, authorization("valid"), State.VALIDATING, Command.READ_ORDER),
    (State.VALIDATING, authorization("invalid"), State.FAILED, None),
    (State.VALIDATING, authorization("deactivated"), State.WAITING, None),
]


@pytest.mark.parametrize(("before", "seen", "state", "command"), AUTHORIZATIONS)
def test_authorization_seen_decides_the_next_step(
    before: State, seen: AuthorizationView, state: State, command: Command | None
) -> None:
    step = advance(issuance(before), events.AuthorizationSeen(seen), NOW)
    assert (step.issuance.state, step.command) == (state, command)


@pytest.mark.parametrize(
    ("status", "problem", "message"),
    [
        ("invalid", "no TXT record", "no TXT record"),
        ("valid", None, "the order expired"),
        ("pending", None, "the order expired"),
    ],
)
def test_order_that_ends_while_validating_is_explained_by_its_authorization(
    status: str, problem: str | None, message: str
) -> None:
    ended = events.OrderSeen(order("invalid", problem="the order expired"))
    asking = advance(issuance(State.VALIDATING), ended, NOW)
    assert (asking.issuance.state, asking.command) == (
        State.VALIDATING,
        Command.READ_AUTHORIZATION,
    )
    seen = events.AuthorizationSeen(authorization(status, problem=problem))
    after = advance(asking.issuance, seen, NOW).issuance
    assert (after.state, after.message) == (State.FAILED, message)


SOON = NOW.now_ms + machine.SHORT_REST_MS
FORGOTTEN = [
    (State.REQUESTED, issuance(State.REQUESTED, sealed_key=None), Command.MAKE_KEY, True),
    (State.REQUESTED, issuance(State.REQUESTED), Command.PLACE_ORDER, False),
    (State.REQUESTED, issuance(State.ORDERED), Command.READ_AUTHORIZATION, False),
    (State.ORDERED, issuance(State.ORDERED), Command.LOCATE_CHALLENGE, True),
    (State.ORDERED, issuance(State.ORDERED), Command.PUBLISH_CHALLENGE, False),
    (State.ORDERED, issuance(State.PUBLISHED), Command.CHECK_PROPAGATION, True),
    (State.ORDERED, issuance(State.PROPAGATED), Command.ANSWER_CHALLENGE, False),
    (State.ORDERED, issuance(State.VALIDATING, looks=1, due_at_ms=SOON), None, False),
    (State.VALIDATING, issuance(State.VALIDATING, looks=2, due_at_ms=SOON), None, True),
    (State.VALIDATING, issuance(State.VALIDATING, looks=2, due_at_ms=SOON + 1), None, False),
    (State.ORDERED, issuance(State.READY), Command.FINALIZE, False),
    (State.ORDERED, issuance(State.WAITING, due_at_ms=SOON), None, False),
    (State.PUBLISHED, issuance(State.PROPAGATED), Command.ANSWER_CHALLENGE, False),
    (State.READY, issuance(State.FINALIZING, looks=1, due_at_ms=SOON), None, True),
    (State.READY, issuance(State.FINALIZING), Command.FETCH_CERTIFICATE, True),
    (State.READY, issuance(State.READY), Command.FINALIZE, False),
    (State.REQUESTED, issuance(State.REQUESTED, directory_url=None), None, False),
]


@pytest.mark.parametrize(("stored", "after", "command", "is_forgotten"), FORGOTTEN)
def test_step_is_stored_before_what_would_not_be_found_again(
    stored: State, after: Issuance, command: Command | None, is_forgotten: bool
) -> None:
    assert machine.may_be_forgotten(stored, Step(after, command), NOW) is is_forgotten


AT_WORK = [State.REQUESTED, State.ORDERED, State.PUBLISHED, State.PROPAGATED]
AT_WORK += [State.VALIDATING, State.READY, State.FINALIZING]

FAULTS = [
    (FaultKind.UNREACHABLE, State.WAITING, Reason.AUTHORITY_UNAVAILABLE),
    (FaultKind.SERVER_ERROR, State.WAITING, Reason.AUTHORITY_UNAVAILABLE),
    (FaultKind.RATE_LIMITED, State.WAITING, Reason.RATE_LIMITED),
    (FaultKind.ACCOUNT_REFUSED, State.WAITING, Reason.AUTHORITY_REFUSED),
    (FaultKind.BUSY, State.WAITING, Reason.AUTHORITY_UNAVAILABLE),
    (FaultKind.REFUSED, State.FAILED, Reason.AUTHORITY_REFUSED),
    (FaultKind.BAD_CSR, State.FAILED, Reason.ISSUANCE_FAILED),
]


@pytest.mark.parametrize("before", AT_WORK)
@pytest.mark.parametrize(("kind", "state", "reason"), FAULTS)
def test_fault_of_the_authority_waits_or_fails_with_its_words(
    before: State, kind: FaultKind, state: State, reason: Reason
) -> None:
    after = advance(issuance(before), events.AuthorityFailed(kind, "its words"), NOW).issuance
    assert (after.state, after.reason, after.message) == (state, reason, "its words")
    assert after.due_at_ms > NOW.now_ms


@pytest.mark.parametrize("kind", [FaultKind.ACCOUNT_MISSING, FaultKind.GONE])
def test_vanished_order_is_placed_anew_with_a_new_key(kind: FaultKind) -> None:
    lost = advance(issuance(State.VALIDATING), events.AuthorityFailed(kind, "gone"), NOW).issuance
    again = advance(lost, events.Due(), NOW)
    assert again.command is Command.CHOOSE_AUTHORITY
    placing = advance(again.issuance, events.AuthorityChosen("directory", False), NOW)
    assert placing.command is Command.MAKE_KEY
    assert (placing.issuance.sealed_key, placing.issuance.order_url) == (None, None)


@pytest.mark.parametrize("kind", [FaultKind.ACCOUNT_MISSING, FaultKind.GONE])
@pytest.mark.parametrize("state", [State.READY, State.FINALIZING])
def test_order_that_vanishes_after_the_csr_fails(kind: FaultKind, state: State) -> None:
    # A certificate may have been issued for it: the next one is not ordered a second later.
    after = advance(issuance(state), events.AuthorityFailed(kind, "gone"), NOW).issuance
    assert (after.state, after.failures) == (State.FAILED, 1)


def test_orders_that_vanish_one_after_the_other_are_placed_ever_more_slowly() -> None:
    current, pauses = issuance(State.ORDERED), []
    for _ in range(20):
        lost = advance(current, events.AuthorityFailed(FaultKind.GONE, "gone"), NOW).issuance
        pauses.append(lost.due_at_ms - NOW.now_ms)
        asking = advance(lost, events.Due(), NOW).issuance
        keyed = replace(asking, directory_url="directory", sealed_key="s", csr="c")
        current = advance(keyed, events.OrderSeen(order("pending")), NOW).issuance
        assert (current.state, current.faults) == (State.ORDERED, 0)
    assert pauses == sorted(pauses)
    assert pauses[0] < 1_001
    assert pauses[-1] > moves.LONGEST_FAILURE_MS * 0.7


def test_order_that_is_ready_again_after_the_csr_is_finalized_at_a_polls_pace() -> None:
    current, sent, moment = issuance(State.FINALIZING), 0, NOW
    for _ in range(60):
        moment = Moment(current.due_at_ms, 0.5)
        step = advance(current, events.Due(), moment)
        step = advance(step.issuance, events.OrderSeen(order("ready")), moment)
        if step.command is Command.FINALIZE:
            sent += 1
            step = advance(step.issuance, events.Finalized(order("processing")), moment)
        current = step.issuance
        assert current.state is State.FINALIZING
    assert 0 < sent <= (moment.now_ms - NOW.now_ms) / 4_000
    late = Moment(NOW.now_ms + moves.PROCESSING_BOUND_MS, 0)
    assert advance(current, events.OrderSeen(order("processing")), late).issuance.state is (
        State.FAILED
    )


def test_rate_limit_holds_for_as_long_as_the_authority_says() -> None:
    event = events.AuthorityFailed(FaultKind.RATE_LIMITED, "slow down", 3_600)
    after = advance(issuance(State.REQUESTED), event, NOW).issuance
    assert after.told_until_ms == NOW.now_ms + 3_600_000
    assert after.failures == 0
    # Looked at sooner: the ledger knows whether it still holds.
    assert after.due_at_ms == NOW.now_ms + moves.LONGEST_REST_MS
    ordered = advance(issuance(State.READY), event, NOW).issuance
    assert ordered.due_at_ms == NOW.now_ms + 3_600_000


def test_finalize_too_early_looks_at_the_order_again() -> None:
    event = events.AuthorityFailed(FaultKind.NOT_READY, "not yet")
    after = advance(issuance(State.READY), event, NOW)
    assert (after.issuance.state, after.command) == (State.READY, None)
    assert advance(after.issuance, events.Due(), NOW).command is Command.READ_ORDER


def test_finalize_that_leaves_the_order_ready_is_not_repeated_at_once() -> None:
    before = issuance(State.READY)
    after = advance(before, events.Finalized(order("ready")), NOW)
    assert after.command is None
    assert after.issuance.due_at_ms > NOW.now_ms
    late = Moment(NOW.now_ms + moves.VALIDATION_BOUND_MS, 0)
    assert advance(before, events.Finalized(order("ready")), late).issuance.state is State.FAILED


def test_processing_goes_on_for_hours_but_not_for_ever() -> None:
    seen = events.OrderSeen(order("processing"))
    hours = Moment(NOW.now_ms + moves.PROCESSING_BOUND_MS - 1, 0)
    assert advance(issuance(State.FINALIZING), seen, hours).issuance.state is State.FINALIZING
    day = Moment(NOW.now_ms + moves.PROCESSING_BOUND_MS, 0)
    assert advance(issuance(State.FINALIZING), seen, day).issuance.state is State.FAILED


def test_rate_limit_that_is_over_already_still_backs_off() -> None:
    event = events.AuthorityFailed(FaultKind.RATE_LIMITED, "slow down", 0.0)
    after = advance(issuance(State.REQUESTED), event, NOW).issuance
    assert after.due_at_ms >= NOW.now_ms + 800


def test_challenge_answered_twice_is_left_to_the_authorization() -> None:
    event = events.AuthorityFailed(FaultKind.MALFORMED, "not pending")
    after = advance(issuance(State.PROPAGATED), event, NOW).issuance
    assert after.state is State.VALIDATING


def test_coming_forward_ends_a_row_of_faults() -> None:
    tired = issuance(State.PUBLISHED, faults=9, away=2)
    looked = advance(tired, events.PropagationSeen(("192.0.2.1:53",)), NOW).issuance
    assert (looked.faults, looked.away) == (9, 2)
    fresh = advance(tired, events.PropagationSeen(()), NOW).issuance
    assert (fresh.state, fresh.faults, fresh.away) == (State.PROPAGATED, 0, 0)


def test_retry_after_of_a_poll_ends_with_what_is_waited_for() -> None:
    seen = events.OrderSeen(order("processing", retry_after_seconds=31_536_000.0))
    after = advance(issuance(State.FINALIZING), seen, NOW).issuance
    assert after.due_at_ms == NOW.now_ms + moves.PROCESSING_BOUND_MS


def test_passing_faults_back_off_and_keep_the_order() -> None:
    current, pauses = issuance(State.VALIDATING), []
    for _ in range(15):
        step = advance(current, events.AuthorityFailed(FaultKind.UNREACHABLE, "down"), NOW)
        pauses.append(step.issuance.due_at_ms - NOW.now_ms)
        current = advance(step.issuance, events.Due(), NOW).issuance
        assert current.state is State.VALIDATING
        assert current.order_url == "order"
    assert pauses == sorted(pauses)
    assert pauses[0] < 1_001
    assert pauses[-1] <= moves.LONGEST_FAULT_MS


def test_failures_back_off_from_a_minute_to_six_hours_with_a_new_key_each() -> None:
    current, pauses = issuance(State.ORDERED), []
    for _ in range(15):
        failed = advance(current, events.OrderSeen(order("invalid", problem="no")), NOW).issuance
        pauses.append(failed.due_at_ms - NOW.now_ms)
        assert failed.sealed_key is None
        current = issuance(State.ORDERED, failures=failed.failures)
    assert 0.8 * moves.FIRST_FAILURE_MS <= pauses[0] <= moves.FIRST_FAILURE_MS
    assert 0.8 * moves.LONGEST_FAILURE_MS <= pauses[-1] <= moves.LONGEST_FAILURE_MS


def test_propagation_is_looked_at_quickly_then_slower_and_bounded() -> None:
    seen = events.PropagationSeen(("192.0.2.1:53",))
    current, pauses = issuance(State.PUBLISHED), []
    for _ in range(12):
        current = advance(current, seen, NOW).issuance
        pauses.append(current.due_at_ms - NOW.now_ms)
    assert pauses[:3] == [10, 20, 40]
    assert pauses[-1] == moves.LONGEST_LOOK_MS
    late = Moment(NOW.now_ms + machine.PROPAGATION_BOUND_MS, 0)
    held = advance(current, seen, late).issuance
    assert (held.state, held.reason) == (State.WAITING, Reason.ZONE_UNAVAILABLE)
    assert "192.0.2.1:53" in (held.message or "")
    # The order may have expired meanwhile, or the record be gone: both are looked into.
    assert advance(held, events.Due(), late).command is Command.READ_ORDER


@pytest.mark.parametrize("looks", [0, 3])
def test_retry_after_of_the_authority_sets_the_next_look(looks: int) -> None:
    seen = events.OrderSeen(order("processing", retry_after_seconds=7.0))
    after = advance(issuance(State.FINALIZING, looks=looks), seen, NOW).issuance
    assert after.due_at_ms == NOW.now_ms + 7_000


def test_undecided_validation_fails_after_its_bound() -> None:
    late = Moment(NOW.now_ms + moves.VALIDATION_BOUND_MS, 0)
    seen = events.AuthorizationSeen(authorization("pending"))
    assert advance(issuance(State.VALIDATING), seen, late).issuance.state is State.FAILED


def test_ready_order_no_longer_needs_its_challenge_record() -> None:
    step = advance(issuance(State.VALIDATING), events.OrderSeen(order("ready")), NOW)
    assert step.issuance.challenge_value is None


def test_unusable_certificate_fails_the_issuance() -> None:
    step = advance(issuance(State.FINALIZING), events.CertificateRejected("wrong key"), NOW)
    assert (step.issuance.state, step.issuance.message) == (State.FAILED, "wrong key")


@pytest.mark.parametrize(("retry_after", "state"), [(2.0, State.WAITING), (None, State.FAILED)])
def test_zone_fault_waits_only_where_waiting_helps(retry_after: float | None, state: State) -> None:
    step = advance(issuance(State.ORDERED), events.ZoneFailed("no zone", retry_after), NOW)
    assert (step.issuance.state, step.issuance.reason) == (state, Reason.ZONE_UNAVAILABLE)


def test_broken_step_waits_and_names_the_incident() -> None:
    step = advance(issuance(State.READY), events.StepBroke("abc"), NOW)
    assert step.issuance.state is State.WAITING
    assert "abc" in (step.issuance.message or "")


def test_unlisted_pairs_of_state_and_event_raise() -> None:
    with pytest.raises(Unexpected, match="KeyMade in state validating"):
        advance(issuance(State.VALIDATING), events.KeyMade("sealed", "csr"), NOW)
