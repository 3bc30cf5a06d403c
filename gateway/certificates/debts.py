"""What an issuance leaves outside the gateway and must take away again: pure.

A challenge record is entered as a debt in the same write that stores where it will be published,
so it outlives failure, crash and release; it is paid, that is removed by exact value, once no
issuance needs it. A release leaves the authorization as a debt as well; so does a worker that has
lost its lease what it did outside before it noticed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gateway.certificates.events import Command, OrderSeen
from gateway.certificates.states import Debt, DebtKind, Issuance

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gateway.certificates.events import Event

LEFT_BEHIND_MS = 60_000
"""How long an authority that was turned away from is left alone."""

FIRST_RETRY_MS = 2_000
LONGEST_RETRY_MS = 3_600_000


def challenge_debt(issuance: Issuance) -> Debt | None:
    """The record that an issuance has published or is about to publish."""
    if issuance.challenge_name is None or issuance.challenge_value is None:
        return None
    return Debt(
        DebtKind.CHALLENGE_RECORD,
        zone=issuance.challenge_zone,
        name=issuance.challenge_name,
        value=issuance.challenge_value,
    )


def debts_of_release(issuance: Issuance) -> tuple[Debt, ...]:
    """What remains to be taken back at the CA when an issuance is dropped on the way."""
    at = issuance.directory_url
    if issuance.authorization_url is not None:
        return (Debt(DebtKind.AUTHORIZATION, url=issuance.authorization_url, directory_url=at),)
    if issuance.order_url is not None:
        return (Debt(DebtKind.ORDER, url=issuance.order_url, directory_url=at),)
    return ()


def debts_of_progress(before: Issuance | None, after: Issuance) -> tuple[Debt, ...]:
    """What is owed with a step: the record to be published, and an order that it drops."""
    record = challenge_debt(after)
    owed: tuple[Debt, ...] = () if record is None else (record,)
    if before is not None and after.order_url is None:
        # An authority that does not answer must not hold up the order at the next one.
        is_left = after.passed_over.get(before.directory_url or "", 0) > after.changed_at_ms
        due_at_ms = after.changed_at_ms + LEFT_BEHIND_MS if is_left else 0
        owed += tuple(replace(debt, due_at_ms=due_at_ms) for debt in debts_of_release(before))
    return owed


def debt_of_step(command: Command, issuance: Issuance, event: Event) -> Debt | None:
    """What carrying out a command has left outside, if the issuance does not go on from there."""
    if command is Command.PLACE_ORDER and isinstance(event, OrderSeen):
        at = issuance.directory_url
        return Debt(DebtKind.ORDER, url=event.order.url, directory_url=at)
    if command is Command.PUBLISH_CHALLENGE:
        return challenge_debt(issuance)
    return None


def with_debts(debts: Iterable[Debt], more: Iterable[Debt]) -> tuple[Debt, ...]:
    """The debts and those of `more` that are not among them already."""
    owed = tuple(debts)
    for debt in more:
        if not any(each.is_same_as(debt) for each in owed):
            owed = (*owed, debt)
    return owed


def without_debt(debts: Iterable[Debt], paid: Debt) -> tuple[Debt, ...]:
    """The debts without the one that was paid."""
    return tuple(each for each in debts if not each.is_same_as(paid))


def payable(debts: Iterable[Debt], issuance: Issuance | None) -> tuple[Debt, ...]:
    """The debts that no issuance needs any more."""
    return tuple(each for each in debts if not is_relied_on(each, issuance))


def is_relied_on(debt: Debt, issuance: Issuance | None) -> bool:
    """Whether the issuance under way goes on with this very record or order."""
    if issuance is None:
        return False
    if debt.kind is DebtKind.ORDER:
        return debt.url == issuance.order_url
    record = challenge_debt(issuance)
    return record is not None and debt.is_same_as(record)


def put_off(debt: Debt, now_ms: int, retry_after_seconds: float | None = None) -> Debt:
    """A debt that could not be paid: try again, ever later, and not before a server wants it."""
    own_ms = min(LONGEST_RETRY_MS, FIRST_RETRY_MS * 2 ** min(debt.tries, 20))
    pause_ms = max(own_ms, int((retry_after_seconds or 0) * 1000))
    return replace(debt, tries=debt.tries + 1, due_at_ms=now_ms + pause_ms)


def as_stored(debts: Iterable[Debt]) -> tuple[dict[str, Any], ...]:
    """The debts as a document holds them; `agenda.debts_of` reads them again."""
    return tuple(debt.to_json() for debt in debts)
