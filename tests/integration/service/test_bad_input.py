"""Bad input over HTTP: everything is answered as the contract says, and nothing is written."""

import copy
import json
import socket
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import redis

from tests.integration.dns.hand import Hand
from tests.integration.service.calling import (
    CONTEXT,
    GET,
    NO_TLS,
    PROVISION,
    RELEASE,
    SYNC,
    Ownership,
    World,
    envelope,
    spec,
)
from tests.lab.lab import Lab

JSON = {"Content-Type": "application/json"}
RECORD = {"type": "A", "value": "198.51.100.5"}
ZONES = ("example.test", "example.net.test")
STATE = ("gw:{h*}:*", "gw:{c*}:client", "gw:{c*}:holdings", "gw:cl*")
"""What calls may change. Limits and the audit trail count refused ones too."""


@pytest.fixture(autouse=True)
def nothing_written(service_lab: Lab, hand: Hand, mine: Ownership) -> Iterator[None]:
    """After each test the gateway answers as before, and neither Redis nor a zone has changed."""
    with redis.Redis.from_url(service_lab.redis.url) as connection:
        keys, serials = stored_keys(connection), [hand.serial(zone) for zone in ZONES]
        yield
        assert mine.caller.call(CONTEXT)
        assert stored_keys(connection) == keys
        assert [hand.serial(zone) for zone in ZONES] == serials


def stored_keys(connection: redis.Redis) -> set[bytes]:
    return {key for pattern in STATE for key in connection.scan_iter(match=pattern)}


def post(url: str, body: bytes, headers: dict[str, str] | None = None) -> httpx.Response:
    return httpx.post(
        url, content=body, headers=headers or JSON, trust_env=False, timeout=15, verify=NO_TLS
    )


def assert_envelope_invalid(answer: httpx.Response, status: int) -> None:
    assert answer.status_code == status
    assert answer.headers["cache-control"] == "no-store"
    body = answer.json()
    assert body["response"] is None
    assert body["error"]["data"]["code"] == "envelope-invalid"
    assert body["error"]["text"]


def nested(depth: int) -> bytes:
    """An envelope whose deepest value lies `depth` levels deep."""
    inner = depth - 2
    return b'{"method":"m","request":{"a":' + b"[" * inner + b"]" * inner + b"}}"


BROKEN = [
    b"",
    b"{",
    b'{"method":"m"',
    b"nonsense",
    b"[]",
    b'"text"',
    b"null",
    b"{}",
    b'{"method":null}',
    b'{"method":5}',
    b'{"request":{}}',
    b'{"method":"m","method":"m"}',
    b'{"method":"m","request":{"a":1,"a":1}}',
    b'{"method":"m","request":{"a":[{"b":1,"b":2}]}}',
    b'{"method":"m","request":{"a":NaN}}',
    b'{"method":"m","request":{"a":Infinity}}',
    b'{"method":"m","request":{"a":"\\ud800"}}',
    b'{"method":"m","request":{"\\udfff":1}}',
    b'{"method":"m","request":[]}',
    b'{"method":"m","request":"text"}',
    b'{"method":"m","correlation":5}',
    b'{"method":"m","correlation":{"id":5}}',
    b'{"method":"m"}x',
    b"\xff\xfe{}",
    '{"method":"m"}'.encode("utf-16"),
    b"[" * 60_000,
    nested(33),
]


@pytest.mark.parametrize("body", BROKEN, ids=lambda body: repr(body[:40]))
def test_broken_envelope_is_refused(world: World, body: bytes) -> None:
    assert_envelope_invalid(post(world.url, body), 400)


def test_envelope_nested_as_deep_as_allowed_is_read(world: World) -> None:
    assert post(world.url, nested(32)).json()["error"]["data"]["code"] == "method-unknown"


