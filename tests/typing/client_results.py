"""What a type checker knows of the results of both clients.

Responsible for: each method's result, and the narrowing of a certificate's answer by `match`, by
`isinstance` and by `status`.
Called by: mypy, through `scripts/test`.
"""

from datetime import datetime
from typing import assert_never, assert_type

from gateway.client import (
    AdminContext,
    AsyncGatewayClient,
    Bundle,
    Capability,
    Certificate,
    CertificateAnswer,
    ClientContext,
    ClientSpec,
    ClientView,
    ConflictingRecord,
    CredentialView,
    DnsRecord,
    GatewayCapabilities,
    GatewayClient,
    Ownership,
    Pending,
    Progress,
    ProvisionResponse,
    Ready,
    RefusalReason,
    Refused,
    ReleaseResponse,
    RotateResponse,
    SyncDnsRecordResponse,
    SyncStatus,
    judge_certificate,
)


def narrowed_by_match(answer: Ready | Pending | Refused) -> Certificate | None:
    match answer:
        case Ready(certificate=certificate):
            return assert_type(certificate, Certificate)
        case Pending(retry_after_ms=wait_ms):
            assert_type(wait_ms, int)
        case Refused(reason=reason, retry_after_ms=later_ms):
            assert_type(reason, RefusalReason)
            assert_type(later_ms, int | None)
        case _:
            assert_never(answer)
    return None


def narrowed_by_isinstance(answer: Ready | Pending | Refused) -> str:
    if isinstance(answer, Ready):
        return assert_type(answer, Ready).certificate.chain_pem
    if isinstance(answer, Pending):
        return str(assert_type(answer, Pending).retry_after_ms)
    return assert_type(answer, Refused).message


def narrowed_by_status(answer: Ready | Pending | Refused) -> str:
    if answer.status == "ready":
        return assert_type(answer, Ready).certificate.private_key_pem
    if answer.status == "pending":
        return str(assert_type(answer, Pending).retry_after_ms)
    return assert_type(answer, Refused).message


def forgotten_case(answer: Ready | Pending | Refused) -> int:
    match answer:
        case Ready():
            return 0
        case Pending():
            return 1
        case _:
            assert_never(answer)  # type: ignore[arg-type]


def not_narrowed(answer: Ready | Pending | Refused) -> Certificate:
    return answer.certificate  # type: ignore[union-attr]


def contexts(context: ClientContext | AdminContext) -> frozenset[str]:
    if context.role == "admin":
        assert_type(context, AdminContext)
        return frozenset()
    return assert_type(context, ClientContext).capabilities


def told(progress: Progress) -> str:
    if isinstance(progress.answer, Pending):
        return "it is being issued"
    if isinstance(progress.answer, Refused):
        return progress.answer.message
    return progress.answer.text


def blocking_results(client: GatewayClient, relay: Ownership, record: DnsRecord) -> None:
    assert_type(client.get_capabilities(), GatewayCapabilities)
    assert_type(client.get_context(), ClientContext | AdminContext)
    assert_type(client.sync_dns_record(relay, record), SyncDnsRecordResponse)
    assert_type(client.delete_dns_record({"appId": "a", "hostname": "b"}), SyncDnsRecordResponse)
    assert_type(client.get_certificate(relay), CertificateAnswer)
    assert_type(client.release_certificate(relay), ReleaseResponse)
    assert_type(client.wait_for_certificate(relay, on_progress=told_to_nobody), Certificate)
    assert_type(client.ensure_client({}), ProvisionResponse)
    assert_type(client.rotate_credential("a", overlap_seconds=60), RotateResponse)
    assert_type(client.rotate_credential("a").api_token, str)
    assert_type(client.with_token("gwc_c7f3_kJ0xExample"), GatewayClient)
    assert_type(client.revoke_credentials("a"), ProvisionResponse)
    assert_type(client.remove_client("a", release_holdings=True), ProvisionResponse)
    client.get_certificate("relay.example.com")  # type: ignore[arg-type]


async def asynchronous_results(
    client: AsyncGatewayClient, relay: Ownership, record: DnsRecord
) -> None:
    assert_type(await client.get_capabilities(), GatewayCapabilities)
    assert_type(await client.get_context(), ClientContext | AdminContext)
    assert_type(await client.sync_dns_record(relay, record), SyncDnsRecordResponse)
    assert_type(await client.delete_dns_record(relay), SyncDnsRecordResponse)
    assert_type(await client.get_certificate(relay), Ready | Pending | Refused)
    assert_type(await client.release_certificate(relay), ReleaseResponse)
    assert_type(await client.wait_for_certificate(relay, 60.0), Certificate)
    assert_type(await client.ensure_client({}), ProvisionResponse)
    assert_type(await client.rotate_credential("a"), RotateResponse)
    assert_type(client.with_token("gwc_c7f3_kJ0xExample"), AsyncGatewayClient)
    assert_type(await client.revoke_credentials("a"), ProvisionResponse)
    assert_type(await client.remove_client("a"), ProvisionResponse)


def parts_of_answers(answer: SyncDnsRecordResponse, made: ProvisionResponse) -> None:
    assert_type(answer.status, SyncStatus)
    assert_type(answer.conflicting_records, tuple[ConflictingRecord, ...])
    assert_type(made.client, ClientView)
    assert_type(made.credential, CredentialView | None)


def token_functions(read: "Reading") -> None:
    GatewayClient("https://gateway.example.com", read.token)
    AsyncGatewayClient("https://gateway.example.com", token="gwc_c7f3_kJ0xExample")
    GatewayClient("https://gateway.example.com", None)  # type: ignore[arg-type]


class Reading:
    """A program's own way to its token."""

    def token(self) -> str:
        return "gwc_c7f3_kJ0xExample"


def told_to_nobody(progress: Progress) -> None:
    del progress


def made_by_parts() -> None:
    assert_type(Ownership.of("relay", "relay.example.com"), Ownership)
    assert_type(DnsRecord.of("198.51.100.85", ttl=60), DnsRecord)
    capabilities: list[Capability] = ["readCertificates"]
    spec = ClientSpec.of("a", "relay", hostname_patterns=["a.example.com"], capabilities=())
    assert_type(spec, ClientSpec)
    ClientSpec.of("a", "relay", hostname_patterns=[], capabilities=capabilities)
    ClientSpec.of("a", "relay", hostname_patterns=[], capabilities=["fly"])  # type: ignore[list-item]


def bundles(certificate: Certificate, now: datetime) -> Bundle:
    bundle = judge_certificate(certificate, certificate.hostname, now)
    assert_type(bundle.not_after, datetime)
    assert_type(bundle.is_valid_at(now), bool)
    return bundle
