"""What a document remembers of a record: its shape, read and written. Pure.

Called by the modules of this package, and by whoever shows a hostname.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gateway.certificates.agenda import certificate_of, debts_of, issuance_of
from gateway.contract.records import record_in
from gateway.holdings.claims import claim_of
from gateway.moments import is_epoch_ms
from gateway.store.documents import Unreadable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gateway.contract import DnsRecord
    from gateway.store.documents import Document


def kept_record(record: DnsRecord, edition: str, *, published: bool) -> dict[str, object]:
    """What a document remembers of a record, in the shape that `remembered_record` reads."""
    return {
        "type": record.type,
        "value": record.value,
        "ttl": record.ttl,
        "published": published,
        "edition": edition,
    }


def published_record(document: Document) -> DnsRecord | None:
    """The record that is remembered as published; an intent to publish is none."""
    return remembered_record(document) if is_published(document) else None


def is_published(document: Document) -> bool:
    """Whether a document remembers a record as published; an intent to publish is none."""
    return document.record is not None and bool(document.record["published"])


def remembered_record(document: Document, likely: DnsRecord | None = None) -> DnsRecord | None:
    """The record that a document says was published last, or was about to be.

    `likely` is returned where it is that: mostly, of a call that publishes. To make each anew was a
    twentieth of one that changes nothing.

    Raises:
        Unreadable: it is in another shape, or of another type than this release knows.
    """
    record = document.record
    if record is None:
        return None
    if "published" not in record or not is_epoch_ms(record.get("sinceMs", 0)):
        raise Unreadable(document.hostname)
    if likely is not None and says(document, likely):
        return likely
    return _read(document, record)


def sought_records(document: Document) -> tuple[DnsRecord, ...]:
    """The records that the zone may carry instead: what became of their publication is unknown.

    Raises:
        Unreadable: as in `remembered_record`.
    """
    return tuple(_read(document, kept) for kept in (document.record or {}).get("sought", ()))


def says(document: Document, record: DnsRecord) -> bool:
    """Whether what a document remembers is this very record, published or about to be."""
    kept = document.record or {}
    told = (kept.get("type"), kept.get("value"), kept.get("ttl"))
    return told == (record.type, record.value, record.ttl)


def _read(document: Document, kept: Mapping[str, Any]) -> DnsRecord:
    try:
        record = record_in({name: kept[name] for name in ("type", "value", "ttl")})
    except (KeyError, TypeError):
        record = None
    if record is None:
        raise Unreadable(document.hostname)
    return record


def require_readable(document: Document) -> None:
    """Raises `Unreadable` where any part of a document is in another shape than this release's."""
    try:
        remembered_record(document)
        sought_records(document)
        certificate_of(document)
        issuance_of(document)
        debts_of(document)
        claim_of(document)
    except (KeyError, TypeError, ValueError):
        raise Unreadable(document.hostname) from None
