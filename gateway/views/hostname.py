"""All that Redis tells of one hostname, taken apart for a page: pure.

What comes next is asked of `certificates.outlook`. Shows no key, neither sealed nor open. Called by
the page; times are epoch milliseconds throughout.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gateway.certificates.keys import leaf_of
from gateway.certificates.outlook import authority_name, debt_words, outlook
from gateway.certificates.states import State
from gateway.holdings.remembered import remembered_record, require_readable, sought_records
from gateway.views.issuances import next_words
from gateway.views.stages import stages_of, stages_passed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gateway.certificates.outlook import Outlook
    from gateway.certificates.states import Issuance
    from gateway.contract import DnsRecord
    from gateway.contract.names import Hostname
    from gateway.store.documents import Document, Holder
    from gateway.views.stages import Stage


@dataclass(frozen=True, slots=True)
class ClaimView:
    """An operator's claim."""

    since_ms: int
    note: str


@dataclass(frozen=True, slots=True)
class RecordView:
    """The record that is remembered. Not `is_published`: it is about to be, or may be.

    `sought`: what the zone may carry instead, since what became of its publication is not known.
    """

    record: DnsRecord
    is_published: bool
    sought: tuple[DnsRecord, ...]


@dataclass(frozen=True, slots=True)
class CertificateView:
    """A certificate.

    `names` and `key` are None where the leaf can't be read. `ask_at_ms`: when the authority is
    asked for its window again, where it suggests any. `stages`: none where an older release kept no
    times.
    """

    serial: str
    issuer: str
    authority: str
    valid_from_ms: int
    valid_until_ms: int
    is_valid: bool
    renew_at_ms: int
    renew_after_ms: int
    window_ms: tuple[int, int] | None
    ask_at_ms: int | None
    names: tuple[str, ...] | None
    key: str | None
    stages: tuple[Stage, ...]


@dataclass(frozen=True, slots=True)
class IssuanceView:
    """An issuance. `message`: why it waits or failed, in the authority's or the zone's own words.

    `authority` is the one chosen, or that of the order that came to nothing. `passed_over`:
    authorities that are left alone, and until when. `held_until_ms`: until when no order may be
    placed. `since_ms`: since when it is wanted, `begun_at_ms` since when this attempt goes on.
    """

    state: State
    is_renewal: bool
    since_ms: int
    begun_at_ms: int
    changed_at_ms: int
    stages: tuple[Stage, ...]
    reason: str | None
    message: str | None
    held_until_ms: int | None
    authority: str | None
    passed_over: tuple[tuple[str, int], ...]
    order_url: str | None
    challenge_name: str | None
    challenge_value: str | None
    failures: int
    faults: int

    @property
    def is_under_way(self) -> bool:
        """Whether it is worked on, and neither waits nor failed."""
        return self.state not in {State.WAITING, State.FAILED}


@dataclass(frozen=True, slots=True)
class DebtView:
    """Something that is still to be cleaned up: what paying it means, and when that is tried."""

    words: str
    tries: int
    due_at_ms: int


@dataclass(frozen=True, slots=True)
class HostnameView:
    """One hostname. `next`: what is done next, `next_at_ms` when, None of both where nothing is.

    `worker`: the process that works on it now. `denied`: why its holder may have no new
    certificate, as the end of a sentence.
    """

    hostname: Hostname
    holder: Holder | None
    claim: ClaimView | None
    record: RecordView | None
    certificate: CertificateView | None
    issuance: IssuanceView | None
    next: str | None
    next_at_ms: int | None
    worker: str | None
    debts: tuple[DebtView, ...]
    denied: str | None = None

    @property
    def is_under_way(self) -> bool:
        """Whether what is shown may change within seconds."""
        is_issuing = self.issuance is not None and self.issuance.is_under_way
        return is_issuing or self.worker is not None


def hostname_view(
    document: Document, now_ms: int, names: Mapping[str, str], denied: str | None = None
) -> HostnameView:
    """The view of a document; `names` are what people call the authorities, by directory URL.

    `denied`: why its holder may have no new certificate, where that is known to be so.

    Raises:
        Unreadable: a part of it is in another shape than this release knows.
    """
    require_readable(document)
    found = outlook(document, now_ms, names, denied)
    claim, following = document.claim, None if found is None else found.next
    return HostnameView(
        hostname=document.hostname,
        holder=document.holder,
        claim=None if claim is None else ClaimView(claim["sinceMs"], claim["note"]),
        record=_record(document),
        certificate=_certificate(found, now_ms, names),
        issuance=_issuance(found, now_ms, names),
        next=None if found is None or following is None else next_words(found, now_ms),
        next_at_ms=None if following is None else following.at_ms,
        worker=None if found is None else found.worker,
        debts=() if found is None else _debts(found),
        denied=denied,
    )


def _record(document: Document) -> RecordView | None:
    record = remembered_record(document)
    if record is None or document.record is None:
        return None
    return RecordView(record, bool(document.record["published"]), sought_records(document))


def _certificate(
    found: Outlook | None, now_ms: int, names: Mapping[str, str]
) -> CertificateView | None:
    stored = None if found is None else found.certificate
    if stored is None:
        return None
    leaf = leaf_of(stored.chain_pem)
    return CertificateView(
        serial=stored.serial,
        issuer=stored.issuer,
        authority=authority_name(stored.directory_url, names),
        valid_from_ms=stored.valid_from_ms,
        valid_until_ms=stored.valid_until_ms,
        is_valid=stored.may_be_served_at(now_ms),
        renew_at_ms=stored.renew_at_ms,
        renew_after_ms=stored.renew_after_ms,
        window_ms=stored.window_ms,
        ask_at_ms=None if stored.window_ms is None else stored.ask_at_ms,
        names=None if leaf is None else leaf.names,
        key=None if leaf is None else leaf.key,
        stages=stages_passed(stored.stages_ms),
    )


def _issuance(found: Outlook | None, now_ms: int, names: Mapping[str, str]) -> IssuanceView | None:
    issuance = None if found is None else found.issuance
    if issuance is None:
        return None
    return IssuanceView(
        state=issuance.state,
        is_renewal=issuance.renewal,
        since_ms=issuance.since_ms,
        begun_at_ms=issuance.begun_at_ms,
        changed_at_ms=issuance.changed_at_ms,
        stages=stages_of(issuance),
        reason=None if issuance.reason is None else issuance.reason.value,
        message=issuance.message,
        held_until_ms=issuance.told_until_ms,
        authority=_authority(issuance, names),
        passed_over=tuple(
            (authority_name(url, names), until_ms)
            for url, until_ms in issuance.passed_over.items()
            if until_ms > now_ms
        ),
        order_url=issuance.order_url,
        challenge_name=issuance.challenge_name,
        challenge_value=issuance.challenge_value,
        failures=issuance.failures,
        faults=issuance.faults,
    )


def _authority(issuance: Issuance, names: Mapping[str, str]) -> str | None:
    url = issuance.directory_url or issuance.failed_at
    return None if url is None else authority_name(url, names)


def _debts(found: Outlook) -> tuple[DebtView, ...]:
    return tuple(DebtView(debt_words(debt), debt.tries, debt.due_at_ms) for debt in found.debts)
