"""When a record is published, and what the gateway's answers mean."""

from dataclasses import replace

import pytest

from gateway.agent.memory import Memory
from gateway.agent.record_keeper import (
    Attempt,
    fault_of_answer,
    is_due,
    pause_ms,
    remembered,
)
from gateway.agent.rounds import OPERATOR_PAUSE_MS, SHORTEST_PAUSE_MS, Fault
from gateway.client import DnsRecord, SyncDnsRecordResponse
from gateway.contract import ConflictingRecord, Hostname, SyncStatus

HOUR = 3_600_000
STEADY = 50_000
RECORD = DnsRecord(type="A", value="198.51.100.85", ttl=60)
OTHER = DnsRecord(type="A", value="198.51.100.86", ttl=60)
NOW = 1_795_000_000_000
DONE = Attempt(RECORD, None)
FAILED = Attempt(RECORD, Fault("mutation-failed", mends=True), STEADY + 1_000, 1)
AWAY = Attempt(RECORD, Fault("away", mends=True, is_shared=True), STEADY + 1_000, 1)


def due(attempt: Attempt | None, wanted: DnsRecord = RECORD, ago_ms: int = 1, at: int = 0) -> bool:
    return is_due(
        wanted, attempt, published_ago_ms=ago_ms, republish_ms=HOUR, steady_ms=STEADY + at
    )


def answered(status: SyncStatus, retry_after_ms: int | None = None) -> SyncDnsRecordResponse:
    return SyncDnsRecordResponse(
        status=status,
        hostname=Hostname("relay.example.test"),
        retry_after_ms=retry_after_ms,
        message="So it is.",
    )


def test_record_that_was_never_published_is_due() -> None:
    assert remembered(Memory(), NOW, STEADY) is None
    assert due(None)


def test_record_that_an_earlier_run_published_is_left_alone() -> None:
    attempt = remembered(Memory(published=RECORD, published_at_ms=NOW - 1), NOW, STEADY)
    assert not due(attempt)
    assert due(attempt, ago_ms=HOUR)
    assert due(attempt, OTHER)


def test_record_that_an_earlier_run_failed_at_is_due() -> None:
    memory = Memory(published=RECORD, published_at_ms=NOW - 1, record_fault="record-conflict")
    assert due(remembered(memory, NOW, STEADY))


def test_wait_that_an_earlier_run_was_told_is_kept() -> None:
    memory = Memory(wanted=RECORD, record_fault="zone-unavailable", record_held_until_ms=NOW + 9)
    attempt = remembered(memory, NOW, STEADY)
    assert attempt is not None
    assert attempt.fault == Fault("zone-unavailable", mends=True)
    assert not due(attempt, at=8)
    assert due(attempt, at=9)


def test_wait_that_was_told_is_kept_though_another_record_is_wanted() -> None:
    attempt = replace(FAILED, held_until_ms=STEADY + 1_000)
    assert not due(attempt, OTHER, at=999)
    assert due(attempt, OTHER, at=1_000)


def test_published_record_is_left_alone() -> None:
    assert not due(DONE)


@pytest.mark.parametrize(
    "wanted",
    [
        DnsRecord(type="A", value="198.51.100.86", ttl=60),
        DnsRecord(type="A", value="198.51.100.85", ttl=61),
        DnsRecord(type="AAAA", value="2001:db8::1", ttl=60),
    ],
    ids=["address", "ttl", "type"],
)
def test_change_is_published_at_once(wanted: DnsRecord) -> None:
    assert due(DONE, wanted)
    assert due(FAILED, wanted)


def test_unchanged_record_is_published_again_after_its_time() -> None:
    assert not due(DONE, ago_ms=HOUR - 1)
    assert due(DONE, ago_ms=HOUR)


def test_clock_set_back_has_the_record_published_again() -> None:
    assert due(DONE, ago_ms=-1)


def test_failed_publication_waits_for_its_pause() -> None:
    assert not due(FAILED, at=999)
    assert due(FAILED, at=1_000)


def test_failure_that_all_share_is_left_to_the_gate() -> None:
    assert due(AWAY)


@pytest.mark.parametrize("status", ["managed-created", "managed-updated", "managed-unchanged"])
def test_managed_record_is_no_fault(status: SyncStatus) -> None:
    assert fault_of_answer(answered(status)) is None


@pytest.mark.parametrize("status", ["target-invalid", "record-conflict", "zone-unavailable"])
def test_outcome_that_only_a_person_mends_is_asked_about_slowly(status: SyncStatus) -> None:
    answer = answered(status)
    fault = fault_of_answer(answer)
    assert fault == Fault(f"{status}: So it is.", mends=False)
    assert pause_ms(answer, 1, 0.0, 1_000) == OPERATOR_PAUSE_MS


@pytest.mark.parametrize("status", ["zone-unavailable", "mutation-failed"])
def test_outcome_with_a_wait_is_asked_about_after_it(status: SyncStatus) -> None:
    answer = answered(status, 7_000)
    fault = fault_of_answer(answer)
    assert fault is not None
    assert fault.mends
    assert pause_ms(answer, 3, 0.0, 1_000) == 7_000


def conflict_with(*found: tuple[str, str]) -> str:
    records = tuple(
        ConflictingRecord(name="relay.example.test", type=type_, value=value, ttl=300)
        for type_, value in found
    )
    answer = answered("record-conflict").model_copy(update={"conflicting_records": records})
    return str(fault_of_answer(answer))


def test_conflict_with_what_a_gateway_published_names_the_likely_cause() -> None:
    told = conflict_with(("A", "192.0.2.7"), ("TXT", '"gateway-owner=v1:k1:bjexYc"'))
    assert "another app_id, or another client" in told
    assert told.endswith('Found: A 192.0.2.7, TXT "gateway-owner=v1:k1:bjexYc".')


def test_conflict_with_what_no_gateway_published_names_no_gateway() -> None:
    told = conflict_with(("A", "192.0.2.7"), ("TXT", '"v=spf1 -all"'), ("CAA", "gateway-owner="))
    assert "gateway published" not in told


def test_wait_of_nothing_is_no_loop() -> None:
    assert pause_ms(answered("mutation-failed", 0), 1, 0.0, 1_000) == SHORTEST_PAUSE_MS


def test_failed_mutation_without_a_wait_is_tried_with_backoff() -> None:
    answer = answered("mutation-failed")
    pauses = [pause_ms(answer, failures, 0.0, 1_000) for failures in (1, 2, 3)]
    assert pauses == [1_000, 2_000, 4_000]


def test_record_that_is_gone_is_a_fault() -> None:
    assert fault_of_answer(answered("managed-deleted")) is not None


def test_conflict_is_told_with_its_evidence() -> None:
    found = [
        ConflictingRecord(name="relay.example.test", type="A", value=f"192.0.2.{n}", ttl=60)
        for n in range(1, 8)
    ]
    answer = answered("record-conflict").model_copy(update={"conflicting_records": tuple(found)})
    fault = fault_of_answer(answer)
    assert fault is not None
    assert "Found: A 192.0.2.1, A 192.0.2.2" in fault.sentence
    assert fault.sentence.endswith("A 192.0.2.5 and 2 more.")
