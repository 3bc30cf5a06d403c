"""A mark of what is held at a hostname, so that a deed falls on what its doer saw, and only on it.

The page asks, a person reads and confirms, and meanwhile a client or another operator may change
what is there. So who asks keeps the mark, and the step that changes the document compares it
(`decide` of `Documents.change`), as `access.clients` does with a client. Pure, and reads the parts
of a document as they are stored. Called by the modules of this package and by the page.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gateway.contract.names import Hostname
    from gateway.store.documents import Document, Json


class HostnameChanged(Exception):
    """The hostname is not as it was when somebody decided to change it; asking again is safe."""

    def __init__(self, hostname: Hostname) -> None:
        super().__init__(f"{hostname} has changed since it was looked at, and nothing was done")
        self.hostname = hostname


def mark_of(document: Document) -> str:
    """A mark of what is held at a hostname, whatever state its issuance is in."""
    holder, record = document.holder, document.record
    told = [
        None if holder is None else [holder.client_id, holder.app_id],
        None if record is None else [record.get("type"), record.get("value")],
        _issuance_id(document.certificate),
        _issuance_id(document.issuance),
        document.claim,
    ]
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:32]


def demand_as_seen(document: Document, as_seen: str | None) -> None:
    """Raises `HostnameChanged` unless a document has this mark; None stands for any document."""
    if as_seen is not None and mark_of(document) != as_seen:
        raise HostnameChanged(document.hostname)


def _issuance_id(part: Json | None) -> object:
    return None if part is None else part.get("issuance_id")
