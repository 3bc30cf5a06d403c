"""How answers are read: into models, into the exception of each code, or refused with a reason."""

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from gateway.contract import (
    AdminContext,
    AnswerInvalid,
    CallError,
    CapabilitiesResponse,
    CertificatePending,
    CertificateReady,
    CertificateRefused,
    ContextResponse,
    EnvelopeInvalid,
    Forbidden,
    GetCertificateResponse,
    HostnameForbidden,
    Internal,
    MethodUnknown,
    Overloaded,
    ProvisionResponse,
    ReleaseResponse,
    RequestInvalid,
    SyncDnsRecordResponse,
    Unauthorized,
    Unavailable,
    UnknownFailure,
    WireModel,
    parse_answer,
    parse_request,
    read_answer,
    read_certificate_answer,
    render_request,
    render_response,
)

METHOD, CALL_ID = "getGatewayCapabilities", "7a1c"
CERTIFICATE = {
    "hostname": "a.example.test",
    "chainPem": "-----BEGIN CERTIFICATE-----",
    "privateKeyPem": "-----BEGIN PRIVATE KEY-----",
    "validFrom": 0,
    "validUntil": 2,
    "renewAfter": 1,
}
CLIENT = {
    "clientId": "cluster-a",
    "clientType": "relay",
    "policyGeneration": 1,
    "hostnamePatterns": ["a.example.test"],
    "allowedDnsRecordAddresses": ["198.51.100.0/24"],
    "capabilities": ["syncDnsRecords"],
}
GOOD: list[tuple[type[WireModel], dict[str, Any]]] = [
    (
        CapabilitiesResponse,
        {
            "capabilities": {
                "dns": {"clientRecords": True},
                "certificates": {"exactIssuance": False},
            }
        },
    ),
    (ContextResponse, {"context": {**CLIENT, "role": "gatewayClient", "credentialId": "c7f3"}}),
    (ContextResponse, {"context": {"role": "admin"}}),
    (
        SyncDnsRecordResponse,
        {
            "status": "record-conflict",
            "hostname": "a.example.test",
            "record": {"type": "A", "value": "198.51.100.5", "ttl": 60},
            "conflictingRecords": [
                {"name": "a.example.test", "type": "TXT", "value": '"x"', "ttl": 0}
            ],
            "retryAfterMs": 5,
            "message": "Something else holds the hostname.",
        },
    ),
    (
        ProvisionResponse,
        {
            "client": CLIENT,
            "credential": {"credentialId": "c7f3", "createdAt": 1, "expiresAt": None},
            "apiToken": "gwc_c7f3_kJ0xExample",
        },
    ),
    (ReleaseResponse, {"status": "released"}),
    (CertificateReady, {"status": "ready", "certificate": CERTIFICATE}),
    (CertificatePending, {"status": "pending", "retryAfterMs": 5}),
    (
        CertificateRefused,
        {
            "status": "refused",
            "reason": "rate-limited",
            "message": "Later.",
            "retryAfterMs": None,
        },
    ),
]
MODELS = sorted({model for model, _ in GOOD}, key=lambda model: model.__name__)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(min_value=10**300, max_value=10**310)
    | st.floats(allow_nan=False)
    | st.text(st.characters(codec="utf-8"), max_size=20)
    | st.sampled_from(["ready", "pending", "refused", "admin", "gatewayClient", "unavailable"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                [
                    *("method", "response", "correlation", "id", "error", "text", "data", "code"),
                    *("status", "certificate", "context", "role", "retryAfterMs", "client"),
                    *("capabilities", "dns", "record", "hostname", "violations", "message"),
                ]
            )
            | st.text(st.characters(codec="utf-8"), max_size=8),
            inner,
            max_size=6,
        )
    ),
    max_leaves=25,
)


def answer(**changes: object) -> bytes:
    envelope: dict[str, object] = {
        "method": METHOD,
        "request": None,
        "response": {"status": "released"},
        "correlation": {"id": CALL_ID, "phase": "response"},
    }
    return json.dumps(envelope | changes).encode()


def parsed(body: bytes) -> object:
    return parse_answer(body, METHOD, CALL_ID)


def failed(**data: object) -> CallError:
    with pytest.raises(CallError) as raised:
        parsed(answer(response=None, error={"text": "Its own words.", "data": data}))
    return raised.value


def test_request_is_read_by_the_gateway_as_it_was_written() -> None:
    body = render_request(METHOD, CALL_ID, {"a": "ü \ud83d\ude00"}, "gwc_token")
    envelope = parse_request(body)
    assert (envelope.method, envelope.correlation_id) == (METHOD, CALL_ID)
    assert envelope.request == {"apiToken": "gwc_token", "a": "ü 😀"}


def test_answer_gives_its_response() -> None:
    assert parsed(answer()) == {"status": "released"}


