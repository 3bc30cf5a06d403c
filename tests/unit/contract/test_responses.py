import json
from typing import Any

import pytest
from pydantic import ValidationError

from gateway.contract import (
    AdminContext,
    CapabilitiesResponse,
    Certificate,
    CertificatePending,
    CertificateReady,
    CertificateRefused,
    ClientContext,
    ClientId,
    ClientView,
    ConflictingRecord,
    ContextResponse,
    CredentialId,
    CredentialView,
    DnsRecord,
    Hostname,
    ProvisionResponse,
    ReleaseResponse,
    SyncDnsRecordResponse,
    WireModel,
)

HOSTNAME = Hostname("relay.example.com")
CERTIFICATE = Certificate(
    hostname=HOSTNAME,
    chain_pem="-----BEGIN CERTIFICATE-----",
    private_key_pem="-----BEGIN PRIVATE KEY-----",
    valid_from=1,
    valid_until=3,
    renew_after=2,
)
POLICY: dict[str, Any] = {
    "client_id": ClientId("cluster-a"),
    "client_type": "relay",
    "policy_generation": 3,
    "hostname_patterns": ("relay.*.example.test",),
    "allowed_dns_record_addresses": (),
    "capabilities": frozenset({"syncDnsRecords", "readCertificates"}),
}
POLICY_ON_THE_WIRE = {
    "clientId": "cluster-a",
    "clientType": "relay",
    "policyGeneration": 3,
    "hostnamePatterns": ["relay.*.example.test"],
    "allowedDnsRecordAddresses": [],
    "capabilities": ["readCertificates", "syncDnsRecords"],
}
CONFLICT = SyncDnsRecordResponse(
    status="record-conflict",
    hostname=HOSTNAME,
    conflicting_records=(ConflictingRecord(name=HOSTNAME, type="TXT", value='"x"', ttl=5),),
    message="Something else holds the name.",
)


@pytest.mark.parametrize(
    ("response", "wire"),
    [
        (
            SyncDnsRecordResponse(
                status="managed-created",
                hostname=HOSTNAME,
                record=DnsRecord(type="A", value="10.0.0.1"),
                message="Published.",
            ),
            {
                "status": "managed-created",
                "hostname": "relay.example.com",
                "record": {"type": "A", "value": "10.0.0.1", "ttl": 300},
                "conflictingRecords": [],
                "retryAfterMs": None,
                "message": "Published.",
            },
        ),
        (
            CONFLICT,
            {
                "status": "record-conflict",
                "hostname": "relay.example.com",
                "record": None,
                "conflictingRecords": [
                    {"name": "relay.example.com", "type": "TXT", "value": '"x"', "ttl": 5}
                ],
                "retryAfterMs": None,
                "message": "Something else holds the name.",
            },
        ),
        (
            CertificateReady(certificate=CERTIFICATE),
            {
                "status": "ready",
                "certificate": {
                    "hostname": "relay.example.com",
                    "chainPem": "-----BEGIN CERTIFICATE-----",
                    "privateKeyPem": "-----BEGIN PRIVATE KEY-----",
                    "validFrom": 1,
                    "validUntil": 3,
                    "renewAfter": 2,
                },
            },
        ),
        (CertificatePending(retry_after_ms=500), {"status": "pending", "retryAfterMs": 500}),
        (
            CertificateRefused(reason="rate-limited", message="Later.", retry_after_ms=None),
            {
                "status": "refused",
                "reason": "rate-limited",
                "message": "Later.",
                "retryAfterMs": None,
            },
        ),
        (ReleaseResponse(status="released"), {"status": "released"}),
        (
            CapabilitiesResponse.of(client_records=True, exact_issuance=False),
            {
                "capabilities": {
                    "dns": {"clientRecords": True},
                    "certificates": {"exactIssuance": False},
                }
            },
        ),
        (ContextResponse(context=AdminContext()), {"context": {"role": "admin"}}),
        (
            ContextResponse(context=ClientContext(credential_id=CredentialId("c1"), **POLICY)),
            {"context": {"role": "gatewayClient", "credentialId": "c1", **POLICY_ON_THE_WIRE}},
        ),
        (
            ProvisionResponse(
                client=ClientView(**POLICY),
                credential=CredentialView(credential_id=CredentialId("c1"), created_at=1),
                api_token="gwc_c1_x",
            ),
            {
                "client": POLICY_ON_THE_WIRE,
                "credential": {"credentialId": "c1", "createdAt": 1, "expiresAt": None},
                "apiToken": "gwc_c1_x",
            },
        ),
        (
            ProvisionResponse(client=ClientView(**POLICY)),
            {"client": POLICY_ON_THE_WIRE, "credential": None, "apiToken": None},
        ),
    ],
)
def test_response_goes_over_the_wire_and_is_read_again(
    response: WireModel, wire: dict[str, Any]
) -> None:
    assert response.to_wire() == wire
    assert type(response).from_wire(wire) == (response, [])
    status, body = response.written()
    assert (status, json.loads(body)) == (wire.get("status", "ok"), wire)


def test_secrets_are_not_shown_when_a_response_is() -> None:
    token = ProvisionResponse(client=ClientView(**POLICY), api_token="gwc_c1_s3cret")
    for shown in (repr(CertificateReady(certificate=CERTIFICATE)), repr(token), str(token)):
        assert "PRIVATE KEY" not in shown
        assert "s3cret" not in shown


def test_secrets_are_not_shown_when_a_response_cannot_be_built() -> None:
    with pytest.raises(ValidationError) as caught:
        Certificate.model_validate({"private_key_pem": 5, "chain_pem": ["s3cret"]})
    assert "s3cret" not in str(caught.value)


def test_text_that_utf8_cannot_hold_is_replaced_in_messages() -> None:
    refused = CertificateRefused(reason="authority-refused", message="CA says \ud800")
    assert refused.to_wire()["message"] == "CA says ?"


def test_answer_is_written_whatever_text_it_has() -> None:
    odd = CERTIFICATE.model_copy(update={"chain_pem": "\ud800"})
    status, body = CertificateReady(certificate=odd).written()
    assert status == "ready"
    assert json.loads(body)["certificate"]["chainPem"] == "?"


def test_message_that_is_no_text_is_refused() -> None:
    with pytest.raises(ValidationError):
        CertificateRefused(reason="rate-limited", message=5)  # type: ignore[arg-type]


def test_response_that_breaks_its_schema_is_described_by_path() -> None:
    _, faults = CertificatePending.from_wire({"status": "ready", "retryAfterMs": -1})
    assert [fault.path for fault in faults] == ["status", "retryAfterMs"]
    assert all(fault.sentence.startswith("is not valid: ") for fault in faults)


def test_models_do_not_change() -> None:
    with pytest.raises(ValidationError):
        CONFLICT.message = "Changed."
