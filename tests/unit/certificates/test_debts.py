"""What steps leave outside, and when it is owed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gateway.certificates import debts, events, machine
from gateway.certificates.events import Command
from gateway.certificates.moves import Moment
from gateway.certificates.orders import FaultKind, OrderView
from gateway.certificates.states import Debt, DebtKind, Issuance, State

NEW = machine.request("i", Moment(0, 0))
REQUESTED = replace(NEW, directory_url="directory")
ORDERED = replace(
    REQUESTED, state=State.ORDERED, order_url="order", authorization_url="authorization"
)
LOCATED = replace(
    ORDERED, challenge_zone="example", challenge_name="_acme-challenge.a", challenge_value="txt"
)
FAILED = replace(NEW, state=State.FAILED)
ELSEWHERE = replace(NEW, passed_over={"directory": 9}, changed_at_ms=5)

RECORD = Debt(DebtKind.CHALLENGE_RECORD, zone="example", name="_acme-challenge.a", value="txt")
ORDER = Debt(DebtKind.ORDER, url="order", directory_url="directory")
AUTHORIZATION = Debt(DebtKind.AUTHORIZATION, url="authorization", directory_url="directory")

PLACED = events.OrderSeen(OrderView("order", "pending", ("authorization",), "finalize"))
SILENCE = events.AuthorityFailed(FaultKind.UNREACHABLE, "no answer")


@pytest.mark.parametrize(
    ("before", "after", "owed"),
    [
        (None, REQUESTED, ()),
        (REQUESTED, ORDERED, ()),
        (ORDERED, LOCATED, (RECORD,)),
        (ORDERED, FAILED, (AUTHORIZATION,)),
        (replace(ORDERED, authorization_url=None), FAILED, (ORDER,)),
        (REQUESTED, FAILED, ()),
        (ORDERED, ELSEWHERE, (replace(AUTHORIZATION, due_at_ms=5 + debts.LEFT_BEHIND_MS),)),
    ],
)
def test_step_owes_the_record_to_come_and_the_order_it_drops(
    before: Issuance | None, after: Issuance, owed: tuple[Debt, ...]
) -> None:
    assert debts.debts_of_progress(before, after) == owed


@pytest.mark.parametrize(
    ("command", "issuance", "event", "left"),
    [
        (Command.PLACE_ORDER, REQUESTED, PLACED, ORDER),
        (Command.PLACE_ORDER, REQUESTED, SILENCE, None),
        (Command.READ_ORDER, ORDERED, PLACED, None),
        (Command.PUBLISH_CHALLENGE, LOCATED, events.ChallengePublished(), RECORD),
        (Command.PUBLISH_CHALLENGE, LOCATED, events.ZoneFailed("no answer", 1), RECORD),
        (Command.CHECK_PROPAGATION, LOCATED, events.PropagationSeen(()), None),
    ],
)
def test_abandoned_step_leaves_its_order_or_its_record(
    command: Command, issuance: Issuance, event: events.Event, left: Debt | None
) -> None:
    assert debts.debt_of_step(command, issuance, event) == left


@pytest.mark.parametrize(
    ("debt", "issuance", "relied_on"),
    [
        (RECORD, None, False),
        (RECORD, ORDERED, False),
        (RECORD, LOCATED, True),
        (replace(RECORD, value="other"), LOCATED, False),
        (ORDER, ORDERED, True),
        (ORDER, replace(ORDERED, order_url="other"), False),
        (ORDER, REQUESTED, False),
        (AUTHORIZATION, ORDERED, False),
    ],
)
def test_debt_is_relied_on_by_the_issuance_that_goes_on_with_it(
    debt: Debt, issuance: Issuance | None, relied_on: bool
) -> None:
    assert debts.is_relied_on(debt, issuance) is relied_on
