"""What an issuance leaves outside the gateway and must take away again: pure.

A challenge record is entered as a debt in the same write that stores where it will be published,
so it outlives failure, crash and release; it is paid, that is removed by exact value, once no
issuance needs it. A release leaves the authorization as a debt as well.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gateway.certificates.states import Debt, DebtKind, Issuance

if TYPE_CHECKING:
    from collections.abc import Iterable

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
    if issuance.authorization_url is not None:
        return (Debt(DebtKind.AUTHORIZATION, url=issuance.authorization_url),)
    if issuance.order_url is not None:
        return (Debt(DebtKind.ORDER, url=issuance.order_url),)
    return ()


def with_debt(debts: Iterable[Debt], debt: Debt | None) -> tuple[Debt, ...]:
    """The debts and one more, unless it is among them already."""
    known = tuple(debts)
    if debt is None or any(each.is_same_as(debt) for each in known):
        return known
    return (*known, debt)


def without_debt(debts: Iterable[Debt], paid: Debt) -> tuple[Debt, ...]:
    """The debts without the one that was paid."""
    return tuple(each for each in debts if not each.is_same_as(paid))


def payable(debts: Iterable[Debt], issuance: Issuance | None) -> tuple[Debt, ...]:
    """The debts that no issuance needs any more."""
    needed = None if issuance is None else challenge_debt(issuance)
    return tuple(each for each in debts if needed is None or not each.is_same_as(needed))


def put_off(debt: Debt, now_ms: int) -> Debt:
    """A debt that could not be paid: try again, ever later."""
    pause_ms = min(LONGEST_RETRY_MS, FIRST_RETRY_MS * 2 ** min(debt.tries, 20))
    return replace(debt, tries=debt.tries + 1, due_at_ms=now_ms + pause_ms)
