"""What orders and authorizations of all kinds of CAs say."""

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, strategies as st

from gateway.certificates.authority.faults import Operation
from gateway.certificates.authority.reading import (
    MAX_HOSTNAMES,
    new_location,
    read_account,
    read_authorization,
    read_order,
)
from gateway.certificates.authority.replies import Reply
from gateway.certificates.authority.signing import load_signer
from gateway.certificates.keys import KeyType, new_private_key
from gateway.certificates.orders import (
    AccountView,
    AuthorityFault,
    AuthorizationView,
    FaultKind,
    OrderView,
)
from tests.unit.certificates.issuing import NOW
from tests.unit.certificates.properties import untimed

CA = "https://ca.example.test"
SIGNER = load_signer(new_private_key(KeyType.ECDSA_P256), f"{CA}/account/1")
TOKEN = "evaGxfADs6pSRb2LAv9IZf17Dt3juxGJ-PCt92wr-oA"

ORDER: dict[str, Any] = {
    "status": "pending",
    "expires": "2026-12-06T12:00:00Z",
    "identifiers": [{"type": "dns", "value": "relay.example.test"}],
    "authorizations": [f"{CA}/authz/1"],
    "finalize": f"{CA}/finalize/1",
}
AUTHORIZATION: dict[str, Any] = {
    "status": "pending",
    "identifier": {"type": "dns", "value": "relay.example.test"},
    "challenges": [
        {"type": "http-01", "url": f"{CA}/chall/0", "status": "pending", "token": TOKEN},
        {"type": "dns-account-01", "url": f"{CA}/chall/1", "status": "pending"},
        {"type": "dns-01", "url": f"{CA}/chall/2", "status": "pending", "token": TOKEN},
    ],
}


def order(body: object, **headers: str) -> OrderView:
    reply = Reply(
        200, {name.replace("_", "-"): text for name, text in headers.items()}, body_bytes(body)
    )
    return read_order(Operation.READ_ORDER, reply, f"{CA}/order/1", NOW)


def authorization(body: object, **headers: str) -> AuthorizationView:
    reply = Reply(
        200, {name.replace("_", "-"): text for name, text in headers.items()}, body_bytes(body)
    )
    return read_authorization(reply, f"{CA}/authz/1", SIGNER, NOW)


def body_bytes(body: object) -> bytes:
    return body if isinstance(body, bytes) else json.dumps(body).encode()


def test_order_is_read() -> None:
    view = order(ORDER)
    assert view == OrderView(
        url=f"{CA}/order/1",
        status="pending",
        authorization_urls=(f"{CA}/authz/1",),
        finalize_url=f"{CA}/finalize/1",
        certificate_url=None,
        problem=None,
        retry_after_seconds=None,
        hostnames=("relay.example.test",),
    )


def test_names_of_an_order_are_few_and_fit_for_a_log() -> None:
    names = ["Relay.example.test", "bad\r\n\u202ename", "x" * 300_000, *["more"] * 10_000]
    identifiers = [{"type": "dns", "value": name} for name in names]
    told = order({**ORDER, "identifiers": identifiers}).hostnames
    assert told[:2] == ("relay.example.test", "bad name")
    assert len(told) == MAX_HOSTNAMES
    assert {len(name) for name in told[2:]} == {253, 4}


def test_name_of_an_authorization_is_fit_for_a_log() -> None:
    identifier = {"type": "dns", "value": "Bad\x00name." + "x" * 300_000}
    told = authorization({**AUTHORIZATION, "identifier": identifier}).hostname
    assert told.startswith("bad name.x")
    assert len(told) == 253


@pytest.mark.parametrize("status", ["deactivated", "expired", "revoked"])
def test_order_that_ended_in_another_way_is_invalid(status: str) -> None:
    assert order({**ORDER, "status": status}).status == "invalid"


def test_order_says_where_its_certificate_is() -> None:
    assert order({**ORDER, "status": "valid", "certificate": f"{CA}/cert/1"}).certificate_url == (
        f"{CA}/cert/1"
    )


def test_order_says_why_it_failed_also_with_an_unknown_kind_of_identifier() -> None:
    error = {
        "type": "urn:ietf:params:acme:error:caa",
        "detail": "CAA forbids it",
        "identifier": {"type": "permanent-identifier", "value": "x"},
    }
    assert order({**ORDER, "status": "invalid", "error": error}).problem == "caa: CAA forbids it"