def test_key_of_a_newer_gateway_is_ignored_in_the_envelope() -> None:
    assert parsed(answer(served="by a newer one", error=None)) == {"status": "released"}


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "not JSON"),
        (b"<html>", "not JSON"),
        (b"\xff\xfe", "not UTF-8"),
        (b'{"method": 1, "method": 1}', '"method" twice'),
        (b"[" * 100_000, "nested deeper than 32"),
        (b'{"response": NaN}', "NaN"),
        (b'{"response": "\\ud800"}', "half of a surrogate pair"),
        (b"null", "must be an object, not null"),
        (b"[]", "must be an object, not a list"),
        (answer(method="getGatewayClientContext"), 'to the method "getGatewayClientContext"'),
        (answer(method=None), "to the method null"),
        (answer(correlation=None), "to another call"),
        (answer(correlation="7a1c"), "to another call"),
        (answer(correlation={"id": "other", "phase": "response"}), "to another call"),
        (answer(error="failed"), 'error must be an object, not "failed"'),
        (answer(error={}), "must have a text and data with a code"),
        (answer(error={"text": "No.", "data": []}), "must have a text and data with a code"),
        (answer(error={"text": "No.", "data": {}}), "must have a text and data with a code"),
        (answer(error={"text": 5, "data": {"code": "internal"}}), "must have a text"),
    ],
)
def test_what_is_no_answer_to_this_call_is_refused_with_the_reason(
    body: bytes, reason: str
) -> None:
    with pytest.raises(AnswerInvalid, match=reason):
        parsed(body)


