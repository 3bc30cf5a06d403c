"""No value of any kind makes a public helper raise, and every message says where it looked."""

import json
from typing import Any

import pytest
from hypothesis import given

from gateway.contract import (
    EmptyRequest,
    GetCertificateRequest,
    ProvisionRequest,
    RequestInvalid,
    SyncDnsRecordRequest,
    WireModel,
    is_gateway_address_prefix,
    is_gateway_client_dns_record_allowed,
    is_gateway_client_hostname,
    is_gateway_hostname_allowed,
    is_gateway_hostname_pattern,
    read_request,
    validate_gateway_allowed_dns_record_addresses,
    validate_gateway_client_dns_record,
    validate_gateway_client_hostname_ownership,
)
from tests.unit.contract.strategies import Maker, makers, makers_of_values, ownerships, records

PREDICATES = [is_gateway_address_prefix, is_gateway_client_hostname, is_gateway_hostname_pattern]
VALIDATORS = [
    (validate_gateway_client_hostname_ownership, "ownership"),
    (validate_gateway_client_dns_record, "record"),
    (validate_gateway_allowed_dns_record_addresses, "allowedDnsRecordAddresses"),
]


@pytest.mark.parametrize("predicate", PREDICATES)
@given(make=makers_of_values)
def test_predicate_answers_with_bool_for_any_value(predicate: Any, make: Maker) -> None:
    assert type(predicate(make())) is bool


@pytest.mark.parametrize(
    "predicate", [is_gateway_client_dns_record_allowed, is_gateway_hostname_allowed]
)
@given(make_first=makers_of_values, make_second=makers_of_values)
def test_pair_predicate_answers_with_bool_for_any_values(
    predicate: Any, make_first: Maker, make_second: Maker
) -> None:
    assert type(predicate(make_first(), make_second())) is bool
    assert type(predicate("a.example", make_second())) is bool
    assert type(predicate({"type": "A", "value": "10.0.0.1"}, make_second())) is bool
    assert type(predicate(make_first(), ["10.0.0.0/8"])) is bool
    assert type(predicate(make_first(), ["*.a.example"])) is bool


@pytest.mark.parametrize(("validate", "path"), VALIDATORS)
@given(make=makers_of_values)
def test_validator_begins_every_violation_with_its_path(
    validate: Any, path: str, make: Maker
) -> None:
    for violation in validate(make()):
        assert violation.startswith((f"{path} ", f"{path}.", f"{path}["))
        assert violation.isascii()
        assert len(violation) < 1000
    assert all(violation.startswith("elsewhere") for violation in validate(make(), "elsewhere"))


@pytest.mark.parametrize("key", ["appId", "hostname", "type", "value", "ttl", "identity"])
@given(ownership=ownerships, record=records, make=makers)
def test_object_validator_takes_any_value_in_each_key(
    key: str, ownership: Any, record: Any, make: Maker
) -> None:
    for violation in validate_gateway_client_hostname_ownership({**ownership, key: make()}):
        assert violation.startswith(f"ownership.{key} ")
    for violation in validate_gateway_client_dns_record({**record, key: make()}):
        assert violation.startswith("record.")


@pytest.mark.parametrize(
    "model", [EmptyRequest, GetCertificateRequest, ProvisionRequest, SyncDnsRecordRequest]
)
@given(make=makers_of_values)
def test_request_is_read_or_refused_for_any_value(model: type[WireModel], make: Maker) -> None:
    try:
        request = read_request(model, make())
    except RequestInvalid as refusal:
        assert len(refusal.violations) > 0  # noqa: PT017
        json.dumps(refusal.data()).encode()
    else:
        assert type(request) is model