def test_order_says_when_to_look_again() -> None:
    assert order({**ORDER, "status": "processing"}, retry_after="7").retry_after_seconds == 7


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>",
        b"[]",
        json.dumps(ORDER).encode()[:-5],
        {**ORDER, "status": "dreaming"},
        {**ORDER, "status": None},
        {**ORDER, "status": ["pending"]},
        {**ORDER, "finalize": None},
        {**ORDER, "finalize": 5},
        {**ORDER, "finalize": "file:///etc/passwd"},
        {**ORDER, "finalize": f"{CA}/a b"},
        {**ORDER, "finalize": f"{CA}/\r\nHost: x"},
        {**ORDER, "finalize": f"{CA}/" + "x" * 3000},
        {**ORDER, "authorizations": [None]},
        {**ORDER, "certificate": "relative"},
        {key: value for key, value in ORDER.items() if key != "finalize"},
    ],
)
def test_order_that_makes_no_sense_is_the_fault_of_the_server(body: object) -> None:
    with pytest.raises(AuthorityFault) as caught:
        order(body)
    assert caught.value.kind is FaultKind.SERVER_ERROR


def test_authorization_is_read_with_its_dns_challenge() -> None:
    view = authorization(AUTHORIZATION, retry_after="3")
    assert view == AuthorizationView(
        url=f"{CA}/authz/1",
        hostname="relay.example.test",
        status="pending",
        challenge_url=f"{CA}/chall/2",
        txt_value=SIGNER.txt_value(TOKEN),
        problem=None,
        retry_after_seconds=3,
        key_thumbprint=SIGNER.thumbprint,
        is_refused=False,
    )


def _without_challenges(body: dict[str, object]) -> None:
    body.pop("challenges")


def _without_dns(body: dict[str, object]) -> None:
    body["challenges"] = AUTHORIZATION["challenges"][:2]


def _with(**changes: object) -> Callable[[dict[str, object]], None]:
    def change(body: dict[str, object]) -> None:
        body["challenges"] = [{**AUTHORIZATION["challenges"][2], **changes}]

    return change


UNUSABLE = {
    "no challenges": _without_challenges,
    "no dns-01": _without_dns,
    "no token": _with(token=None),
    "a token that is no text": _with(token=["x"]),
    "a short token": _with(token="abc"),
    "a token with foreign characters": _with(token=TOKEN + "/.."),
    "entries that are no objects": lambda body: body.update(challenges=[None, "dns-01", 5]),
}


@pytest.mark.parametrize("change", UNUSABLE.values(), ids=UNUSABLE)
def test_authorization_has_no_challenge_when_none_is_usable(
    change: Callable[[dict[str, object]], None],
) -> None:
    body = copy.deepcopy(AUTHORIZATION)
    change(body)
    view = authorization(body)
    assert (view.challenge_url, view.txt_value) == (None, None)
    assert view.status == "pending"


def test_authorization_says_why_its_challenge_failed() -> None:
    body = copy.deepcopy(AUTHORIZATION)
    body["status"] = "invalid"
    body["challenges"][2]["status"] = "invalid"
    body["challenges"][2]["error"] = {
        "type": "urn:ietf:params:acme:error:unauthorized",
        "detail": "No TXT\nrecord",
    }
    view = authorization(body)
    assert view.status == "invalid"
    assert view.problem == "unauthorized: No TXT record"


@pytest.mark.parametrize("status", ["valid", "deactivated", "expired", "revoked"])
def test_authorization_may_have_any_status_of_the_protocol(status: str) -> None:
    assert authorization({**AUTHORIZATION, "status": status}).status == status


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        {**AUTHORIZATION, "status": "unheard-of"},
        {**AUTHORIZATION, "identifier": None},
        {**AUTHORIZATION, "identifier": {"type": "dns"}},
        {**AUTHORIZATION, "challenges": [{"type": "dns-01", "token": TOKEN}]},
    ],
)
def test_authorization_that_makes_no_sense_is_the_fault_of_the_server(body: object) -> None:
    with pytest.raises(AuthorityFault) as caught:
        authorization(body)
    assert caught.value.kind is FaultKind.SERVER_ERROR


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.just(TOKEN),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=5,
)


