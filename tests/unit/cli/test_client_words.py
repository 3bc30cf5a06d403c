"""The words of `gateway client`: what a person and a program read of an answer."""

from datetime import timedelta

import pytest

from gateway.cli.client_words import (
    certificate_lines,
    certificate_view,
    context_lines,
    is_done,
    pending_lines,
    record_lines,
    release_line,
    seconds_words,
)
from gateway.client import (
    AdminContext,
    ClientContext,
    Pending,
    Refused,
    ReleaseResponse,
    SyncDnsRecordResponse,
    read_bundle,
)
from gateway.moments import moment_words
from tests.lab.certificates import LabAuthority

HOSTNAME = "relay.example.test"


def answered(**changes: object) -> SyncDnsRecordResponse:
    return SyncDnsRecordResponse.model_validate(
        {
            "status": "managed-created",
            "hostname": HOSTNAME,
            "record": {"type": "A", "value": "198.51.100.85", "ttl": 60},
            "message": "The record is published.",
            **changes,
        }
    )


def test_context_of_a_client_that_may_nothing_says_so() -> None:
    context = ClientContext.model_validate(
        {
            "clientId": "cluster-a",
            "clientType": "cloudly",
            "policyGeneration": 3,
            "hostnamePatterns": [],
            "allowedDnsRecordAddresses": [],
            "capabilities": [],
            "credentialId": "c7f3",
        }
    )
    assert list(context_lines(context)) == [
        "role         gatewayClient",
        "client       cluster-a (cloudly)",
        "credential   c7f3",
        "generation   3",
        "hostnames    none",
        "addresses    none",
        "capabilities none",
    ]


def test_context_of_the_operator_is_one_line() -> None:
    (line,) = context_lines(AdminContext())
    assert line.startswith("role         admin: ")


@pytest.mark.parametrize(
    ("status", "word"),
    [
        ("managed-created", "published"),
        ("managed-updated", "replaced"),
        ("managed-unchanged", "unchanged"),
    ],
)
def test_record_that_is_there_is_one_line_as_a_zone_has_it(status: str, word: str) -> None:
    answer = answered(status=status)
    assert is_done(answer)
    assert list(record_lines(answer)) == [f"{word}  {HOSTNAME}  60  A  198.51.100.85"]


@pytest.mark.parametrize("sentence", ["It is withdrawn.", "This ownership has no record here."])
def test_withdrawal_says_in_the_gateways_words_whether_there_was_one(sentence: str) -> None:
    answer = answered(status="managed-deleted", record=None, message=sentence)
    assert is_done(answer)
    assert list(record_lines(answer)) == [f"done  {HOSTNAME}: {sentence}"]


def test_conflict_without_records_says_that_none_is_in_the_way() -> None:
    answer = answered(status="record-conflict", record=None, message="It is held.")
    assert not is_done(answer)
    assert list(record_lines(answer)) == [
        f"record-conflict  {HOSTNAME}: It is held.",
        f"No DNS record is in the way. The operator sees more with `gateway explain {HOSTNAME}`.",
    ]


def test_evidence_stands_in_columns() -> None:
    found = [
        {"name": HOSTNAME, "type": "A", "value": "192.0.2.7", "ttl": 3600},
        {"name": HOSTNAME, "type": "TXT", "value": '"a b"', "ttl": 60},
    ]
    lines = list(record_lines(answered(status="record-conflict", conflicting_records=found)))
    assert lines[2:5] == [
        "  NAME                TTL   TYPE  VALUE",
        "  relay.example.test  3600  A     192.0.2.7",
        '  relay.example.test  60    TXT   "a b"',
    ]


@pytest.mark.parametrize(
    ("status", "retry_after_ms", "next_step"),
    [
        ("target-invalid", None, "`gateway client context` shows the addresses"),
        ("zone-unavailable", None, "Asking again is no use until that changes."),
        ("zone-unavailable", 30_000, "Run the same again in 30 s"),
        ("mutation-failed", 500, "Run the same again in 0.5 s"),
    ],
)
def test_each_way_to_be_refused_has_a_next_step(
    status: str, retry_after_ms: int | None, next_step: str
) -> None:
    answer = answered(status=status, record=None, retry_after_ms=retry_after_ms)
    assert not is_done(answer)
    assert next_step in list(record_lines(answer))[-1]


def test_certificate_is_told_without_chain_and_key() -> None:
    certificate = LabAuthority().as_certificate(HOSTNAME)
    bundle = read_bundle(certificate.chain_pem, certificate.private_key_pem, HOSTNAME)
    now = bundle.not_after - timedelta(days=30)
    lines = list(certificate_lines(certificate, bundle, now))
    assert f"valid until  {moment_words(bundle.not_after)} (in 30 days)" in lines
    assert f"serial       {bundle.serial_number:x}" in lines
    assert f"sha256       {bundle.fingerprint}" in lines
    assert not any("-----" in line for line in lines)


@pytest.mark.parametrize("with_key", [False, True])
def test_key_is_null_for_programs_unless_asked_for(with_key: bool) -> None:
    certificate = LabAuthority().as_certificate(HOSTNAME)
    bundle = read_bundle(certificate.chain_pem, certificate.private_key_pem, HOSTNAME)
    view = certificate_view(certificate, bundle, with_key=with_key, files={"a": "b"})
    shown = certificate.private_key_pem if with_key else None
    assert view == {
        "status": "ready",
        "certificate": certificate.to_wire() | {"privateKeyPem": shown},
        "fingerprint": bundle.fingerprint,
        "files": {"a": "b"},
    }


def test_pending_says_when_and_how_to_wait() -> None:
    lines = list(pending_lines(Pending(retry_after_ms=1500), HOSTNAME))
    assert lines[0].startswith(f"pending  {HOSTNAME}: ")
    assert lines[1].startswith("Ask again in 1.5 s, or let `gateway client certificate wait`")


@pytest.mark.parametrize(
    ("retry_after_ms", "next_step"),
    [
        (None, "Asking again is no use until that changes."),
        (7_200_000, "Run the same again in 2 hours"),
    ],
)
def test_refused_says_whether_asking_again_is_of_use(
    retry_after_ms: int | None, next_step: str
) -> None:
    refused = Refused(reason="rate-limited", message="No more.", retry_after_ms=retry_after_ms)
    lines = list(pending_lines(refused, HOSTNAME))
    assert lines[0] == f"refused  {HOSTNAME} (rate-limited): No more."
    assert lines[1].startswith(next_step)


def test_release_says_whether_there_was_anything() -> None:
    assert release_line(ReleaseResponse(status="released"), HOSTNAME).startswith("released  ")
    assert release_line(ReleaseResponse(status="unchanged"), HOSTNAME).startswith("unchanged  ")


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-3, "0.0 s"),
        (0.25, "0.2 s"),
        (9.96, "10.0 s"),
        (10, "10 s"),
        (119, "119 s"),
        (120, "2 minutes"),
        (7199, "119 minutes"),
        (7200, "2 hours"),
        (172_800, "2 days"),
    ],
)
def test_span_of_time_is_told_in_the_largest_unit_of_which_there_are_two(
    seconds: float, words: str
) -> None:
    assert seconds_words(seconds) == words
