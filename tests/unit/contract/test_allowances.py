import ipaddress
from typing import Any

import pytest
from hypothesis import given, strategies as st

from gateway.contract import (
    DnsRecord,
    compile_allowance,
    is_gateway_client_dns_record_allowed,
    validate_gateway_allowed_dns_record_addresses,
)

RECORD = {"type": "A", "value": "198.51.100.85"}


@pytest.mark.parametrize(
    ("value", "violations"),
    [
        ([], []),
        ((), []),
        (["0.0.0.0/0", "::/0"], []),
        (None, ["allowed must be a list of address prefixes, not null"]),
        ("10.0.0.0/8", ['allowed must be a list of address prefixes, not "10.0.0.0/8"']),
        (
            ["10.0.0.0/8", 5, "10.0.0.0/8", "10.0.0.1/8"],
            [
                "allowed[1] must be an address prefix as text, not the number 5",
                'allowed[2] must be distinct, and "10.0.0.0/8" is there already',
                'allowed[3] must have no host bits set: "10.0.0.0/8", not "10.0.0.1/8"',
            ],
        ),
    ],
)
def test_every_violation_of_a_list_is_returned(value: Any, violations: list[str]) -> None:
    assert validate_gateway_allowed_dns_record_addresses(value, "allowed") == violations


def test_list_of_64_prefixes_is_accepted_and_of_65_refused() -> None:
    prefixes = [f"10.0.{number}.0/24" for number in range(65)]
    assert validate_gateway_allowed_dns_record_addresses(prefixes[:64]) == []
    assert validate_gateway_allowed_dns_record_addresses([*prefixes[:64], 7]) == [
        "allowedDnsRecordAddresses must hold at most 64 address prefixes, not 65",
        "allowedDnsRecordAddresses[64] must be an address prefix as text, not the number 7",
    ]


@given(st.integers(10 << 24, (10 << 24) + 2**24 - 1), st.integers(8, 32), st.integers(0, 2**24 - 1))
def test_address_is_allowed_exactly_inside_the_prefix(number: int, length: int, other: int) -> None:
    network = ipaddress.IPv4Network((number, length), strict=False)
    address = ipaddress.IPv4Address((10 << 24) + other)
    allowance = compile_allowance([str(network)])
    for inside in (address, ipaddress.IPv4Address(number)):
        record = DnsRecord(type="A", value=str(inside))
        assert allowance.allows(record) is (inside in network)


def test_addresses_of_one_family_are_never_allowed_by_the_other() -> None:
    record = {"type": "AAAA", "value": "2001:db8::1"}
    assert not is_gateway_client_dns_record_allowed(record, ["0.0.0.0/0"])
    assert not is_gateway_client_dns_record_allowed(RECORD, ["::/0"])
    assert is_gateway_client_dns_record_allowed(RECORD, ["::/0", "0.0.0.0/0"])


def test_nothing_is_allowed_when_another_prefix_of_the_list_is_invalid() -> None:
    assert is_gateway_client_dns_record_allowed(RECORD, ["198.51.100.0/24"])
    assert not is_gateway_client_dns_record_allowed(RECORD, ["198.51.100.0/24", "x"])
    assert not is_gateway_client_dns_record_allowed(RECORD, [])


def test_compiled_allowance_refuses_a_record_whose_address_is_no_address() -> None:
    record = DnsRecord.model_construct(type="A", value="somewhere", ttl=300)
    assert not compile_allowance(["0.0.0.0/0"]).allows(record)
