"""Every exchange that `docs/contract.md` shows is one that the code would read or answer."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from gateway.contract import (
    CapabilitiesResponse,
    CertificatePending,
    CertificateReady,
    CertificateRefused,
    ContextResponse,
    EmptyRequest,
    GetCertificateRequest,
    ProvisionRequest,
    ProvisionResponse,
    ReleaseCertificateRequest,
    ReleaseResponse,
    RequestInvalid,
    SyncDnsRecordRequest,
    SyncDnsRecordResponse,
    Unauthorized,
    WireModel,
    parse_request,
    read_request,
    render_response,
    validate_gateway_client_dns_record,
)

PAGE = (Path(__file__).parents[3] / "docs" / "contract.md").read_text(encoding="utf-8")
EXAMPLES = [json.loads(text) for text in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)]
CALLS = [example for example in EXAMPLES if example["request"] is not None]
ANSWERS = [example for example in EXAMPLES if example["response"] is not None]
FAILURES = [example for example in EXAMPLES if "error" in example]

REQUESTS: dict[str, type[WireModel]] = {
    "getGatewayCapabilities": EmptyRequest,
    "getGatewayClientContext": EmptyRequest,
    "getGatewayClientCertificate": GetCertificateRequest,
    "provisionGatewayClientCredential": ProvisionRequest,
    "releaseGatewayClientCertificate": ReleaseCertificateRequest,
    "syncGatewayClientDnsRecord": SyncDnsRecordRequest,
}
RESPONSES: dict[str, list[type[WireModel]]] = {
    "getGatewayCapabilities": [CapabilitiesResponse],
    "getGatewayClientContext": [ContextResponse],
    "getGatewayClientCertificate": [CertificateReady, CertificatePending, CertificateRefused],
    "provisionGatewayClientCredential": [ProvisionResponse],
    "releaseGatewayClientCertificate": [ReleaseResponse],
    "syncGatewayClientDnsRecord": [SyncDnsRecordResponse],
}


def test_every_method_is_shown_with_a_call_and_an_answer() -> None:
    assert {call["method"] for call in CALLS} == set(REQUESTS)
    assert {answer["method"] for answer in ANSWERS} == set(RESPONSES)


@pytest.mark.parametrize("example", CALLS)
def test_call_of_the_page_is_read(example: dict[str, Any]) -> None:
    envelope = parse_request(json.dumps(example).encode())
    request = dict(envelope.request)
    assert type(request.pop("apiToken")) is str
    read_request(REQUESTS[envelope.method], request)


@pytest.mark.parametrize("example", ANSWERS)
def test_answer_of_the_page_is_what_a_response_renders(example: dict[str, Any]) -> None:
    parsed = [model.from_wire(example["response"])[0] for model in RESPONSES[example["method"]]]
    (response,) = [model for model in parsed if model is not None]
    correlation_id = example["correlation"]["id"]
    body = render_response(example["method"], correlation_id, response.to_wire(), None)
    assert json.loads(body) == example


@pytest.mark.parametrize(
    ("example", "error"),
    [(FAILURES[0], Unauthorized()), (FAILURES[1], None)],
)
def test_failure_of_the_page_is_what_an_error_renders(example: dict[str, Any], error: Any) -> None:
    failure = error or RequestInvalid(example["error"]["data"]["violations"])
    body = render_response(example["method"], example["correlation"]["id"], None, failure)
    assert json.loads(body) == example


def test_python_example_of_the_page_answers_as_shown() -> None:
    found = validate_gateway_client_dns_record({"type": "A", "value": "198.51.100.085", "ttl": 30})
    assert len(found) == 2
    assert all(violation in PAGE for violation in found)
