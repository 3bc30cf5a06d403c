"""Random walks over the machine: whatever happens, the next process finds what it needs."""

from __future__ import annotations

import random
from dataclasses import replace

from hypothesis import given, settings, strategies as st

from gateway.certificates import events
from gateway.certificates.events import Command
from gateway.certificates.machine import advance, request
from gateway.certificates.moves import Moment, Step
from gateway.certificates.orders import FaultKind
from gateway.certificates.states import Issuance, Reason, State
from tests.unit.certificates.test_machine import CERTIFICATE, NOW, authorization, order

ORDER_ANSWERS: list[events.Event] = [
    events.OrderSeen(order(status, certificate_url="certificate"))
    for status in ("pending", "ready", "processing", "valid", "invalid")
]
AUTHORITY_FAULTS: list[events.Event] = [
    events.AuthorityFailed(kind, "words", elsewhere=elsewhere)
    for kind in FaultKind
    for elsewhere in (False, True)
]
ZONE_FAULTS: list[events.Event] = [events.ZoneFailed("words", 1.0), events.ZoneFailed("words")]
ANSWERS: dict[Command, list[events.Event]] = {
    Command.CHOOSE_AUTHORITY: [
        events.AuthorityChosen("directory", takes_replaces=True),
        events.AuthoritiesHeld(NOW.now_ms + 9**12, Reason.RATE_LIMITED, "used up"),
    ],
    Command.MAKE_KEY: [events.KeyMade("sealed", "csr")],
    Command.PLACE_ORDER: [*ORDER_ANSWERS, *AUTHORITY_FAULTS],
    Command.READ_ORDER: [*ORDER_ANSWERS, *AUTHORITY_FAULTS],
    Command.READ_AUTHORIZATION: [
        *(
            events.AuthorizationSeen(authorization(status))
            for status in ("pending", "valid", "invalid", "expired")
        ),
        *AUTHORITY_FAULTS,
    ],
    Command.LOCATE_CHALLENGE: [events.ChallengeLocated("example", "name"), *ZONE_FAULTS],
    Command.PUBLISH_CHALLENGE: [events.ChallengePublished(), *ZONE_FAULTS],
    Command.CHECK_PROPAGATION: [
        events.PropagationSeen(()),
        events.PropagationSeen(("192.0.2.1:53",)),
        events.PropagationSeen((), ("192.0.2.1:53",), 300_000),
        *ZONE_FAULTS,
    ],
    Command.ANSWER_CHALLENGE: [events.ChallengeAnswered(), *AUTHORITY_FAULTS],
    Command.FINALIZE: [
        *(
            events.Finalized(order(status, certificate_url="certificate"))
            for status in ("ready", "processing", "valid", "invalid")
        ),
        *AUTHORITY_FAULTS,
    ],
    Command.FETCH_CERTIFICATE: [
        events.CertificateFetched(CERTIFICATE),
        events.CertificateRejected("wrong"),
        *AUTHORITY_FAULTS,
    ],
}
"""Every way in which each command can end, crashes apart: those are a `Due` instead."""


@settings(max_examples=200, deadline=None)
@given(st.integers())
def test_any_walk_keeps_what_the_next_process_needs(seed: int) -> None:
    choose = random.Random(seed)  # noqa: S311 (a walk, not a secret)
    now_ms = NOW.now_ms
    step = Step(replace(request("i", NOW), renewal=True, renewal_id="a.b"))
    for _ in range(80):
        now_ms += choose.choice([0, 30, 5_000, 700_000])
        possible: list[events.Event] = [events.Due(), events.StepBroke("abc")]
        if step.command is None:
            possible = [events.Due()]
        else:
            possible += 3 * ANSWERS[step.command]
        step = advance(step.issuance, choose.choice(possible), Moment(now_ms, choose.random()))
        check(step, now_ms)
        assert step.issuance.since_ms == NOW.now_ms


def check(step: Step, now_ms: int) -> None:
    current = step.issuance
    assert Issuance.from_json(current.to_json()) == current
    if step.command is Command.PLACE_ORDER:
        assert current.directory_url
        assert current.sealed_key
        assert current.csr
    if step.command in {Command.READ_ORDER, Command.FINALIZE}:
        assert current.order_url
        assert current.finalize_url
    if step.command in {Command.PUBLISH_CHALLENGE, Command.CHECK_PROPAGATION}:
        assert current.challenge_name
        assert current.challenge_value
    if step.command is Command.FETCH_CERTIFICATE:
        assert current.certificate_url
    check_stages(current, now_ms)
    if current.state in {State.WAITING, State.FAILED}:
        assert current.reason
        assert current.message
        assert current.due_at_ms > now_ms


def check_stages(current: Issuance, now_ms: int) -> None:
    """Each time is that of a stage of this attempt, which was requested first."""
    passed = dict(current.passed_ms)
    stages = set(State) - {State.WAITING, State.FAILED}
    assert set(passed) <= {each.value for each in stages}
    assert min(passed, key=lambda each: passed[each]) == State.REQUESTED
    assert max(passed.values()) <= now_ms
    if current.state in stages:
        assert passed[current.state] <= current.changed_at_ms