@pytest.mark.parametrize(
    ("error", "data"),
    [
        (EnvelopeInvalid(""), {}),
        (MethodUnknown(), {}),
        (Unauthorized(), {}),
        (Forbidden("readCertificates", ""), {"capability": "readCertificates"}),
        (Forbidden(None, ""), {"capability": None}),
        (RequestInvalid(["a is missing", "b is missing"]), {}),
        (HostnameForbidden("a.example.test"), {}),
        (Overloaded(7), {"retryAfterMs": 7}),
        (Unavailable(7), {"retryAfterMs": 7}),
        (Internal("4711"), {"incidentId": "4711"}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_error_comes_back_as_the_exception_that_the_gateway_raised(
    error: CallError, data: dict[str, object]
) -> None:
    with pytest.raises(CallError) as raised:
        parsed(render_response(METHOD, CALL_ID, None, error))
    assert type(raised.value) is type(error)
    assert (raised.value.text, str(raised.value)) == (error.text, error.text)
    assert raised.value.data() == error.data()
    assert data.items() <= raised.value.data().items()


def test_error_about_the_envelope_needs_no_method_and_no_call() -> None:
    with pytest.raises(EnvelopeInvalid, match="not JSON"):
        parsed(render_response(None, None, None, EnvelopeInvalid("The body is not JSON.")))


def test_texts_of_errors_are_the_gateways_own() -> None:
    assert str(failed(code="unauthorized")) == "Its own words."


def test_code_of_a_newer_gateway_is_a_failure_with_that_code() -> None:
    error = failed(code="moon-phase")
    assert type(error) is UnknownFailure
    assert (error.code, error.text, error.data()) == (
        "moon-phase",
        "Its own words.",
        {"code": "moon-phase"},
    )


def test_error_without_an_incident_is_told_all_the_same() -> None:
    error = failed(code="internal")
    assert isinstance(error, Internal)
    assert error.incident_id == "unknown"


def test_error_without_a_violation_is_told_all_the_same() -> None:
    error = failed(code="request-invalid", violations=[])
    assert isinstance(error, RequestInvalid)
    assert error.violations == ("(none was named)",)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ({"code": "unavailable"}, "retryAfterMs must not be null"),
        ({"code": "overloaded", "retryAfterMs": -1}, "must not be the number -1"),
        ({"code": "overloaded", "retryAfterMs": True}, "must not be true"),
        ({"code": "overloaded", "retryAfterMs": 10**300}, "more than 20 digits"),
        ({"code": "request-invalid"}, "violations, a list of texts"),
        ({"code": "request-invalid", "violations": [1]}, "violations, a list of texts"),
        ({"code": "forbidden", "capability": 1}, '"capability" as the number 1'),
        ({"code": "internal", "incidentId": []}, '"incidentId" as a list'),
    ],
)
def test_error_with_wrong_data_is_refused_with_the_reason(
    data: dict[str, object], reason: str
) -> None:
    with pytest.raises(AnswerInvalid, match=reason):
        parsed(answer(error={"text": "No.", "data": data}))


@pytest.mark.parametrize(("model", "wire"), GOOD)
def test_response_is_read_into_its_model(model: type[WireModel], wire: dict[str, Any]) -> None:
    assert read_answer(model, wire).to_wire() == wire


def with_unknown_keys(value: object) -> object:
    """The same value as a newer gateway may answer it: more keys, everywhere."""
    if isinstance(value, dict):
        return {key: with_unknown_keys(entry) for key, entry in value.items()} | {"newer": [{}]}
    if isinstance(value, list):
        return [with_unknown_keys(entry) for entry in value]
    return value


@pytest.mark.parametrize(("model", "wire"), GOOD)
def test_keys_of_a_newer_gateway_are_ignored_at_every_depth(
    model: type[WireModel], wire: dict[str, Any]
) -> None:
    assert read_answer(model, with_unknown_keys(wire)).to_wire() == wire


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("value", [None, [], "", 5, {}])
def test_response_without_what_it_must_have_is_refused(
    model: type[WireModel], value: object
) -> None:
    with pytest.raises(AnswerInvalid, match="The answer is not valid: "):
        read_answer(model, value)


def test_context_without_a_role_is_nobodys() -> None:
    with pytest.raises(AnswerInvalid, match="role"):
        read_answer(ContextResponse, {"context": {**CLIENT, "credentialId": "c7f3"}})


def test_context_of_the_operator_is_told_by_its_role() -> None:
    read = read_answer(ContextResponse, {"context": {"role": "admin"}})
    assert read.context == AdminContext()


@pytest.mark.parametrize(
    "status",
    ["", "READY", "issued", None, True, 1, [], {}],
)
def test_certificate_answer_of_no_known_status_is_refused(status: object) -> None:
    with pytest.raises(AnswerInvalid, match="status must not be"):
        read_certificate_answer({"status": status, "retryAfterMs": 1})


@pytest.mark.parametrize("value", [None, [], "ready", {}])
def test_certificate_answer_without_a_status_is_refused(value: object) -> None:
    with pytest.raises(AnswerInvalid, match="status must not be null"):
        read_certificate_answer(value)


@pytest.mark.parametrize(("model", "wire"), GOOD[-3:])
def test_certificate_answer_is_what_its_status_says(
    model: type[WireModel], wire: dict[str, Any]
) -> None:
    assert type(read_certificate_answer(wire)) is model


@pytest.mark.parametrize("key", CERTIFICATE)
def test_certificate_without_one_of_its_keys_is_refused(key: str) -> None:
    certificate = {name: value for name, value in CERTIFICATE.items() if name != key}
    with pytest.raises(AnswerInvalid, match=f"certificate.{key} is missing"):
        read_certificate_answer({"status": "ready", "certificate": certificate})


@pytest.mark.parametrize("key", CERTIFICATE)
@pytest.mark.parametrize("value", [None, True, [], {}, -1, 0.5])
def test_certificate_with_a_value_of_another_type_is_refused(key: str, value: object) -> None:
    certificate = CERTIFICATE | {key: value}
    with pytest.raises(AnswerInvalid, match=f"certificate.{key}"):
        read_certificate_answer({"status": "ready", "certificate": certificate})


@pytest.mark.parametrize("moment", [253_402_300_800_000, 10**300])
def test_moment_beyond_every_calendar_is_refused(moment: int) -> None:
    with pytest.raises(AnswerInvalid, match="retryAfterMs"):
        read_certificate_answer({"status": "pending", "retryAfterMs": moment})


def test_private_key_in_the_wrong_place_is_not_shown() -> None:
    stray = "-----BEGIN PRIVATE KEY-----\nMIGHAgEAMBMGByqGSM49"
    with pytest.raises(AnswerInvalid) as refused:
        read_certificate_answer({"status": stray})
    assert "MIGH" not in refused.value.text


@given(response=JSON)
def test_any_value_as_a_response_is_read_or_refused(response: object) -> None:
    for model in MODELS:
        with contextlib.suppress(AnswerInvalid):
            assert isinstance(read_answer(model, response), model)


@given(response=JSON)
def test_any_value_as_a_certificate_answer_is_read_or_refused(response: object) -> None:
    with contextlib.suppress(AnswerInvalid):
        assert isinstance(read_certificate_answer(response), GetCertificateResponse)


@given(value=JSON)
def test_any_value_as_an_answer_is_refused(value: object) -> None:
    with pytest.raises((AnswerInvalid, CallError)):
        parsed(json.dumps(value).encode())


@given(value=JSON.filter(lambda value: value is not None))
def test_any_value_as_an_error_is_a_failure_or_refused(value: object) -> None:
    with pytest.raises((AnswerInvalid, CallError)):
        parsed(answer(error=value))


@given(body=st.binary(max_size=200))
def test_any_bytes_as_an_answer_are_refused(body: bytes) -> None:
    with pytest.raises(AnswerInvalid):
        parsed(body)
