"""Trying a certificate again now, since an operator says so: pure.

What an issuance rests for by the gateway's own rules (a pause after a fault or a failure, an
authority that it passes over, a policy that did not allow it) ends at once. What keeps the CA's
limits does not: before an order the ledger is asked as always, and what the CA itself has put off
goes on only when nothing that it has said holds it. Nobody's step is touched: what a worker has in
its hands, or asks for at the CA's pace, is refused.

A retry that comes to nothing leaves the next attempt where it would have been: it is an operator's,
and none of those by which pauses grow.

A retry only makes a document due, or puts a renewal into it, so it may be repeated, by two at once
too: there is one issuance, and one worker that has it leased places its order.

Called by `holdings.operator_deeds`, which commits the change and wakes the worker.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from gateway.certificates import machine
from gateway.certificates.agenda import certificate_of, issuance_of
from gateway.certificates.keys import renewal_id
from gateway.certificates.leases import has_lapsed
from gateway.certificates.ledger import HeldBy
from gateway.certificates.moves import Moment
from gateway.certificates.states import Issuance, State
from gateway.moments import utc_words
from gateway.store.documents import Change, Document, Holder

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gateway.certificates.ledger import Held
    from gateway.certificates.states import StoredCertificate
    from gateway.contract.names import Hostname

_AT_WORK = frozenset(State) - {State.WAITING, State.FAILED}


class RetryRefused(Exception):
    """Why nothing was tried: one sentence."""


class NotDue(RetryRefused):
    """The certificate's time has not come: it is renewed where that is asked for."""


class Begun(StrEnum):
    """What a retry began."""

    ANEW = "anew"
    """An issuance that rested before an order of its own looks for an authority."""

    ORDER = "order"
    """An issuance that rested half way goes on with the order that it has."""

    RENEWAL = "renewal"
    """A certificate at rest is renewed."""