def fault_kind(read: Callable[[], object]) -> FaultKind | None:
    try:
        read()
    except AuthorityFault as fault:
        return fault.kind
    return None


@untimed
@given(st.sampled_from(sorted({*ORDER, "error", "certificate"})), VALUES)
def test_order_with_any_value_in_any_place_is_read_or_refused(key: str, value: object) -> None:
    assert fault_kind(lambda: order({**ORDER, key: value})) in (None, FaultKind.SERVER_ERROR)


@untimed
@given(st.sampled_from(["type", "url", "status", "token", "error"]), VALUES)
def test_challenge_with_any_value_in_any_place_is_read_or_refused(key: str, value: object) -> None:
    body = copy.deepcopy(AUTHORIZATION)
    body["challenges"][2][key] = value
    assert fault_kind(lambda: authorization(body)) in (None, FaultKind.SERVER_ERROR)


def test_location_is_answered() -> None:
    assert new_location(Operation.NEW_ORDER, Reply(201, {"location": CA}, b"")) == CA


@pytest.mark.parametrize("headers", [{}, {"location": ""}, {"location": "/order/1"}])
def test_location_that_is_missing_is_the_fault_of_the_server(headers: dict[str, str]) -> None:
    with pytest.raises(AuthorityFault) as caught:
        new_location(Operation.NEW_ORDER, Reply(201, headers, b""))
    assert caught.value.kind is FaultKind.SERVER_ERROR


def test_order_lists_its_hostnames_in_lower_case_and_no_other_identifiers() -> None:
    identifiers = [
        {"type": "dns", "value": "Relay.Example.Test"},
        {"type": "ip", "value": "192.0.2.1"},
        {"type": "dns", "value": 5},
        {"type": "dns"},
        "dns",
        {"type": "dns", "value": "other.example.test"},
    ]
    view = order({**ORDER, "identifiers": identifiers})
    assert view.hostnames == ("relay.example.test", "other.example.test")
    assert order({**ORDER, "identifiers": None}).hostnames == ()


def test_authorization_does_not_quote_what_the_challenge_is_proved_with() -> None:
    body = copy.deepcopy(AUTHORIZATION)
    plain = "abcdefghijklmnopqrstuvwx"
    body["challenges"][0]["token"] = plain
    secrets = [
        plain,
        TOKEN,
        SIGNER.thumbprint,
        f"{TOKEN}.{SIGNER.thumbprint}",
        SIGNER.txt_value(TOKEN),
        SIGNER.txt_value(plain),
    ]
    body["challenges"][2]["error"] = {
        "type": "urn:ietf:params:acme:error:incorrectResponse",
        "detail": f"Expected {', '.join(secrets)} at _acme-challenge.relay.example.test",
    }
    problem = authorization(body).problem
    assert problem is not None
    assert problem.startswith("incorrectResponse: Expected [hidden], [hidden], [hidden], ")
    assert problem.endswith(" at _acme-challenge.relay.example.test")
    assert not [secret for secret in secrets if secret in problem]


def account(body: object) -> AccountView:
    return read_account(Operation.READ_ACCOUNT, Reply(200, {}, body_bytes(body)), SIGNER)


def test_account_is_read() -> None:
    contact = ["mailto:ops@example.test", 5, "mailto:two@example.test\n"]
    assert account({"status": "valid", "contact": contact, "orders": f"{CA}/orders"}) == (
        AccountView(
            url=f"{CA}/account/1",
            key_type="ecdsa-p256",
            key_thumbprint=SIGNER.thumbprint,
            status="valid",
            contact=("mailto:ops@example.test", "mailto:two@example.test"),
            orders_url=f"{CA}/orders",
        )
    )
    assert account({"status": "revoked"}).contact == ()
    assert account({"status": "deactivated", "orders": "/x"}).orders_url is None


@pytest.mark.parametrize("body", [b"", {}, {"status": "pending"}])
def test_account_that_makes_no_sense_is_the_fault_of_the_server(body: object) -> None:
    with pytest.raises(AuthorityFault) as caught:
        account(body)
    assert caught.value.kind is FaultKind.SERVER_ERROR
