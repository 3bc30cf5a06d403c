"""What the audit trail is told of records: which answers are changes, and with which values."""

from __future__ import annotations

from typing import get_args

import pytest

from gateway.contract import ConflictingRecord, DnsRecord, SyncDnsRecordResponse
from gateway.contract.names import AppId, ClientId, Hostname
from gateway.contract.responses import SyncStatus
from gateway.dns.outcome import FoundRecord, Outcome, OutcomeKind
from gateway.dns.owner import Owner
from gateway.holdings import deeds

OWNER = Owner(ClientId("cluster-a"), AppId("relay"), Hostname("relay.example.com"))
OLD = DnsRecord.of("198.51.100.5")
NEW = DnsRecord.of("198.51.100.6", 60)
CHANGES = {"managed-created", "managed-updated", "managed-deleted"}


def answer(status: SyncStatus, *conflicting: ConflictingRecord) -> SyncDnsRecordResponse:
    return SyncDnsRecordResponse(
        status=status, hostname=OWNER.hostname, conflicting_records=conflicting, message=""
    )


@pytest.mark.parametrize("status", get_args(SyncStatus))
def test_only_what_was_done_counts_as_a_change(status: SyncStatus) -> None:
    deed = deeds.of_sync(OWNER, answer(status), wanted=NEW, known=OLD)
    assert deed.changed is (status in CHANGES)
    assert (deed.outcome, deed.before, deed.after) == (
        status,
        "A 198.51.100.5 300",
        "A 198.51.100.6 60",
    )


def test_withdrawal_that_knew_of_no_record_counts_as_none() -> None:
    idle = deeds.of_sync(OWNER, answer("managed-deleted"), wanted=None)
    real = deeds.of_sync(OWNER, answer("managed-deleted"), wanted=None, known=OLD)
    assert (idle.changed, idle.before, idle.after) == (False, None, None)
    assert (real.changed, real.before, real.after) == (True, "A 198.51.100.5 300", None)


def test_conflict_tells_what_is_in_the_way() -> None:
    found = ConflictingRecord(name="relay.example.com", type="A", value="203.0.113.9", ttl=300)
    deed = deeds.of_sync(OWNER, answer("record-conflict", found), wanted=NEW)
    assert deed.detail == "in the way: A 203.0.113.9"


def seen(*records: str, unmarked: bool = True, left: tuple[str, ...] = ()) -> Outcome:
    def found(values: tuple[str, ...]) -> tuple[FoundRecord, ...]:
        return tuple(FoundRecord(OWNER.hostname, "A", value, 60) for value in values)

    return Outcome(
        OutcomeKind.DELETED, "", removed=found(records), unmarked=unmarked, left=found(left)
    )


@pytest.mark.parametrize(
    ("outcome", "before", "detail"),
    [
        (seen("198.51.100.5"), "A 198.51.100.5 60", None),
        (
            seen(left=("203.0.113.9",)),
            None,
            "its marker is gone; A 203.0.113.9, which somebody else wrote, is still there",
        ),
        (
            seen(left=("203.0.113.8", "203.0.113.9")),
            None,
            "its marker is gone; A 203.0.113.8 and A 203.0.113.9, which somebody else wrote, are"
            " still there",
        ),
        (
            seen(left=("198.51.100.5", "203.0.113.9")),
            None,
            "its marker is gone; A 203.0.113.9, which somebody else wrote, is still there, and so"
            " is A 198.51.100.5 beside it, as nobody's",
        ),
        (
            seen(unmarked=False, left=("198.51.100.5",)),
            None,
            "its marker was gone before; A 198.51.100.5 is still there, as nobody's",
        ),
        (seen(), None, "its marker is gone; its address was gone before"),
        (seen(unmarked=False), None, "it was gone before"),
        (
            seen(unmarked=False, left=("203.0.113.9",)),
            None,
            "nothing of it was there any more; A 203.0.113.9, which somebody else wrote, is still"
            " there",
        ),
    ],
)
def test_withdrawal_tells_what_the_zone_had_and_not_what_redis_knew(
    outcome: Outcome, before: str | None, detail: str | None
) -> None:
    deed = deeds.of_sync(OWNER, answer("managed-deleted"), wanted=None, known=OLD, outcome=outcome)
    assert (deed.changed, deed.before, deed.after, deed.detail) == (True, before, None, detail)


def test_withdrawal_that_took_out_what_nobody_knew_of_is_a_change() -> None:
    outcome = seen("198.51.100.5")
    deed = deeds.of_sync(OWNER, answer("managed-deleted"), wanted=None, outcome=outcome)
    assert (deed.changed, deed.before) == (True, "A 198.51.100.5 60")
    outcome = seen(unmarked=False, left=("203.0.113.9",))
    deed = deeds.of_sync(OWNER, answer("managed-deleted"), wanted=None, outcome=outcome)
    assert (deed.changed, deed.detail) == (False, None)


def test_record_that_is_made_again_replaces_nothing() -> None:
    """Redis knows it as published, and somebody had taken it out of the zone."""
    made = Outcome(OutcomeKind.CREATED, "", record=NEW)
    deed = deeds.of_sync(OWNER, answer("managed-created"), wanted=NEW, known=OLD, outcome=made)
    assert (deed.before, deed.after) == (None, "A 198.51.100.6 60")
