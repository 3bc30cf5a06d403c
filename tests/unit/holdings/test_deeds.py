"""What the audit trail is told of records: which answers are changes, and with which values."""

from __future__ import annotations

from typing import get_args

import pytest

from gateway.contract import ConflictingRecord, DnsRecord, SyncDnsRecordResponse
from gateway.contract.names import AppId, ClientId, Hostname
from gateway.contract.responses import SyncStatus
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
    deed = deeds.of_sync(OWNER, answer(status), wanted=NEW, before=OLD)
    assert deed.changed is (status in CHANGES)
    assert (deed.outcome, deed.before, deed.after) == (
        status,
        "A 198.51.100.5 300",
        "A 198.51.100.6 60",
    )


def test_withdrawal_that_knew_of_no_record_counts_as_none() -> None:
    idle = deeds.of_sync(OWNER, answer("managed-deleted"), wanted=None, before=None)
    real = deeds.of_sync(OWNER, answer("managed-deleted"), wanted=None, before=OLD)
    assert (idle.changed, idle.before, idle.after) == (False, None, None)
    assert (real.changed, real.before, real.after) == (True, "A 198.51.100.5 300", None)


def test_conflict_tells_what_is_in_the_way() -> None:
    found = ConflictingRecord(name="relay.example.com", type="A", value="203.0.113.9", ttl=300)
    deed = deeds.of_sync(OWNER, answer("record-conflict", found), wanted=NEW, before=None)
    assert deed.detail == "in the way: A 203.0.113.9"
