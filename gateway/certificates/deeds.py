"""What the audit trail is told of issuances. Pure. Called by the worker."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway.certificates.budget import moment
from gateway.store.deeds import Action, Deed

if TYPE_CHECKING:
    from gateway.certificates.states import Issuance, StoredCertificate
    from gateway.store.documents import Document


def of_issued(document: Document, certificate: StoredCertificate, *, renewal: bool) -> Deed:
    """A certificate issued or renewed, of the ownership that the document names."""
    until = moment(certificate.valid_until_ms)
    return Deed(
        Action.CERTIFICATE_RENEWED if renewal else Action.CERTIFICATE_ISSUED,
        "issued",
        hostname=document.hostname,
        client_id=document.holder.client_id if document.holder else None,
        app_id=document.holder.app_id if document.holder else None,
        after=f"certificate {certificate.serial}, until {until}",
        detail=f"issuance {certificate.issuance_id} at {certificate.directory_url}",
    )


def of_failed(document: Document, issuance: Issuance) -> Deed:
    """An order that came to nothing."""
    authority = issuance.directory_url or issuance.failed_at
    return Deed(
        Action.CERTIFICATE_FAILED,
        "issuance-failed" if issuance.reason is None else issuance.reason.value,
        hostname=document.hostname,
        client_id=document.holder.client_id if document.holder else None,
        app_id=document.holder.app_id if document.holder else None,
        detail=f"at {authority or 'no authority'}: {issuance.message or 'no reason was given'}",
    )
