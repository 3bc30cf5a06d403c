"""A sync that is read without its model is the same; whatever else is left to the model."""

from typing import Any

import pytest
from hypothesis import given, strategies as st

from gateway.contract import RequestInvalid, SyncDnsRecordRequest, read_request, sync_in
from tests.unit.contract.strategies import json_values

OWNERSHIP = {"appId": "relay", "hostname": "relay.example.com"}
RECORD = {"type": "A", "value": "198.51.100.85", "ttl": 300}
WITHDRAWAL = {"ownership": OWNERSHIP, "delete": True}
ODD_ADDRESSES: list[object] = ["198.51.100.085", "127.0.0.1", "", None, {}]


def assert_as_the_model_reads(parameters: dict[str, Any]) -> None:
    quick = sync_in(parameters)
    try:
        read = read_request(SyncDnsRecordRequest, parameters)
    except RequestInvalid:
        assert quick is None
        return
    assert quick is not None
    assert tuple(quick.ownership) == (read.ownership.app_id, read.ownership.hostname)
    assert quick.record == read.record
    assert read.delete is (quick.record is None)
    if read.record is not None and quick.record is not None:
        assert quick.record.to_wire() == read.record.to_wire()
        assert type(quick.record.ttl) is int


@pytest.mark.parametrize(
    "record",
    [
        RECORD,
        {"type": "A", "value": "198.51.100.85"},
        {"type": "AAAA", "value": "2001:db8::85", "ttl": 60},
        *({**RECORD, "ttl": ttl} for ttl in (60.0, 86_400, 59, 300.5, True, None, "300", [300])),
        *({**RECORD, "type": type_} for type_ in ("AAAA", "a", "TXT", None, ["A"])),
        *({**RECORD, "value": value} for value in ODD_ADDRESSES),
        {**RECORD, "more": 1},
        {"type": "A", "ttl": 300},
        {"value": "198.51.100.85", "ttl": 300},
        {},
        None,
        [],
    ],
    ids=str,
)
def test_record_is_what_the_model_reads(record: object) -> None:
    assert_as_the_model_reads({"ownership": OWNERSHIP, "record": record})


@pytest.mark.parametrize(
    "parameters",
    [
        WITHDRAWAL,
        {**WITHDRAWAL, "delete": False},
        {**WITHDRAWAL, "delete": 1},
        {**WITHDRAWAL, "record": RECORD},
        {**WITHDRAWAL, "record": None},
        {**WITHDRAWAL, "more": 1},
        {"ownership": OWNERSHIP},
        {"ownership": OWNERSHIP, "record": RECORD, "delete": False},
        {"ownership": OWNERSHIP, "record": RECORD, "more": 1},
        {"ownership": {**OWNERSHIP, "more": 1}, "record": RECORD},
        {"ownership": {**OWNERSHIP, "hostname": "Relay.example.com"}, "record": RECORD},
        {"ownership": None, "delete": True},
        {"record": RECORD},
        {},
    ],
    ids=str,
)
def test_request_is_what_the_model_reads(parameters: dict[str, Any]) -> None:
    assert_as_the_model_reads(parameters)


@given(
    st.fixed_dictionaries(
        {"ownership": st.just(OWNERSHIP) | json_values},
        optional={"record": st.just(RECORD) | json_values, "delete": st.booleans() | json_values},
    )
)
def test_whatever_json_is_sent_is_what_the_model_reads(parameters: dict[str, Any]) -> None:
    assert_as_the_model_reads(parameters)
