from typing import Any

import pytest

from gateway.contract import (
    ClientId,
    ClientSpec,
    ProvisionRequest,
    RequestInvalid,
    read_request,
)

SPEC: dict[str, Any] = {
    "clientId": "cluster-a",
    "clientType": "relay",
    "hostnamePatterns": ["relay.*.example.test"],
    "allowedDnsRecordAddresses": ["198.51.100.0/24", "2001:db8::/32"],
    "capabilities": ["syncDnsRecords", "readCertificates"],
}
READ_SPEC = ClientSpec(
    client_id=ClientId("cluster-a"),
    client_type="relay",
    hostname_patterns=("relay.*.example.test",),
    allowed_dns_record_addresses=("198.51.100.0/24", "2001:db8::/32"),
    capabilities=frozenset({"syncDnsRecords", "readCertificates"}),
)


def violations_of(value: object) -> list[str]:
    with pytest.raises(RequestInvalid) as caught:
        read_request(ProvisionRequest, value)
    return list(caught.value.violations)


def test_ensure_is_read_with_its_whole_policy() -> None:
    request = read_request(ProvisionRequest, {"action": "ensure", "spec": SPEC})
    assert request.client_id == "cluster-a"
    assert request.spec == READ_SPEC
    assert request.to_wire() == {
        "action": "ensure",
        "spec": {**SPEC, "capabilities": ["readCertificates", "syncDnsRecords"]},
    }


def test_ensure_without_addresses_allows_no_record() -> None:
    spec = {key: SPEC[key] for key in SPEC if key != "allowedDnsRecordAddresses"}
    request = read_request(ProvisionRequest, {"action": "ensure", "spec": spec})
    assert request.spec is not None
    assert request.spec.allowed_dns_record_addresses == ()


@pytest.mark.parametrize(
    ("capabilities", "names"),
    [
        ([], set()),
        ({}, set()),
        ({"syncDnsRecords": True, "requestCertificates": False}, {"syncDnsRecords"}),
        (["requestCertificates"], {"requestCertificates"}),
    ],
)
def test_capabilities_are_read_in_both_forms(capabilities: Any, names: set[str]) -> None:
    spec = {**SPEC, "capabilities": capabilities}
    request = read_request(ProvisionRequest, {"action": "ensure", "spec": spec})
    assert request.spec is not None
    assert request.spec.capabilities == names


@pytest.mark.parametrize(
    ("capabilities", "violations"),
    [
        (None, ["spec.capabilities must be a list of capabilities, not null"]),
        (
            ["readCertificates", "all", "readCertificates", 1],
            [
                "spec.capabilities[1] must be one of "
                '"syncDnsRecords", "requestCertificates", "readCertificates", not "all"',
                'spec.capabilities[2] must be distinct, and "readCertificates" is there already',
                "spec.capabilities[3] must be one of "
                '"syncDnsRecords", "requestCertificates", "readCertificates", not the number 1',
            ],
        ),
        (
            {"syncDnsRecords": 1, "all": True, "a b": True},
            [
                "spec.capabilities.syncDnsRecords must be true or false, not the number 1",
                "spec.capabilities.all is not a capability",
                'spec.capabilities["a b"] is not a capability',
            ],
        ),
    ],
)
def test_capabilities_are_refused_with_every_violation(
    capabilities: Any, violations: list[str]
) -> None:
    spec = {**SPEC, "capabilities": capabilities}
    assert violations_of({"action": "ensure", "spec": spec}) == violations


@pytest.mark.parametrize(
    ("rest", "expected"),
    [
        ({"action": "rotate"}, {"overlap_seconds": 0}),
        ({"action": "rotate", "overlapSeconds": 3600}, {"overlap_seconds": 3600}),
        ({"action": "rotate", "overlapSeconds": 2_592_000.0}, {"overlap_seconds": 2_592_000}),
        ({"action": "revoke"}, {}),
        ({"action": "remove"}, {"release_holdings": False}),
        ({"action": "remove", "releaseHoldings": True}, {"release_holdings": True}),
    ],
)
@pytest.mark.parametrize("beside_action", [True, False])
@pytest.mark.parametrize("spec", [{"clientId": "cluster-a"}, SPEC])
def test_other_actions_name_the_client_and_change_no_policy(
    rest: dict[str, Any], expected: dict[str, Any], beside_action: bool, spec: dict[str, Any]
) -> None:
    action = rest["action"]
    options = {key: rest[key] for key in rest if key != "action"}
    wire = (
        {"action": action, "spec": spec, **options}
        if beside_action
        else {"action": action, "spec": {**spec, **options}}
    )
    request = read_request(ProvisionRequest, wire)
    assert request == ProvisionRequest(action=action, client_id=ClientId("cluster-a"), **expected)
    assert type(request.overlap_seconds) is int
    assert read_request(ProvisionRequest, request.to_wire()) == request


@pytest.mark.parametrize(
    ("value", "violations"),
    [
        ({}, ["action is missing", "spec is missing"]),
        (
            {"action": "ensure", "spec": {}},
            [
                "spec.clientId is missing",
                "spec.clientType is missing: ensure takes the whole policy",
                "spec.hostnamePatterns is missing: ensure takes the whole policy",
                "spec.capabilities is missing: ensure takes the whole policy",
            ],
        ),
        ({"action": "ensure", "spec": None}, ["spec must be an object, not null"]),
        (
            {"action": "drop", "spec": {"clientId": "a", "overlapSeconds": 1}},
            ['action must be one of "ensure", "rotate", "revoke", "remove", not "drop"'],
        ),
        (
            {"action": "revoke", "spec": {"clientId": "a b", "clientType": "", "x": 1}},
            [
                "spec.clientId must be 1 to 128 printable ASCII characters without a space, "
                'not "a b"',
                'spec.clientType must be 1 to 64 characters out of A-Z a-z 0-9 . _ -, not ""',
                "spec.x is not a key of this object",
            ],
        ),
        (
            {
                "action": "rotate",
                "spec": {"clientId": "a", "overlapSeconds": 1},
                "overlapSeconds": 1,
            },
            ["spec.overlapSeconds must be absent when overlapSeconds stands beside action"],
        ),
        (
            {"action": "rotate", "spec": {"clientId": "a"}, "overlapSeconds": 2_592_001},
            ["overlapSeconds must be a whole number from 0 to 2592000, not the number 2592001"],
        ),
        (
            {"action": "revoke", "spec": {"clientId": "a"}, "overlapSeconds": 0},
            ["overlapSeconds must be absent: only the action rotate takes it"],
        ),
        (
            {"action": "rotate", "spec": {"clientId": "a", "releaseHoldings": False}},
            ["spec.releaseHoldings must be absent: only the action remove takes it"],
        ),
        (
            {"action": "remove", "spec": {"clientId": "a"}, "releaseHoldings": "yes"},
            ['releaseHoldings must be true or false, not "yes"'],
        ),
        (
            {"action": "revoke", "spec": {"clientId": "a"}, "identity": {}},
            ["identity must be absent: it is the credential of another kind of caller"],
        ),
    ],
)
def test_every_violation_is_returned(value: Any, violations: list[str]) -> None:
    assert violations_of(value) == violations
