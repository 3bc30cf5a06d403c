"""What a call for a record is answered, from what came of it in the zone. Pure.

Called by `holdings.records`, and by `access` for what it refuses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gateway.contract import ConflictingRecord, Overloaded, SyncDnsRecordResponse
from gateway.dns.outcome import OutcomeKind

if TYPE_CHECKING:
    from gateway.contract import DnsRecord
    from gateway.contract.names import Hostname
    from gateway.contract.responses import SyncStatus
    from gateway.dns.outcome import FoundRecord, Outcome

_STATUS: Final[dict[OutcomeKind, SyncStatus]] = {
    OutcomeKind.CREATED: "managed-created",
    OutcomeKind.UPDATED: "managed-updated",
    OutcomeKind.UNCHANGED: "managed-unchanged",
    OutcomeKind.DELETED: "managed-deleted",
    OutcomeKind.CONFLICT: "record-conflict",
    OutcomeKind.UNAVAILABLE: "zone-unavailable",
    OutcomeKind.FAILED: "mutation-failed",
}
PUBLISHED: Final = {OutcomeKind.CREATED, OutcomeKind.UPDATED, OutcomeKind.UNCHANGED}


def answer_of(hostname: Hostname, outcome: Outcome) -> SyncDnsRecordResponse:
    """The answer that states an outcome."""
    is_conflict = outcome.kind is OutcomeKind.CONFLICT
    retry = outcome.retry_after_seconds
    return SyncDnsRecordResponse(
        status=_STATUS[outcome.kind],
        hostname=hostname,
        record=outcome.record if outcome.kind in PUBLISHED else None,
        conflicting_records=tuple(map(_evidence, outcome.found)) if is_conflict else (),
        retry_after_ms=None if retry is None else int(retry * 1000),
        message=outcome.detail,
    )


def demand_means(outcome: Outcome) -> None:
    """Raises `Overloaded` where the zone was not asked, since the process had no socket for it."""
    if outcome.short:
        raise Overloaded(int((outcome.retry_after_seconds or 1) * 1000), outcome.detail)


def target_invalid(hostname: Hostname, record: DnsRecord) -> SyncDnsRecordResponse:
    """The answer for an address outside of the client's allowance."""
    return SyncDnsRecordResponse(
        status="target-invalid",
        hostname=hostname,
        record=None,
        conflicting_records=(),
        retry_after_ms=None,
        message=f"The address {record.value} lies in none of the client's allowed prefixes.",
    )


def _evidence(found: FoundRecord) -> ConflictingRecord:
    return ConflictingRecord(name=found.name, type=found.type, value=found.value, ttl=found.ttl)
