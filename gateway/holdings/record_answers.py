"""What a call for a record is answered, from what came of it in the zone. Pure.

What a withdrawal has left in the zone is for operators alone: the contract's answer has no word for
it. Called by `holdings.records`, by `access` for what it refuses, and by `views.deed_words`.
"""

from __future__ import annotations

from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class Withdrawal:
    """What came of a withdrawal: what its client is answered, and what became of the zone.

    `known`: the record that Redis had as published, if it had any.
    """

    answer: SyncDnsRecordResponse
    outcome: Outcome
    known: DnsRecord | None = None

    @property
    def remains(self) -> str | None:
        """What is not as the answer lets expect, in words; None where nothing is."""
        return remains_of(self.outcome, is_known=self.known is not None)


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


def remains_of(outcome: Outcome, *, is_known: bool) -> str | None:
    """What a withdrawal found otherwise than it was published, or has left; None where nothing.

    `is_known`: Redis had a record as published.
    """
    if outcome.kind is not OutcomeKind.DELETED:
        return None
    found = " and ".join(f"{each.type} {each.value}" for each in outcome.left)
    verb = "is" if len(outcome.left) == 1 else "are"
    stays = f"{found}, which somebody else wrote, {verb} still there" if found else None
    if outcome.removed:
        return stays
    if outcome.unmarked:
        return f"its marker is gone; {stays or 'its address was gone before'}"
    if not is_known:
        return None
    return f"nothing of it was there any more; {stays}" if stays else "it was gone before"


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