def test_body_of_exactly_64_kib_is_read_and_one_byte_more_is_not(world: World) -> None:
    start = b'{"method":"m","request":{"a":"'
    end = b'"}}'
    whole = start + b"x" * (65536 - len(start) - len(end)) + end
    assert post(world.url, whole).json()["error"]["data"]["code"] == "method-unknown"
    assert_envelope_invalid(post(world.url, whole + b" "), 413)


def test_chunked_body_over_64_kib_is_refused(world: World) -> None:
    chunks = iter([b'{"method":"m"}', b" " * 40_000, b" " * 40_000])
    answer = httpx.post(
        world.url, content=chunks, headers=JSON, trust_env=False, timeout=15, verify=NO_TLS
    )
    assert_envelope_invalid(answer, 413)


@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_other_http_methods_are_refused(world: World, method: str) -> None:
    answer = httpx.request(method, world.url, trust_env=False, timeout=15, verify=NO_TLS)
    assert_envelope_invalid(answer, 405)


@pytest.mark.parametrize("content_type", ["text/plain", "", "application/xml", "application/jsonx"])
def test_other_content_types_are_refused(world: World, content_type: str) -> None:
    body = json.dumps(envelope(CONTEXT, {})).encode()
    assert_envelope_invalid(post(world.url, body, {"Content-Type": content_type}), 415)


@pytest.mark.parametrize("suffix", ["?cb=1", "?apiToken=x&method=y"])
def test_query_string_is_ignored(mine: Ownership, suffix: str) -> None:
    body = json.dumps(envelope(CONTEXT, {"apiToken": mine.caller.token})).encode()
    charset = {"Content-Type": "application/json; charset=utf-8"}
    assert post(mine.caller.url + suffix, body, charset).json()["response"]["context"]


def test_unknown_envelope_keys_are_ignored_and_never_echoed(mine: Ownership) -> None:
    body = envelope(CONTEXT, {"apiToken": mine.caller.token})
    body |= {"authInfo": 1, "localData": {"a": 1}, "serverData": [], "error": {}, "retry": {}}
    answer = mine.caller.post(body).json()
    assert set(answer) == {"method", "request", "response", "correlation"}
    assert answer["request"] is None
    assert answer["correlation"] == {"id": "1", "phase": "response"}


def test_absent_request_and_correlation_are_empty(world: World) -> None:
    for request in ({}, {"request": None}):
        answer = httpx.post(
            world.url,
            json={"method": CONTEXT, **request},
            trust_env=False,
            timeout=15,
            verify=NO_TLS,
        ).json()
        assert answer["correlation"] is None
        assert answer["error"]["data"] == {"code": "unauthorized"}


def test_virtual_stream_message_is_an_unknown_method(world: World) -> None:
    body = {"method": "##VirtualStream##", "request": {"streamId": "x"}}
    answer = httpx.post(world.url, json=body, trust_env=False, timeout=15, verify=NO_TLS).json()
    assert answer["error"]["data"]["code"] == "method-unknown"


def test_truncated_http_request_does_not_end_the_gateway(service_lab: Lab) -> None:
    address = ("127.0.0.1", service_lab.config.port)
    for wire in (
        b"GARBAGE\r\n\r\n",
        b"POST /typedrequest HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
        b"Content-Length: 100\r\n\r\n{",
        b"POST /typedrequest HTTP/1.1\r\nHost: a\r\nContent-Length: -5\r\n\r\n",
    ):
        with socket.create_connection(address, timeout=15) as connection:
            connection.sendall(wire)
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(4096):
                pass


def test_one_connection_carries_many_calls(mine: Ownership) -> None:
    with httpx.Client(trust_env=False, timeout=15, verify=NO_TLS) as client:
        body = envelope(CONTEXT, {"apiToken": mine.caller.token})
        for _ in range(5):
            answer = client.post(mine.caller.url, json=body)
            assert answer.json()["response"]["context"]
            assert answer.headers.get("connection", "keep-alive") == "keep-alive"


