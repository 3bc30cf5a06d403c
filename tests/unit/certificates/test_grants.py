"""What is charged for an order: once for each, and given back once where it came to nothing."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings, strategies as st

from gateway.certificates import events, grants
from gateway.certificates.events import Command
from gateway.certificates.machine import advance
from gateway.certificates.mishaps import may_be_issued
from gateway.certificates.moves import Moment, Step
from gateway.certificates.orders import FaultKind
from gateway.certificates.states import Issuance, Reason, State, replace
from tests.unit.certificates.test_machine import NOW
from tests.unit.certificates.test_machine_walk import ANSWERS
from tests.unit.certificates.test_mishaps import issuance

CHOSEN = issuance(State.REQUESTED, order_url=None, challenge_value=None)
LATER = [FaultKind.UNREACHABLE, FaultKind.SERVER_ERROR, FaultKind.RATE_LIMITED, FaultKind.BUSY]


def ended(before: Issuance, event: events.Event) -> bool | None:
    """Whether the order stays charged when the grant is over after an event; None: it is not."""
    after = advance(before, event, NOW).issuance
    return grants.may_be_placed(before, event) if grants.is_over(before, after) else None


@pytest.mark.parametrize("kind", LATER)
@pytest.mark.parametrize("may_be_done", [False, True])
def test_new_name_that_rests_before_its_order_gives_its_grant_back(
    kind: FaultKind, may_be_done: bool
) -> None:
    event = events.AuthorityFailed(kind, "later", 30.0, may_be_done=may_be_done)
    assert ended(CHOSEN, event) is may_be_done
    rests = advance(CHOSEN, event, NOW).issuance
    assert rests.directory_url == "first"  # it tells whose limit it waits for
    again = advance(rests, events.Due(), NOW)
    assert again.command is Command.CHOOSE_AUTHORITY
    assert (again.issuance.directory_url, again.issuance.sealed_key) == (None, None)


@pytest.mark.parametrize("kind", LATER)
@pytest.mark.parametrize("kept", [replace(CHOSEN, renewal=True), issuance(State.ORDERED)])
def test_renewal_and_whatever_has_an_order_keep_their_grant(
    kind: FaultKind, kept: Issuance
) -> None:
    event = events.AuthorityFailed(kind, "later", 30.0)
    assert ended(kept, event) is None
    again = advance(advance(kept, event, NOW).issuance, events.Due(), NOW).issuance
    assert again.is_granted


@pytest.mark.parametrize(
    ("before", "event", "is_placed"),
    [
        (CHOSEN, events.AuthoritiesHeld(NOW.now_ms + 5_000, Reason.RATE_LIMITED, "no"), False),
        (CHOSEN, events.AuthorityFailed(FaultKind.REFUSED, "no"), False),
        (CHOSEN, events.AuthorityFailed(FaultKind.REFUSED, "no", elsewhere=True), False),
        (CHOSEN, events.AuthorityFailed(FaultKind.GONE, "of another", may_be_done=True), True),
        (CHOSEN, events.StepBroke("abc"), True),
        (issuance(State.VALIDATING), events.AuthorityFailed(FaultKind.GONE, "gone"), True),
        (issuance(State.ORDERED), events.AuthorityFailed(FaultKind.REFUSED, "no"), True),
        (issuance(State.READY), events.AuthorityFailed(FaultKind.GONE, "gone"), None),
        (issuance(State.FINALIZING), events.CertificateRejected("wrong"), None),
    ],
)
def test_what_comes_to_nothing_gives_back_what_it_has_not_used(
    before: Issuance, event: events.Event, is_placed: bool | None
) -> None:
    assert ended(before, event) is is_placed


@settings(max_examples=300, deadline=None)
@given(st.integers(), st.booleans())
def test_on_any_walk_each_order_is_charged_and_each_charge_comes_back_once_at_the_most(
    seed: int, is_renewal: bool
) -> None:
    choose = random.Random(seed)  # noqa: S311 (a walk, not a secret)
    now_ms, charged = NOW.now_ms, 0
    step = Step(replace(issuance(State.REQUESTED, directory_url=None), renewal=is_renewal))
    for _ in range(120):
        now_ms += choose.choice([0, 30, 5_000, 700_000])
        event: events.Event = events.Due()  # also where a process died
        if step.command is not None and choose.random() < 0.9:
            event = choose.choice([events.StepBroke("abc"), *3 * ANSWERS[step.command]])
        before, moment = step.issuance, Moment(now_ms, choose.random())
        charged += isinstance(event, events.AuthorityChosen)
        step = advance(before, event, moment)
        is_over = grants.is_over(before, step.issuance)
        assert not (is_over and isinstance(event, events.Due))  # the worker looks at answers only
        charged -= is_over
        if before.is_granted and not step.issuance.is_granted and may_be_issued(before):
            charged = 0  # spent for good
        assert charged == step.issuance.is_granted
        if step.command is Command.PLACE_ORDER:
            assert charged
