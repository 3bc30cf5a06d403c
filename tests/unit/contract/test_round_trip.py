"""A valid value stays valid, and the same, on its way through JSON."""

import json
from typing import Any

from hypothesis import given, strategies as st

from gateway.contract import (
    DnsRecord,
    Ownership,
    is_gateway_address_prefix,
    is_gateway_client_hostname,
    is_gateway_hostname_pattern,
    validate_gateway_allowed_dns_record_addresses,
    validate_gateway_client_dns_record,
    validate_gateway_client_hostname_ownership,
)
from tests.unit.contract.strategies import (
    hostnames,
    ipv4_texts,
    ownerships,
    patterns,
    records,
)


def through_json(value: Any) -> Any:
    return json.loads(json.dumps(value))


@given(ownerships)
def test_ownership_stays_valid(value: Any) -> None:
    assert validate_gateway_client_hostname_ownership(value) == []
    assert validate_gateway_client_hostname_ownership(through_json(value)) == []
    model, _ = Ownership.from_wire(value)
    assert model is not None
    assert model.to_wire() == value


@given(records)
def test_record_stays_valid_and_gets_a_whole_ttl(value: Any) -> None:
    assert validate_gateway_client_dns_record(value) == []
    model, _ = DnsRecord.from_wire(through_json(value))
    assert model is not None
    assert type(model.ttl) is int
    assert model.to_wire() == {"ttl": 300, **value}
    assert DnsRecord.from_wire(through_json(model.to_wire()))[0] == model


@given(hostnames)
def test_hostname_stays_valid(value: str) -> None:
    assert is_gateway_client_hostname(value)
    assert is_gateway_client_hostname(through_json(value))


@given(patterns)
def test_pattern_stays_valid(value: str) -> None:
    assert is_gateway_hostname_pattern(value)
    assert is_gateway_hostname_pattern(through_json(value))


@given(st.lists(ipv4_texts.map(lambda text: f"{text}/32"), max_size=64, unique=True))
def test_allowance_stays_valid(value: list[str]) -> None:
    assert all(map(is_gateway_address_prefix, value))
    assert validate_gateway_allowed_dns_record_addresses(value) == []
    assert validate_gateway_allowed_dns_record_addresses(through_json(value)) == []
