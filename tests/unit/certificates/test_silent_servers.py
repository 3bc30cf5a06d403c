"""How long name servers are waited for: those that lag without end, silent ones as configured."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from gateway.certificates import events, machine
from gateway.certificates.events import Command
from gateway.certificates.machine import advance
from gateway.certificates.moves import Moment
from gateway.certificates.states import Issuance, State
from tests.unit.certificates.test_machine import NOW, authorization, issuance, order

BOUND_MS = 300_000
SILENT = events.PropagationSeen((), ("192.0.2.1:53",), BOUND_MS)
PUBLISHED = issuance(State.PUBLISHED, published_at_ms=NOW.now_ms)


def later(ms: int) -> Moment:
    return Moment(NOW.now_ms + ms, 0.5)


def held_up_and_published_again(current: Issuance, moment: Moment) -> Issuance:
    """What a look that came too late leads to: a rest, the order read, the value published."""
    resting = advance(current, SILENT, moment).issuance
    assert resting.state is State.WAITING
    reading = advance(resting, events.Due(), moment).issuance
    publishing = advance(reading, events.OrderSeen(order("pending")), moment)
    assert publishing.command is Command.PUBLISH_CHALLENGE
    return advance(publishing.issuance, events.ChallengePublished(), moment).issuance


def test_silent_server_is_gone_on_without_when_its_time_is_over() -> None:
    assert advance(PUBLISHED, SILENT, later(BOUND_MS - 1)).issuance.state is not State.PROPAGATED
    step = advance(PUBLISHED, SILENT, later(BOUND_MS))
    assert (step.issuance.state, step.command) == (State.PROPAGATED, Command.ANSWER_CHALLENGE)


@pytest.mark.parametrize(
    "seen",
    [
        events.PropagationSeen(("192.0.2.2:53",), ("192.0.2.1:53",), BOUND_MS),
        events.PropagationSeen((), ("192.0.2.1:53",), None),
    ],
    ids=["another lags", "without a bound"],
)
def test_others_are_waited_for_without_end(seen: events.PropagationSeen) -> None:
    after = advance(PUBLISHED, seen, later(100 * BOUND_MS)).issuance
    assert after.state is State.WAITING
    assert "192.0.2.1:53" in (after.message or "")


def test_time_is_counted_from_the_first_publication_whatever_lies_between() -> None:
    current = PUBLISHED
    for turn in (1, 2):
        current = held_up_and_published_again(current, later(turn * machine.PROPAGATION_BOUND_MS))
        current = Issuance.from_json(json.loads(json.dumps(current.to_json())))
        assert current.published_at_ms == NOW.now_ms
    assert advance(current, SILENT, later(BOUND_MS)).issuance.state is State.PROPAGATED


def test_time_is_counted_anew_for_the_next_value() -> None:
    told = replace(PUBLISHED, state=State.VALIDATING)
    after = advance(told, events.AuthorizationSeen(authorization("expired")), NOW).issuance
    assert (after.challenge_value, after.published_at_ms) == (None, None)


def test_issuance_of_an_older_release_is_counted_from_its_present_state() -> None:
    old = issuance(State.PUBLISHED)
    assert "published_at_ms" not in old.to_json()
    assert advance(old, SILENT, later(BOUND_MS)).issuance.state is State.PROPAGATED


def test_last_look_is_when_the_time_is_over() -> None:
    patient = issuance(State.PUBLISHED, published_at_ms=NOW.now_ms, looks=20)
    bound = events.PropagationSeen((), ("192.0.2.1:53",), 60_000)
    looked = advance(patient, bound, later(59_000)).issuance
    assert looked.due_at_ms == NOW.now_ms + 60_000


def test_servers_that_are_waited_for_are_named_meanwhile() -> None:
    looked = advance(PUBLISHED, SILENT, later(1)).issuance
    assert "192.0.2.1:53" in (looked.message or "")
    there = advance(looked, events.PropagationSeen(()), later(2)).issuance
    assert there.message is None
