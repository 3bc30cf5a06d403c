"""One line of the list of hostnames: what a document says, as the page shows it. Pure.

A document that this release can't read is a line as well, with what can be told of it. Called by
`hostnames`.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from gateway.certificates.agenda import certificate_of, issuance_of
from gateway.holdings.own_certificate import THE_GATEWAY
from gateway.holdings.remembered import remembered_record
from gateway.http.page import charts
from gateway.store.documents import Unreadable
from gateway.views.holdings import is_readable, record_words
from gateway.views.times import duration

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gateway.access.gate import Absence
    from gateway.certificates.states import StoredCertificate
    from gateway.contract.names import ClientId, Hostname
    from gateway.http.page.charts import ValidityBar
    from gateway.store.documents import Document, Holder

NONE_ABSENT: Final[Mapping[ClientId, Absence]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class CertificateCell:
    """A certificate in a list: how long it has left in words, and its lifetime as a bar."""

    left: str
    is_valid: bool
    bar: ValidityBar


@dataclass(frozen=True, slots=True)
class Line:
    """One hostname. `record` is in words; `state` is the issuance's, `why` what holds it up.

    `absence`: why its holder makes no calls any more.
    """

    hostname: Hostname
    is_readable: bool
    holder: Holder | None = None
    record: str | None = None
    is_published: bool = False
    certificate: CertificateCell | None = None
    state: str | None = None
    why: str | None = None
    is_claimed: bool = False
    debts: int = 0
    absence: Absence | None = None

    @property
    def is_own(self) -> bool:
        """Whether the gateway itself holds it, for its listener."""
        return self.holder == THE_GATEWAY


def line_of(
    document: Document | Unreadable, now_ms: int, absences: Mapping[ClientId, Absence] = NONE_ABSENT
) -> Line:
    """The line of a hostname at `now_ms` (epoch milliseconds).

    `absences`: why holders make no calls any more.
    """
    if isinstance(document, Unreadable):
        return Line(document.hostname, is_readable=False)
    if not is_readable(document):
        return Line(document.hostname, is_readable=False, holder=document.holder)
    holder, record = document.holder, remembered_record(document)
    issuance = issuance_of(document)
    certificate = certificate_of(document)
    return Line(
        hostname=document.hostname,
        is_readable=True,
        holder=holder,
        record=None if record is None else record_words(record),
        is_published=bool((document.record or {}).get("published")),
        certificate=None if certificate is None else certificate_cell(certificate, now_ms),
        state=None if issuance is None else issuance.state.value,
        why=None if issuance is None or issuance.reason is None else issuance.reason.value,
        is_claimed=document.claim is not None,
        debts=len(document.debts),
        absence=None if holder is None else absences.get(holder.client_id),
    )


def certificate_cell(certificate: StoredCertificate, now_ms: int) -> CertificateCell:
    """A certificate at `now_ms`."""
    is_valid = certificate.may_be_served_at(now_ms)
    length = duration(abs(certificate.valid_until_ms - now_ms))
    bar = charts.validity(
        certificate.valid_from_ms,
        certificate.valid_until_ms,
        now_ms,
        renew_at_ms=certificate.renew_at_ms,
    )
    return CertificateCell(f"{length} left" if is_valid else f"expired {length} ago", is_valid, bar)