WRONG: list[object] = [None, True, 0, 1.5, "", "x", [], {}, [[]], {"a": 1}, "\u0000", -1, 10**400]


def requests_of(mine: Ownership) -> list[tuple[str, dict[str, Any]]]:
    return [
        (SYNC, {"ownership": mine.wire, "record": RECORD}),
        (SYNC, {"ownership": mine.wire, "delete": True}),
        (GET, {"ownership": mine.wire}),
        (RELEASE, {"ownership": mine.wire}),
    ]


def places(value: object, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The path of every field in an object."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield (*path, name)
            yield from places(inner, (*path, name))


def with_value(request: dict[str, Any], path: tuple[str, ...], value: object) -> dict[str, Any]:
    changed = copy.deepcopy(request)
    inner = changed
    for name in path[:-1]:
        inner = inner[name]
    inner[path[-1]] = value
    return changed


def test_wrong_type_in_any_field_is_a_violation_of_that_field(mine: Ownership) -> None:
    for method, request in requests_of(mine):
        for path in places(request):
            for value in WRONG:
                if (path, value) == (("ownership", "appId"), "x") or value is True is request.get(
                    path[0]
                ):
                    continue
                refusal = mine.caller.refused(method, **with_value(request, path, value))
                assert refusal["code"] == "request-invalid", (path, value, refusal)
                named = [each for each in refusal["violations"] if each.startswith(".".join(path))]
                assert named, (path, value, refusal)


def test_unknown_and_missing_keys_are_violations(mine: Ownership) -> None:
    for method, request in requests_of(mine):
        for path in [
            (),
            *(path for path in places(request) if path[-1] in {"ownership", "record"}),
        ]:
            extra = with_value(request, (*path, "surprise"), 1)
            assert mine.caller.refused(method, **extra)["code"] == "request-invalid"
        for path in places(request):
            missing = copy.deepcopy(request)
            inner = missing
            for name in path[:-1]:
                inner = inner[name]
            del inner[path[-1]]
            assert mine.caller.refused(method, **missing)["code"] == "request-invalid"


def test_identity_must_be_absent(mine: Ownership) -> None:
    for method, request in requests_of(mine):
        refusal = mine.caller.refused(method, **request, identity={"jwt": "x"})
        assert refusal["code"] == "request-invalid"
        assert refusal["violations"][0].startswith("identity")


def test_both_and_neither_of_record_and_delete_are_refused(mine: Ownership) -> None:
    for request in ({"record": RECORD, "delete": True}, {}, {"delete": False}, {"record": None}):
        refusal = mine.caller.refused(SYNC, ownership=mine.wire, **request)
        assert refusal["code"] == "request-invalid"


def test_every_violation_is_told_at_once(mine: Ownership) -> None:
    record = {"type": "CNAME", "value": "nonsense", "ttl": 5}
    ownership = {"appId": "", "hostname": "UPPER.example.test"}
    refusal = mine.caller.refused(SYNC, ownership=ownership, record=record, surprise=1)
    paths = {violation.split(" ", maxsplit=1)[0] for violation in refusal["violations"]}
    expected = {"ownership.appId", "ownership.hostname", "record.type", "record.value"}
    assert expected | {"record.ttl", "surprise"} <= paths


def test_provisioning_request_is_judged_as_strictly(world: World) -> None:
    good = {"action": "ensure", "spec": spec("never-made", "a.example.test")}
    for path in places(good):
        for value in WRONG:
            if path[-1] == "clientType" and value == "x":
                continue
            if path[-1] == "clientId" and value == "x":
                continue
            if value == [] and isinstance(good["spec"], dict) and path[-1] in good["spec"]:
                continue
            if value == {} and path[-1] == "capabilities":
                continue
            refusal = world.admin.refused(PROVISION, **with_value(good, path, value))
            assert refusal["code"] == "request-invalid", (path, value)
