"""What is to be done next for one hostname: pure.

The worker asks after every step, with the document as it now is. Debts at the CA are paid before a
new order is placed, since a CA may offer the pending authorization of a released issuance again;
while an order is under way they wait, so that nothing it relies on is deactivated.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeVar

from gateway.certificates.debts import payable
from gateway.certificates.states import Debt, DebtKind, Issuance, StoredCertificate
from gateway.store.documents import Unreadable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gateway.store.documents import Document

_T = TypeVar("_T")


class Work(StrEnum):
    """The kinds of work."""

    STEP = "step"
    RENEW = "renew"
    ASK_RENEWAL_INFO = "ask-renewal-info"
    PAY = "pay"
    REST = "rest"


@dataclass(frozen=True, slots=True)
class Item:
    """The next piece of work; for REST, until when (None: there is nothing to wait for)."""

    work: Work
    debt: Debt | None = None
    until_ms: int | None = None


def next_item(document: Document, now_ms: int) -> Item:
    """The most urgent piece of work at `now_ms`, or how long there is none."""
    issuance = issuance_of(document)
    debts = _payable_debts(document, issuance)
    due_debts = [debt for debt in debts if debt.due_at_ms <= now_ms]
    certificate = _renewable(document)
    if issuance is None or issuance.order_url is None:
        for debt in due_debts:
            if debt.kind is not DebtKind.CHALLENGE_RECORD:
                return Item(Work.PAY, debt)
    if issuance is not None and issuance.due_at_ms <= now_ms:
        return Item(Work.STEP)
    if certificate is not None and certificate.renew_at_ms <= now_ms:
        return Item(Work.RENEW)
    if due_debts:
        return Item(Work.PAY, due_debts[0])
    ask_at_ms = _ask_at_ms(certificate, now_ms)
    if ask_at_ms is not None and ask_at_ms <= now_ms:
        return Item(Work.ASK_RENEWAL_INFO)
    times = [debt.due_at_ms for debt in debts]
    times += [] if issuance is None else [issuance.due_at_ms]
    times += [] if certificate is None else [certificate.renew_at_ms]
    times += [] if ask_at_ms is None else [ask_at_ms]
    return Item(Work.REST, until_ms=min(times, default=None))


def issuance_of(document: Document) -> Issuance | None:
    """The issuance under way, if any. Raises `Unreadable`."""
    stored = document.issuance
    return None if stored is None else _read(document, Issuance.from_json, stored)


def certificate_of(document: Document) -> StoredCertificate | None:
    """The certificate held, if any. Raises `Unreadable`."""
    stored = document.certificate
    return None if stored is None else _read(document, StoredCertificate.from_json, stored)


def debts_of(document: Document) -> tuple[Debt, ...]:
    """Everything that must still be cleaned up. Raises `Unreadable`."""
    return tuple(_read(document, Debt.from_json, stored) for stored in document.debts)


def _read(
    document: Document, from_json: Callable[[Mapping[str, Any]], _T], stored: Mapping[str, Any]
) -> _T:
    try:
        return from_json(stored)
    except ValueError:
        raise Unreadable(document.hostname) from None


def _payable_debts(document: Document, issuance: Issuance | None) -> tuple[Debt, ...]:
    debts = payable(debts_of(document), issuance)
    if issuance is None or issuance.order_url is None:
        return debts
    return tuple(debt for debt in debts if debt.kind is DebtKind.CHALLENGE_RECORD)


def _renewable(document: Document) -> StoredCertificate | None:
    """The certificate, if its renewal is still to come."""
    if document.holder is None or document.issuance is not None:
        return None
    return certificate_of(document)


def _ask_at_ms(certificate: StoredCertificate | None, now_ms: int) -> int | None:
    """When its authority is asked next; never about one that has expired (RFC 9773 4.3)."""
    if certificate is None or max(certificate.ask_at_ms, now_ms) >= certificate.valid_until_ms:
        return None
    return certificate.ask_at_ms
