"""What an action on a hostname would do, told before it is done. Pure.

The rules themselves are the core's (`holdings.operator_deeds`), which judges again; what can be
told beforehand to be refused has no form. Called by `hostname_actions`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from gateway.certificates.agenda import certificate_of, issuance_of
from gateway.certificates.retrying import due_from_ms
from gateway.certificates.states import State
from gateway.dns.owner import Owner
from gateway.holdings.as_seen import mark_of
from gateway.holdings.operator_deeds import why_not
from gateway.holdings.own_certificate import THE_GATEWAY
from gateway.holdings.remembered import remembered_record
from gateway.http.page.confirmations import Confirmation, Field
from gateway.http.page.shapes import path_to
from gateway.views.holdings import record_words, whose_words
from gateway.views.times import time_words

if TYPE_CHECKING:
    from gateway.certificates.states import StoredCertificate
    from gateway.contract.names import Hostname
    from gateway.store.documents import Document


LONGEST_NOTE: Final = 400
"""Of a claim; the audit trail cuts what is longer."""


class Act(StrEnum):
    """What can be done to a hostname; the last segment of its page's path."""

    RETRY = "retry"
    RENEW = "renew"
    RELEASE = "release"
    WITHDRAW = "withdraw"
    CLAIM = "claim"
    UNCLAIM = "unclaim"


def proposal(act: Act, document: Document, now_ms: int) -> Confirmation:
    """What doing this would come to, with a document that is readable."""
    words = _WORDS[act]
    if act is Act.CLAIM and document.claim is not None:
        words = _NOTE_WORDS
    if act is Act.RELEASE and document.certificate is None:
        words = _ISSUANCE_WORDS
    return Confirmation(
        title=words.title.format(document.hostname),
        button=words.button,
        would=_would(act, document),
        facts=facts_of(document),
        seen=mark_of(document),
        back=path_to("hostnames", document.hostname),
        refusal=_refusal(act, document, now_ms),
        fields=(_note_field(document),) if act is Act.CLAIM else (),
        is_grave=act in {Act.RELEASE, Act.WITHDRAW},
    )


def owner_in(document: Document) -> Owner | None:
    """The ownership that holds a hostname; None where nobody does."""
    holder = document.holder
    if holder is None:
        return None
    return Owner(holder.client_id, holder.app_id, document.hostname)


def facts_of(document: Document) -> tuple[tuple[str, str], ...]:
    """What is held at a hostname, as far as an action may touch it."""
    owner, record = owner_in(document), remembered_record(document)
    certificate, issuance = certificate_of(document), issuance_of(document)
    facts = [("Held by", "nobody" if owner is None else whose_words(owner))]
    if record is not None:
        is_published = bool((document.record or {}).get("published"))
        facts.append(
            ("Record", record_words(record) + ("" if is_published else ", not yet published"))
        )
    if certificate is not None:
        facts.append(("Certificate", f"valid until {time_words(certificate.valid_until_ms)}"))
    if issuance is not None:
        why = "" if issuance.message is None else f": {issuance.message}"
        facts.append(("Issuance", f"{issuance.state}{why}"))
    if document.claim is not None:
        facts.append(("Claim", _note_of(document) or "without a note"))
    return tuple(facts)


@dataclass(frozen=True, slots=True)
class _Words:
    title: str
    button: str


_WORDS: Final = {
    Act.RETRY: _Words("Retry the issuance for {}", "Retry now"),
    Act.RENEW: _Words("Renew the certificate of {} now", "Renew now"),
    Act.RELEASE: _Words("Release the certificate of {}", "Release the certificate"),
    Act.WITHDRAW: _Words("Withdraw the record of {}", "Withdraw the record"),
    Act.CLAIM: _Words("Claim {}", "Claim the hostname"),
    Act.UNCLAIM: _Words("Take the claim on {} back", "Take the claim back"),
}

_ISSUANCE_WORDS: Final = _Words("Give up the issuance for {}", "Give up the issuance")

_NOTE_WORDS: Final = _Words("Change the note of the claim on {}", "Change the note")

_LIMITS: Final = (
    "The limits of the certificate authorities hold all the same: what they don't allow yet waits"
    " until they do."
)


