"""What is held at a hostname, in words: pure. Called by `cli.holdings` and the page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gateway.certificates.agenda import issuance_of
from gateway.holdings.remembered import remembered_record, require_readable
from gateway.store.documents import Unreadable

if TYPE_CHECKING:
    from gateway.contract import DnsRecord
    from gateway.dns.owner import Owner
    from gateway.dns.zones import Zones
    from gateway.store.documents import Document, Holder

NOT_READABLE: Final = "not readable by this release"


def client_of(document: Document | Unreadable) -> str | None:
    """The client that holds the hostname, or None."""
    if isinstance(document, Unreadable) or document.holder is None:
        return None
    return document.holder.client_id


def line(document: Document | Unreadable, zones: Zones) -> str:
    """A document for a person."""
    parts: list[str] = [document.hostname]
    if isinstance(document, Unreadable):
        parts.append(NOT_READABLE)
    else:
        parts += _parts(document)
    if zones.holding(document.hostname) is None:
        parts.append("in no configured zone")
    return "  ".join(parts)


def _parts(document: Document) -> list[str]:
    parts: list[str] = []
    if document.holder is not None:
        parts.append(whose_words(document.holder))
    parts += held_words(document) if is_readable(document) else [NOT_READABLE]
    if document.claim is not None:
        parts.append("claimed")
    if document.debts:
        parts.append(f"{len(document.debts)} to be cleaned up")
    return parts


def is_readable(document: Document) -> bool:
    """Whether no call would fail on it: a newer release may have written it, or somebody else."""
    try:
        require_readable(document)
    except Unreadable:
        return False
    return True


def held_words(document: Document) -> list[str]:
    """What is held, for a person, of a document that is readable."""
    parts = []
    record = remembered_record(document)
    if record is not None and document.record is not None:
        state = "" if document.record["published"] else " (about to be published)"
        parts.append(f"{record_words(record)}{state}")
    if document.certificate is not None:
        parts.append("certificate")
    issuance = issuance_of(document)
    if issuance is not None:
        parts.append(f"issuance {issuance.state.value}")
    return parts


def record_words(record: DnsRecord) -> str:
    """A record: its type, value and TTL in seconds."""
    return f"{record.type} {record.value}, TTL {record.ttl} s"


def whose_words(owner: Holder | Owner) -> str:
    """An ownership: the client, and what it holds for."""
    return f"{owner.client_id} for {owner.app_id}"
