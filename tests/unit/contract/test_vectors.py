"""The cases that were given with the contract answer as it says there."""

from typing import Any

import pytest

from gateway.contract import (
    is_gateway_address_prefix,
    is_gateway_client_dns_record_allowed,
    is_gateway_client_hostname,
    is_gateway_hostname_allowed,
    is_gateway_hostname_pattern,
    validate_gateway_client_dns_record,
    validate_gateway_client_hostname_ownership,
)
from tests.unit.contract.vectors import cases


@pytest.mark.parametrize(("value", "accepted"), cases("hostname"))
def test_hostname_answers_as_given(value: Any, accepted: bool) -> None:
    assert is_gateway_client_hostname(value) is accepted
    found = validate_gateway_client_hostname_ownership({"appId": "a", "hostname": value})
    assert len(found) == (0 if accepted else 1)
    assert all(violation.startswith("ownership.hostname ") for violation in found)


@pytest.mark.parametrize(("value", "accepted"), cases("appId"))
def test_app_id_answers_as_given(value: Any, accepted: bool) -> None:
    found = validate_gateway_client_hostname_ownership({"appId": value, "hostname": "a.example"})
    assert len(found) == (0 if accepted else 1)
    assert all(violation.startswith("ownership.appId ") for violation in found)


@pytest.mark.parametrize(
    ("record_type", "value", "accepted"),
    [("A", *case) for case in cases("ipv4")] + [("AAAA", *case) for case in cases("ipv6")],
)
def test_address_answers_as_given(record_type: str, value: Any, accepted: bool) -> None:
    found = validate_gateway_client_dns_record({"type": record_type, "value": value})
    assert len(found) == (0 if accepted else 1)
    assert all(violation.startswith("record.value ") for violation in found)


@pytest.mark.parametrize(("value", "accepted"), cases("prefix"))
def test_prefix_answers_as_given(value: Any, accepted: bool) -> None:
    assert is_gateway_address_prefix(value) is accepted


@pytest.mark.parametrize(("arguments", "allowed"), cases("allowed"))
def test_allowance_answers_as_given(arguments: list[Any], allowed: bool) -> None:
    record, allowance = arguments
    assert is_gateway_client_dns_record_allowed(record, allowance) is allowed


@pytest.mark.parametrize(("value", "accepted"), cases("pattern"))
def test_pattern_answers_as_given(value: Any, accepted: bool) -> None:
    assert is_gateway_hostname_pattern(value) is accepted


@pytest.mark.parametrize(("arguments", "matches"), cases("match"))
def test_match_answers_as_given(arguments: list[Any], matches: bool) -> None:
    pattern, hostname = arguments
    assert is_gateway_hostname_allowed(hostname, [pattern]) is matches