def _would(act: Act, document: Document) -> tuple[str, ...]:
    if act is Act.RETRY:
        return (
            "What waits or has failed is tried at once: pauses that the gateway made by its own"
            " rules end.",
            _LIMITS,
        )
    if act is Act.RENEW:
        return (
            "A new certificate with a new key is ordered at once, though the time for it has not"
            " come.",
            "The present certificate is handed out until the new one is there.",
            _LIMITS,
        )
    if act is Act.RELEASE:
        return _would_release(document)
    if act is Act.WITHDRAW:
        return _would_withdraw(document)
    if act is Act.CLAIM and document.claim is not None:
        return ("The hostname is claimed already: only the note of its claim changes.",)
    if act is Act.CLAIM:
        return (
            "The hostname is held against every client: nobody may publish a record or get a"
            " certificate for it.",
            "No zone is touched, and the claim stays until it is taken back.",
        )
    return (
        "Whichever client's patterns match may take the hostname again.",
        "No zone is touched.",
    )


def _would_release(document: Document) -> tuple[str, ...]:
    certificate, issuance = certificate_of(document), issuance_of(document)
    told = []
    if certificate is not None:
        told.append(
            "The gateway deletes the certificate and its private key, and renews it no more."
            " It is not revoked: whoever has the key can use it until"
            f" {time_words(certificate.valid_until_ms)}."
        )
    if issuance is not None:
        under_way = "" if issuance.state in {State.WAITING, State.FAILED} else " under way"
        told.append(f"The issuance{under_way} ends; a challenge of it is taken out of the zone.")
    told.append("The client can ask for a certificate again, which is a new order.")
    told.append(_stays(document, "record"))
    return tuple(told)


def _would_withdraw(document: Document) -> tuple[str, ...]:
    record = remembered_record(document)
    what = "The record" if record is None else f"The record {record.type} {record.value}"
    return (
        f"{what} and its marker are taken out of the zone, if they are there as they were"
        " published.",
        "The client's next sync publishes it again, unless the client is revoked or the hostname"
        " is claimed first.",
        _stays(document, "certificate"),
    )


def _stays(document: Document, what: str) -> str:
    """What is left of the hold when the other half of it goes."""
    if what == "record":
        is_there = document.record is not None
    else:
        is_there = document.certificate is not None or document.issuance is not None
    if is_there:
        return f"The {what} stays, and the hostname stays held."
    return "Nothing else holds the hostname: any client whose patterns match may take it then."


def _refusal(act: Act, document: Document, now_ms: int) -> str | None:
    name, owner = document.hostname, owner_in(document)
    if act is Act.CLAIM:
        is_clients = document.holder not in {None, THE_GATEWAY}
        return f"{name} is held by a client; release it first." if is_clients else None
    if act is Act.UNCLAIM:
        return None if document.claim is not None else f"There is no claim on {name}."
    if owner is None:
        return f"Nobody holds {name}."
    if act in {Act.RETRY, Act.RENEW}:
        return _untried(act, document, now_ms)
    if document.holder == THE_GATEWAY:
        return why_not(document, owner)
    if act is Act.WITHDRAW:
        return None if document.record is not None else f"There is no record to withdraw at {name}."
    has_some = document.certificate is not None or document.issuance is not None
    return None if has_some else f"There is no certificate to release at {name}."


def _untried(act: Act, document: Document, now_ms: int) -> str | None:
    """Why nothing can be tried; what only a ledger or a lease knows, the core says."""
    name = document.hostname
    certificate, issuance = certificate_of(document), issuance_of(document)
    if issuance is not None:
        if issuance.state in {State.WAITING, State.FAILED}:
            return None
        return f"{name} is under way already, in the state {issuance.state}."
    if certificate is None:
        return f"Nothing is issued or under way for {name}."
    return None if act is Act.RENEW else _not_due(name, certificate, now_ms)


def _not_due(name: Hostname, certificate: StoredCertificate, now_ms: int) -> str | None:
    due_ms = due_from_ms(certificate)
    if due_ms <= now_ms:
        return None
    return f"{name} has a certificate whose renewal is due at {time_words(due_ms)}."


def _note_field(document: Document) -> Field:
    hint = f"Why, for the next operator; {LONGEST_NOTE} characters at most."
    return Field("note", "Note", _note_of(document), hint)


def _note_of(document: Document) -> str:
    return str((document.claim or {}).get("note", ""))
