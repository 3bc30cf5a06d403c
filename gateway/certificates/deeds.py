"""What the audit trail is told of issuances. Pure.

Called by the worker, and by `holdings.operator_deeds` for a retry.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway.moments import rfc3339_moment
from gateway.store.deeds import Action, Deed

if TYPE_CHECKING:
    from gateway.certificates.retrying import Retried
    from gateway.certificates.states import Issuance, StoredCertificate
    from gateway.store.documents import Document


def of_issued(document: Document, certificate: StoredCertificate, *, renewal: bool) -> Deed:
    """A certificate issued or renewed."""
    until = rfc3339_moment(certificate.valid_until_ms)
    return _deed(
        document,
        Action.CERTIFICATE_RENEWED if renewal else Action.CERTIFICATE_ISSUED,
        "issued",
        after=f"certificate {certificate.serial}, until {until}",
        detail=f"issuance {certificate.issuance_id} at {certificate.directory_url}",
    )


def of_failed(document: Document, issuance: Issuance) -> Deed:
    """An order that came to nothing."""
    authority = issuance.directory_url or issuance.failed_at
    return _deed(
        document,
        Action.CERTIFICATE_FAILED,
        "issuance-failed" if issuance.reason is None else issuance.reason.value,
        detail=f"at {authority or 'no authority'}: {issuance.message or 'no reason was given'}",
    )


def of_retry(retried: Retried) -> Deed:
    """An issuance, or a renewal, that an operator has tried now."""
    was = retried.was
    rested = None if was is None else f"{was.state}: {was.message or 'no reason was given'}"
    return Deed(
        Action.CERTIFICATE_RETRY,
        retried.began.value,
        hostname=retried.hostname,
        client_id=retried.holder.client_id,
        app_id=retried.holder.app_id,
        before=rested,
        detail=f"issuance {retried.issuance.issuance_id}",
    )


def _deed(
    document: Document, action: Action, outcome: str, *, detail: str, after: str | None = None
) -> Deed:
    """Of the ownership that the document names."""
    holder = document.holder
    return Deed(
        action,
        outcome,
        hostname=document.hostname,
        client_id=None if holder is None else holder.client_id,
        app_id=None if holder is None else holder.app_id,
        after=after,
        detail=detail,
    )
