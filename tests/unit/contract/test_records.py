from typing import Any

import pytest

from gateway.contract import DnsRecord, Ownership, validate_gateway_client_dns_record

VALID = {"type": "AAAA", "value": "2001:db8::1", "ttl": 60}


@pytest.mark.parametrize(
    ("changes", "violations"),
    [
        ({}, []),
        ({"ttl": 60.0}, []),
        ({"ttl": 86_400}, []),
        ({"ttl": 59}, ["record.ttl must be a whole number from 60 to 86400, not the number 59"]),
        ({"ttl": True}, ["record.ttl must be a whole number from 60 to 86400, not true"]),
        ({"ttl": None}, ["record.ttl must be a whole number from 60 to 86400, not null"]),
        ({"ttl": "60"}, ['record.ttl must be a whole number from 60 to 86400, not "60"']),
        (
            {"ttl": float("nan")},
            ["record.ttl must be a whole number from 60 to 86400, not the number nan"],
        ),
        (
            {"ttl": 10**5000},
            [
                "record.ttl must be a whole number from 60 to 86400, "
                "not a number of more than 20 digits"
            ],
        ),
        (
            {"type": "A"},
            ['record.value must be an IPv4 address to fit the type A, not "2001:db8::1"'],
        ),
        (
            {"type": "a", "value": "127.0.0.1", "ttl": 1, "proxied": False},
            [
                'record.type must be one of "A", "AAAA", not "a"',
                'record.value must be a unicast address, and "127.0.0.1" is a loopback address',
                "record.ttl must be a whole number from 60 to 86400, not the number 1",
                "record.proxied is not a key of this object",
            ],
        ),
        (
            {"identity": None},
            ["record.identity must be absent: it is the credential of another kind of caller"],
        ),
    ],
)
def test_every_violation_is_returned(changes: dict[str, Any], violations: list[str]) -> None:
    assert validate_gateway_client_dns_record({**VALID, **changes}) == violations


@pytest.mark.parametrize(
    ("value", "violations"),
    [
        ({}, ["r.type is missing", "r.value is missing"]),
        ([], ["r must be an object, not a list"]),
        ("x", ['r must be an object, not "x"']),
        (DnsRecord(type="A", value="10.0.0.1"), ["r must be an object, not a value that JSON"]),
    ],
)
def test_path_begins_every_violation(value: Any, violations: list[str]) -> None:
    found = validate_gateway_client_dns_record(value, "r")
    assert len(found) == len(violations)
    assert all(map(str.startswith, found, violations))


def test_keys_that_json_cannot_have_are_refused_like_unknown_ones() -> None:
    value: dict[Any, Any] = {**VALID, 1: 1, "\ud800": 2, "a key": 3, "x" * 70: 4, "gwc_abc": 5}
    assert validate_gateway_client_dns_record(value) == [
        'record["(the number 1)"] is not a key of this object',
        'record["\\\\ud800"] is not a key of this object',
        'record["a key"] is not a key of this object',
        f'record["{"x" * 64}"...] is not a key of this object',
        'record["gwc_(hidden)"] is not a key of this object',
    ]


def test_model_of_a_record_holds_whole_seconds_and_the_default() -> None:
    parsed, _ = DnsRecord.from_wire({"type": "A", "value": "10.0.0.1", "ttl": 300.0})
    assert parsed == DnsRecord(type="A", value="10.0.0.1")
    assert parsed is not None
    assert (parsed.ttl, type(parsed.ttl)) == (300, int)


def test_python_names_are_unknown_on_the_wire() -> None:
    assert Ownership(app_id="a", hostname="a.example").to_wire() == {  # type: ignore[arg-type]
        "appId": "a",
        "hostname": "a.example",
    }
    _, faults = Ownership.from_wire({"app_id": "a", "hostname": "a.example"})
    assert list(map(str, faults)) == ["appId is missing", "app_id is not a key of this object"]