@dataclass(frozen=True, slots=True)
class Retried:
    """What was made due. `issuance` is as it was stored.

    `was` is the issuance that rested, None where a certificate did.
    """

    hostname: Hostname
    holder: Holder
    began: Begun
    issuance: Issuance
    was: Issuance | None


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked for, at `now_ms` (epoch milliseconds), and all that it depends on.

    `renews`: a certificate is renewed though its time has not come. `issuance_id` is for a renewal
    that is begun. `allowed` is the holder whose policy allows a new order, if any; `denied` says
    why it is nobody's. `holds` are what the ledgers hold of the hostname beside their figures, by
    directory URL.
    """

    now_ms: int
    renews: bool
    issuance_id: str
    allowed: Holder | None
    holds: Mapping[str, Held]
    denied: str = "another held it a moment ago"


def retry(document: Document, asked: Asked) -> tuple[Change, Retried]:
    """The change that has a certificate tried now, and what it begins.

    Raises:
        RetryRefused: nothing is to be changed; `NotDue`, unless it `renews`.
    """
    name, holder, lease = document.hostname, document.holder, document.lease
    issuance = issuance_of(document)
    found = issuance or certificate_of(document)
    if holder is None or found is None:
        raise RetryRefused(f"Nothing is issued or under way for {name}.")
    if lease is not None and not has_lapsed(lease, asked.now_ms):
        state = "" if issuance is None else f", in the state {issuance.state}"
        raise RetryRefused(f"{name} is being worked on by {lease.worker} just now{state}.")
    if isinstance(found, Issuance):
        began, after = _resumed(name, holder, found, asked)
    else:
        began, after = Begun.RENEWAL, _renewal(name, holder, found, asked)
    change = Change({"issuance": after.to_json()}, asked.now_ms, touches_due=True)
    return change, Retried(name, holder, began, after, issuance)


def due_from_ms(certificate: StoredCertificate) -> int:
    """From when on a certificate's renewal is due, also where it was put off since.

    A holder that may not renew has `renew_at_ms` moved on and on.
    """
    window = certificate.window_ms
    latest_ms = certificate.share_at_ms if window is None else window[1]
    return min(certificate.renew_at_ms, latest_ms)


def _resumed(
    name: Hostname, holder: Holder, issuance: Issuance, asked: Asked
) -> tuple[Begun, Issuance]:
    if issuance.state in _AT_WORK:
        raise RetryRefused(
            f"{name} is under way already, in the state {issuance.state}"
            f"{_next_look(issuance, asked.now_ms)}."
        )
    held = asked.holds.get(issuance.directory_url or "")
    is_held = held is not None and held.until_ms > asked.now_ms
    due = replace(_before_its_last_try(issuance), due_at_ms=asked.now_ms, told_until_ms=None)
    if issuance.begins_anew:
        # What else holds an authority is the ledger's to say, and there may be another one.
        if held is not None and is_held and held.by is HeldBy.AUTHORITY:
            raise RetryRefused(f"{name} has been put off by its authority: {held.detail}.")
        _require_allowed(name, holder, asked)
        return Begun.ANEW, replace(due, barred=False, passed_over={})
    if held is not None and is_held:
        raise RetryRefused(f"{name} has an order that can't go on yet: {held.detail}.")
    return Begun.ORDER, due


def _before_its_last_try(issuance: Issuance) -> Issuance:
    """What is counted for pauses and patience without the last try, which this one replaces."""
    if issuance.state is State.FAILED:
        return replace(issuance, failures=max(0, issuance.failures - 1))
    has_lost_its_order = (
        issuance.begins_anew and issuance.directory_url is None and issuance.told_until_ms is None
    )
    return replace(
        issuance,
        faults=max(0, issuance.faults - 1),
        away=max(0, issuance.away - 1),
        orders_lost=max(0, issuance.orders_lost - has_lost_its_order),
    )


def _renewal(
    name: Hostname, holder: Holder, certificate: StoredCertificate, asked: Asked
) -> Issuance:
    due_ms = due_from_ms(certificate)
    if not asked.renews and due_ms > asked.now_ms:
        raise NotDue(f"{name} has a certificate whose renewal is due at {utc_words(due_ms)}.")
    _require_allowed(name, holder, asked)
    replaced = renewal_id(certificate.chain_pem)
    moment = Moment(asked.now_ms, 0)
    begun = machine.request_renewal(asked.issuance_id, certificate, replaced, moment)
    return replace(begun, early_until_ms=due_ms) if due_ms > asked.now_ms else begun


def _require_allowed(name: Hostname, holder: Holder, asked: Asked) -> None:
    if asked.allowed != holder:
        raise RetryRefused(
            f"{holder.client_id} may not have a certificate for {name} now: {asked.denied}."
        )


def _next_look(issuance: Issuance, now_ms: int) -> str:
    if issuance.due_at_ms <= now_ms:
        return ", and waits for a worker"
    return f"; it is looked at again at {utc_words(issuance.due_at_ms)}"


class Standing(StrEnum):
    """What has come of a retry so far."""

    UNTOUCHED = "untouched"
    """No worker has taken it up."""

    UNDER_WAY = "under-way"
    WAITING = "waiting"
    FAILED = "failed"
    ISSUED = "issued"
    GONE = "gone"
    """It was released meanwhile."""

    @property
    def is_refusal(self) -> bool:
        """Whether no certificate comes of it now."""
        return self in {Standing.WAITING, Standing.FAILED, Standing.GONE}


def standing(document: Document, retried: Retried, now_ms: int) -> Standing:
    """What has come of a retry by what the document says at `now_ms`."""
    issuance, certificate = issuance_of(document), certificate_of(document)
    issuance_id = retried.issuance.issuance_id
    if issuance is None or issuance.issuance_id != issuance_id:
        is_issued = certificate is not None and certificate.issuance_id == issuance_id
        return Standing.ISSUED if is_issued else Standing.GONE
    if document.lease is not None and not has_lapsed(document.lease, now_ms):
        return Standing.UNDER_WAY
    # Not by its due time, which another retry moves.
    if replace(issuance, due_at_ms=0) == replace(retried.issuance, due_at_ms=0):
        return Standing.UNTOUCHED
    if issuance.state is State.FAILED:
        return Standing.FAILED
    return Standing.WAITING if issuance.state is State.WAITING else Standing.UNDER_WAY
