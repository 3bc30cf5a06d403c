"""Where the certificate of one hostname stands, and what comes next: pure, for a person to read.

What comes next is not told from the state but asked of those who decide it: the agenda says which
kind of work is due first, and when; the machine says what a due issuance does. Called by `gateway
issuances`. Shows no key, neither sealed nor open.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gateway.certificates import agenda, machine
from gateway.certificates.agenda import Work
from gateway.certificates.events import Command, Due
from gateway.certificates.leases import has_lapsed
from gateway.certificates.moves import Moment
from gateway.certificates.states import DebtKind, State

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gateway.certificates.states import Debt, Issuance, StoredCertificate
    from gateway.store.documents import Document

AT_REST: Final = "at-rest"
CLEANING_UP: Final = "cleaning-up"

QUESTION_IS_NEAR_MS: Final = 3_600_000
"""An authority that suggests no window is still asked each day; told only when it is soon."""

ROOM_WORDS: Final = "look again whether there is room for a new order"

STEP_WORDS: Final = {
    Command.CHOOSE_AUTHORITY: "choose an authority, and place a new order there",
    Command.MAKE_KEY: "make a key, then place an order at {authority}",
    Command.PLACE_ORDER: "place an order at {authority}",
    Command.READ_ORDER: "ask {authority} again how the order stands",
    Command.READ_AUTHORIZATION: "ask {authority} again whether it has validated",
    Command.LOCATE_CHALLENGE: "find the zone that the challenge belongs to",
    Command.PUBLISH_CHALLENGE: "publish the challenge at {challenge}",
    Command.CHECK_PROPAGATION: "ask the name servers again for the challenge at {challenge}",
    Command.ANSWER_CHALLENGE: "tell {authority} to validate",
    Command.FINALIZE: "send the CSR to {authority}",
    Command.FETCH_CERTIFICATE: "fetch the certificate from {authority}",
}

_DEBT_WORDS: Final = {
    DebtKind.CHALLENGE_RECORD: "remove the TXT record {value} at {name}",
    DebtKind.AUTHORIZATION: "deactivate the authorization {url}",
    DebtKind.ORDER: "deactivate the authorizations of the order {url}",
}


@dataclass(frozen=True, slots=True)
class Next:
    """The next piece of work, in words, and the epoch milliseconds of its time.

    `is_order`: it comes to a new order, if to anything, which only a holder that may gets.
    """

    what: str
    at_ms: int
    is_order: bool = False


@dataclass(frozen=True, slots=True)
class Outlook:
    """One hostname. `state` is the issuance's, or else `CLEANING_UP` or `AT_REST`.

    `since_ms` is since when an issuance is wanted, however often it was tried, else since when the
    certificate is valid; it is not known of a hostname that nobody holds any more. `worker` is the
    process that has it leased now. `denied`: why its holder may have no new order, where that is
    so, as the end of a sentence.
    """

    document: Document
    state: str
    since_ms: int | None
    issuance: Issuance | None
    certificate: StoredCertificate | None
    debts: tuple[Debt, ...]
    next: Next | None
    worker: str | None
    denied: str | None = None


def outlook(
    document: Document, now_ms: int, names: Mapping[str, str], denied: str | None = None
) -> Outlook | None:
    """How things stand at `now_ms`; None where nothing is issued, held or owed.

    `names` are what people call the configured authorities, by directory URL. `denied` is what
    `Outlook` has of that name.
    """
    issuance, certificate = agenda.issuance_of(document), agenda.certificate_of(document)
    debts = agenda.debts_of(document)
    since_ms: int | None
    if issuance is not None:
        state, since_ms = issuance.state.value, issuance.since_ms
    elif certificate is not None:
        state = CLEANING_UP if debts else AT_REST
        since_ms = certificate.valid_from_ms
    elif debts:
        state, since_ms = CLEANING_UP, None
    else:
        return None
    lease = document.lease
    worker = None if lease is None or has_lapsed(lease, now_ms) else lease.worker
    following = _next(document, now_ms, names)
    return Outlook(
        document, state, since_ms, issuance, certificate, debts, following, worker, denied
    )


def authority_name(directory_url: str | None, names: Mapping[str, str]) -> str:
    """What people call an authority; its directory's URL when it is not configured any more."""
    if directory_url is None:
        return "the authority"
    return names.get(directory_url, directory_url)


def debt_words(debt: Debt) -> str:
    """What paying a debt means."""
    return _DEBT_WORDS[debt.kind].format(name=debt.name, value=debt.value, url=debt.url)


def _next(document: Document, now_ms: int, names: Mapping[str, str]) -> Next | None:
    item, at_ms = agenda.next_item(document, now_ms), now_ms
    if item.work is Work.REST:
        if item.until_ms is None:
            return None
        at_ms = item.until_ms
        item = agenda.next_item(document, at_ms)
    issuance, certificate = agenda.issuance_of(document), agenda.certificate_of(document)
    if item.work is Work.STEP and issuance is not None:
        due_ms = min(at_ms, issuance.due_at_ms)
        return Next(_step_words(issuance, at_ms, names), due_ms, issuance.begins_anew)
    if item.work is Work.PAY and item.debt is not None:
        return Next(debt_words(item.debt), at_ms)
    if certificate is None:
        return None
    if item.work is Work.RENEW or _is_idle_question(certificate, at_ms - now_ms):
        return Next("renew the certificate", certificate.renew_at_ms, is_order=True)
    authority = authority_name(certificate.directory_url, names)
    return Next(f"ask {authority} when to renew the certificate", at_ms, is_order=True)


def _is_idle_question(certificate: StoredCertificate, pause_ms: int) -> bool:
    return certificate.window_ms is None and pause_ms > QUESTION_IS_NEAR_MS


def _came_to_nothing(issuance: Issuance) -> bool:
    """Whether an order was tried already in this attempt."""
    if issuance.state is State.WAITING:
        return bool(set(issuance.passed_ms) - {State.REQUESTED.value})
    return issuance.state is State.FAILED


def _step_words(issuance: Issuance, at_ms: int, names: Mapping[str, str]) -> str:
    if issuance.begins_anew and issuance.told_until_ms is not None:
        return ROOM_WORDS
    step = machine.advance(issuance, Due(), Moment(at_ms, 0))
    if step.command is None:
        return "nothing"
    # While the CA validates, its order is read to learn of that.
    is_poll = step.issuance.state is State.VALIDATING and step.command is Command.READ_ORDER
    words = STEP_WORDS[Command.READ_AUTHORIZATION if is_poll else step.command].format(
        authority=authority_name(step.issuance.directory_url, names),
        challenge=step.issuance.challenge_name,
    )
    if step.command is not Command.CHOOSE_AUTHORITY or not _came_to_nothing(issuance):
        return words
    # The order is new, whatever it was that failed: its challenge comes after it once more.
    key = "with the same key" if step.issuance.sealed_key else "with a new key"
    return f"try it all again {key}: a new order, the challenge in the zone, the validation"
