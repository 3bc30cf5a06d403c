"""Values that a program makes by their parts: the same rules as on the wire, told all at once."""

from collections.abc import Callable

import pytest

from gateway.contract import ClientSpec, DnsRecord, Ownership, RequestInvalid


def test_ownership_is_made_of_its_two_parts() -> None:
    made = Ownership.of("relay", "a.example.test")
    assert made.to_wire() == {"appId": "relay", "hostname": "a.example.test"}


@pytest.mark.parametrize(
    ("address", "kind"), [("198.51.100.5", "A"), ("2001:db8::5", "AAAA"), ("10.0.0.1", "A")]
)
def test_record_is_of_the_addresses_own_family(address: str, kind: str) -> None:
    assert DnsRecord.of(address).to_wire() == {"type": kind, "value": address, "ttl": 300}
    assert DnsRecord.of(address, 60).ttl == 60


def test_spec_is_made_of_any_iterables() -> None:
    made = ClientSpec.of(
        "cluster-a",
        "relay",
        hostname_patterns=(f"{name}.example.test" for name in "ab"),
        capabilities={"readCertificates"},
    )
    assert made.to_wire() == {
        "clientId": "cluster-a",
        "clientType": "relay",
        "hostnamePatterns": ["a.example.test", "b.example.test"],
        "allowedDnsRecordAddresses": [],
        "capabilities": ["readCertificates"],
    }


@pytest.mark.parametrize(
    ("make", "paths"),
    [
        (lambda: Ownership.of("", "A.example.test"), ["appId", "hostname"]),
        (lambda: DnsRecord.of("127.0.0.1", 0), ["value", "ttl"]),
        (
            lambda: ClientSpec.of("a b", "", hostname_patterns=["*"], capabilities=[]),
            ["clientId", "clientType", "hostnamePatterns[0]"],
        ),
    ],
)
def test_violations_are_raised_all_at_once(make: Callable[[], object], paths: list[str]) -> None:
    with pytest.raises(RequestInvalid) as refused:
        make()
    assert [violation.split(" ")[0] for violation in refused.value.violations] == paths
