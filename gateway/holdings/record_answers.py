"""What a call for a record is answered, from what came of it in the zone. Pure.

What a withdrawal has left in the zone is for operators alone: the contract's answer has no word for
it. Called by `holdings.records`, by `access` for what it refuses, and by `views.deed_words`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from gateway.contract import ConflictingRecord, Overloaded, SyncDnsRecordResponse
from gateway.dns.outcome import OutcomeKind

if TYPE_CHECKING:
    from collections.abc import Sequence

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
PUBLISHED: Final = (OutcomeKind.CREATED, OutcomeKind.UPDATED, OutcomeKind.UNCHANGED)


@dataclass(frozen=True, slots=True)
class Withdrawal:
    """What came of a withdrawal: what its client is answered, and what became of the zone.

    `known`: the record that Redis had as published, if it had any. `since`: the one that it has
    now, by a call of the client at the same moment.
    """

    answer: SyncDnsRecordResponse
    outcome: Outcome
    known: DnsRecord | None = None
    since: DnsRecord | None = None

    @property
    def is_idle(self) -> bool:
        """Whether nothing had to be taken out of the zone."""
        went = self.outcome.removed or self.outcome.unmarked
        return self.outcome.kind is OutcomeKind.DELETED and not went

    @property
    def remains(self) -> str | None:
        """What is not as the answer lets expect, in words; None where nothing is."""
        if self.since is not None:
            return (
                "its client published at the same moment:"
                f" {self.since.type} {self.since.value} is its record now"
            )
        return remains_of(self.outcome, self.known)

    def then(self, later: Withdrawal) -> Withdrawal:
        """What this round and a later one of the same call have come to together."""
        if later.outcome.kind is not OutcomeKind.DELETED:
            return later
        outcome = replace(
            later.outcome,
            removed=tuple(dict.fromkeys((*self.outcome.removed, *later.outcome.removed))),
            unmarked=self.outcome.unmarked or later.outcome.unmarked,
        )
        return replace(later, outcome=outcome, known=self.known or later.known)


def answer_of(hostname: Hostname, outcome: Outcome) -> SyncDnsRecordResponse:
    """The answer that states an outcome."""
    if outcome.kind in PUBLISHED:
        # All of it was judged when the call was read, or is the gateway's own words.
        return SyncDnsRecordResponse.model_construct(
            status=_STATUS[outcome.kind],
            hostname=hostname,
            record=outcome.record,
            conflicting_records=(),
            retry_after_ms=None,
            message=outcome.detail,
        )
    is_conflict = outcome.kind is OutcomeKind.CONFLICT
    retry = outcome.retry_after_seconds
    return SyncDnsRecordResponse(
        status=_STATUS[outcome.kind],
        hostname=hostname,
        record=None,
        conflicting_records=tuple(map(_evidence, outcome.found)) if is_conflict else (),
        retry_after_ms=None if retry is None else int(retry * 1000),
        message=outcome.detail,
    )


def remains_of(outcome: Outcome, known: DnsRecord | None) -> str | None:
    """What a withdrawal found otherwise than it was published, or has left; None where nothing.

    `known`: the record that Redis had as published. It stays too where somebody has put another
    address beside it: the marker proved it alone.
    """
    if outcome.kind is not OutcomeKind.DELETED:
        return None
    stays = _left_words(outcome.left, known)
    if outcome.removed:
        return stays
    if outcome.unmarked:
        return f"its marker is gone; {stays or 'its address was gone before'}"
    if known is None:
        return None
    if stays is None:
        return "it was gone before"
    is_there = any((each.type, each.value) == (known.type, known.value) for each in outcome.left)
    gone = "its marker was gone before" if is_there else "nothing of it was there any more"
    return f"{gone}; {stays}"


def _left_words(left: Sequence[FoundRecord], known: DnsRecord | None) -> str | None:
    """What lies there still, and whose it is; None where nothing does."""
    published = None if known is None else (known.type, known.value)
    foreign = [each for each in left if (each.type, each.value) != published]
    if not foreign:
        return f"{left[0].type} {left[0].value} is still there, as nobody's" if left else None
    found = " and ".join(f"{each.type} {each.value}" for each in foreign)
    verb = "is" if len(foreign) == 1 else "are"
    stays = f"{found}, which somebody else wrote, {verb} still there"
    if known is None or len(foreign) == len(left):
        return stays
    return f"{stays}, and so is {known.type} {known.value} beside it, as nobody's"


def came_to_nothing(outcome: Outcome, *, intended: bool) -> bool:
    """Whether an intent may be given up: nothing of it is, or will be, in the zone.

    So it is of the call's own, its outcome being known. Of an earlier call's intent (a crash, a
    lost reply) only the zone can tell: a conflict without any marker at the name. A marker may be
    this ownership's, beside an address edited since, and the remembered record is what proves it
    when it is withdrawn.
    """
    if intended:
        return True
    return outcome.kind is OutcomeKind.CONFLICT and not outcome.marked


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
