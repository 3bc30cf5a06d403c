"""What is told of holdings in the audit trail, from what came of a call or a command. Pure.

Called by the modules of this package, by `access.calls` for a record that it refuses, and by
`gateway holdings` for what an operator commands.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gateway.holdings.record_answers import remains_of
from gateway.store.deeds import Action, Deed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gateway.certificates.states import StoredCertificate
    from gateway.contract import CertificateRefused, DnsRecord, SyncDnsRecordResponse
    from gateway.contract.names import Hostname
    from gateway.dns.outcome import Outcome
    from gateway.dns.owner import Owner
    from gateway.holdings.forgetting import Forgotten
    from gateway.holdings.handing_over import HandedOver

_CHANGED: Final = {"managed-created", "managed-updated", "managed-deleted"}


def of_sync(
    owner: Owner,
    answer: SyncDnsRecordResponse,
    *,
    wanted: DnsRecord | None,
    known: DnsRecord | None = None,
    outcome: Outcome | None = None,
) -> Deed:
    """A record published, replaced, withdrawn or not; `wanted` is None where it was to go.

    What was there before is what the zone had of the ownership, as `outcome` has seen it; of what
    changed nothing, what Redis knows as published, `known`. A withdrawal that neither knew of a
    record nor found one counts as no change, so that one that is repeated is told once in a while.
    """
    changes = answer.status in _CHANGED
    has_seen = changes and outcome is not None
    went = outcome is not None and bool(outcome.removed or outcome.unmarked)
    is_idle = wanted is None and known is None and not went
    before = None if known is None or has_seen else words_of(known)
    detail = None
    if outcome is not None and has_seen:
        before = ", ".join(f"{each.type} {each.value} {each.ttl}" for each in outcome.removed)
        detail = remains_of(outcome, known)
    if answer.conflicting_records:
        found = ", ".join(f"{each.type} {each.value}" for each in answer.conflicting_records)
        detail = f"in the way: {found}"
    return Deed(
        Action.RECORD_SYNC,
        answer.status,
        changed=changes and not is_idle,
        hostname=owner.hostname,
        client_id=owner.client_id,
        app_id=owner.app_id,
        before=before or None,
        after=words_of(answer.record or wanted) if wanted is not None else None,
        detail=detail,
    )


def of_request(owner: Owner, refusal: CertificateRefused | None) -> Deed:
    """A certificate asked for: its issuance begins, or is refused."""
    return Deed(
        Action.CERTIFICATE_REQUEST,
        "begun" if refusal is None else refusal.reason,
        changed=refusal is None,
        hostname=owner.hostname,
        client_id=owner.client_id,
        app_id=owner.app_id,
        detail=None if refusal is None else refusal.message,
    )


def of_release(owner: Owner, *, had_certificate: bool) -> Deed:
    """A certificate given up, or an issuance before it came to one."""
    return Deed(
        Action.CERTIFICATE_RELEASE,
        "released",
        hostname=owner.hostname,
        client_id=owner.client_id,
        app_id=owner.app_id,
        before="certificate" if had_certificate else "issuance",
    )


def of_handing_out(owner: Owner, certificate: StoredCertificate) -> Deed:
    """A private key handed out to a credential for the first time."""
    return Deed(
        Action.KEY_HANDED_OUT,
        "ready",
        hostname=owner.hostname,
        client_id=owner.client_id,
        app_id=owner.app_id,
        detail=f"certificate {certificate.serial}, issuance {certificate.issuance_id}",
    )


def of_claim(hostname: Hostname, note: str) -> Deed:
    """A hostname claimed."""
    return Deed(Action.CLAIM_ADD, "claimed", hostname=hostname, after=note or None)


def of_refused_claim(hostname: Hostname) -> Deed:
    """A claim on a hostname that a client holds."""
    return Deed(Action.CLAIM_ADD, "held-by-client", changed=False, hostname=hostname)


def of_unclaim(hostname: Hostname, note: str) -> Deed:
    """A claim taken back."""
    return Deed(Action.CLAIM_REMOVE, "removed", hostname=hostname, before=note or None)


def of_handing_over(giver: Owner, taker: Owner, done: HandedOver) -> Deed:
    """A record handed from one ownership to another."""
    released = "; the giver's certificate was released" if done.released else ""
    return Deed(
        Action.HAND_OVER,
        "handed-over",
        hostname=taker.hostname,
        client_id=taker.client_id,
        app_id=taker.app_id,
        before=f"{giver.client_id}:{giver.app_id}",
        after=f"{taker.client_id}:{taker.app_id}",
        detail=f"{words_of(done.record)}{released}",
    )


def of_refused_command(action: Action, hostname: Hostname, why: str) -> Deed:
    """An operator's command that was refused."""
    return Deed(action, "refused", changed=False, hostname=hostname, detail=why)


def of_forgetting(hostname: Hostname, owner: Owner | None, forgotten: Forgotten) -> Deed:
    """What Redis knows no more of a hostname."""
    challenges = len(forgotten.challenges)
    return Deed(
        Action.FORGET,
        "forgotten",
        hostname=hostname,
        client_id=owner.client_id if owner else None,
        app_id=owner.app_id if owner else None,
        before=words_of(forgotten.record) if forgotten.record else None,
        detail=f"{_counted(challenges, 'challenge record')} with it" if challenges else None,
    )


def of_rebuilding(zones: Sequence[str], restored: int) -> Deed:
    """What the zones proved, written into Redis: one entry, however many records it was."""
    detail = f"{_counted(restored, 'record')} of {', '.join(zones)}"
    return Deed(Action.REBUILD, "rebuilt", detail=detail)


def _counted(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def words_of(record: DnsRecord) -> str:
    """A record as a zone file has it, without its name."""
    return f"{record.type} {record.value} {record.ttl}"
