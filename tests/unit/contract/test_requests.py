from typing import Any

import pytest

from gateway.contract import (
    AppId,
    DnsRecord,
    EmptyRequest,
    GetCertificateRequest,
    Hostname,
    Ownership,
    ReleaseCertificateRequest,
    RequestInvalid,
    SyncDnsRecordRequest,
    WireModel,
    read_request,
)

OWNERSHIP = {"appId": "cluster-relay:a", "hostname": "relay.example.com"}
RECORD = {"type": "A", "value": "198.51.100.85"}
READ_OWNERSHIP = Ownership(app_id=AppId("cluster-relay:a"), hostname=Hostname("relay.example.com"))


def violations_of(model: type[WireModel], value: object) -> list[str]:
    with pytest.raises(RequestInvalid) as caught:
        read_request(model, value)
    return list(caught.value.violations)


def test_publishing_request_is_read_with_the_default_ttl() -> None:
    request = read_request(SyncDnsRecordRequest, {"ownership": OWNERSHIP, "record": RECORD})
    assert request.ownership == READ_OWNERSHIP
    assert request.record == DnsRecord(type="A", value="198.51.100.85", ttl=300)
    assert request.delete is False
    assert request.to_wire() == {"ownership": OWNERSHIP, "record": {**RECORD, "ttl": 300}}


def test_withdrawing_request_is_read() -> None:
    wire = {"ownership": OWNERSHIP, "delete": True}
    request = read_request(SyncDnsRecordRequest, wire)
    assert request == SyncDnsRecordRequest(ownership=READ_OWNERSHIP, delete=True)
    assert request.record is None
    assert request.to_wire() == wire


@pytest.mark.parametrize(
    ("rest", "violations"),
    [
        ({}, ["record is missing: send either record or delete: true"]),
        (
            {"record": RECORD, "delete": True},
            ["record must be absent when delete is there: send one of the two"],
        ),
        ({"delete": False}, ["delete must be true or absent, not false"]),
        ({"delete": None}, ["delete must be true or false, not null"]),
        ({"delete": "true"}, ['delete must be true or false, not "true"']),
        ({"delete": 1}, ["delete must be true or false, not the number 1"]),
        ({"record": None}, ["record must be an object or absent, not null"]),
        ({"record": []}, ["record must be an object, not a list"]),
        (
            {"record": {"type": "A", "value": "::1", "ttl": 0}},
            [
                'record.value must be an IPv4 address to fit the type A, not "::1"',
                "record.ttl must be a whole number from 60 to 86400, not the number 0",
            ],
        ),
    ],
)
def test_publishing_request_takes_exactly_one_of_record_and_delete(
    rest: dict[str, Any], violations: list[str]
) -> None:
    assert violations_of(SyncDnsRecordRequest, {"ownership": OWNERSHIP, **rest}) == violations


@pytest.mark.parametrize(
    ("model", "needed"),
    [
        (SyncDnsRecordRequest, {"ownership": OWNERSHIP, "record": RECORD}),
        (GetCertificateRequest, {"ownership": OWNERSHIP}),
        (ReleaseCertificateRequest, {"ownership": OWNERSHIP}),
        (EmptyRequest, {}),
    ],
)
def test_identity_and_unknown_keys_are_refused(
    model: type[WireModel], needed: dict[str, Any]
) -> None:
    read_request(model, needed)
    assert violations_of(model, {**needed, "identity": None, "extra": 1, "apiToken": "x"}) == [
        "identity must be absent: it is the credential of another kind of caller",
        "extra is not a key of this object",
        "apiToken is not a key of this object",
    ]


@pytest.mark.parametrize("model", [GetCertificateRequest, ReleaseCertificateRequest])
def test_every_violation_of_an_ownership_is_returned(model: type[WireModel]) -> None:
    assert violations_of(model, {}) == ["ownership is missing"]
    assert violations_of(model, {"ownership": None}) == ["ownership must be an object, not null"]
    found = violations_of(
        model, {"ownership": {"appId": "", "hostname": "Relay.example.com", "client": "x"}}
    )
    assert found == [
        'ownership.appId must be 1 to 128 printable ASCII characters without a space, not ""',
        'ownership.hostname must be spelled "relay.example.com", not "Relay.example.com"',
        "ownership.client is not a key of this object",
    ]


def test_object_that_claims_to_be_an_ownership_is_refused() -> None:
    class Disguised:
        __class__ = property(lambda _: Ownership)

    assert isinstance(Disguised(), Ownership)
    assert violations_of(GetCertificateRequest, {"ownership": Disguised()}) == [
        "ownership must be an object, not a value that JSON does not have"
    ]


def test_models_are_taken_where_objects_are_expected() -> None:
    request = GetCertificateRequest(ownership=READ_OWNERSHIP)
    assert read_request(GetCertificateRequest, request.to_wire()) == request


def test_request_that_is_no_object_is_refused() -> None:
    assert violations_of(EmptyRequest, []) == ["request must be an object, not a list"]
