"""A sync that is read without its model is the same; whatever else is left to the model."""

from typing import Any

from hypothesis import example, given, strategies as st

from gateway.contract import RequestInvalid, SyncDnsRecordRequest, read_request, sync_in
from tests.unit.contract.strategies import json_values

OWNERSHIP = {"appId": "relay", "hostname": "relay.example.com"}
RECORD = {"type": "A", "value": "198.51.100.85"}
ADDRESSES = ["198.51.100.85", "2001:db8::85", "198.51.100.085", "2001:DB8::85", "127.0.0.1", "::1"]

records = st.fixed_dictionaries(
    {"type": st.sampled_from(["A", "AAAA", "a"]), "value": st.sampled_from(ADDRESSES)},
    optional={
        "ttl": st.sampled_from([60, 86_400, 59, 300.0, 300.5, True, None, "300"]),
        "more": st.just(1),
    },
)


@given(
    st.fixed_dictionaries(
        {"ownership": st.sampled_from([OWNERSHIP, {**OWNERSHIP, "appId": "a b"}]) | json_values},
        optional={
            "record": records | json_values,
            "delete": st.booleans() | json_values,
            "more": st.just(1),
        },
    )
)
@example({"ownership": OWNERSHIP, "record": RECORD})
@example({"ownership": OWNERSHIP, "record": {**RECORD, "ttl": 60.0}})
@example({"ownership": OWNERSHIP, "delete": True})
@example({"ownership": OWNERSHIP, "record": RECORD, "delete": True})
@example({"ownership": OWNERSHIP, "record": {"type": ["A"], "value": {}}})
def test_it_is_what_the_model_reads(parameters: dict[str, Any]) -> None:
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
