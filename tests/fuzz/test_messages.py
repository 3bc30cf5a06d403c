"""What clients, gateways, DNS servers and authorities send: read, or refused in our own words."""

import base64
import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import dns.message
import pytest
from hypothesis import given, settings, strategies as st

from gateway.certificates.authority.faults import Operation
from gateway.certificates.authority.reading import (
    read_account,
    read_authorization,
    read_order,
    read_renewal_info,
)
from gateway.certificates.authority.replies import Reply
from gateway.certificates.authority.signing import load_signer
from gateway.certificates.keys import (
    CertificateWrong,
    KeyType,
    check_certificate,
    new_private_key,
    renewal_id,
)
from gateway.certificates.orders import AuthorityFault
from gateway.client import AnswerInvalid, judge_certificate, read_chain
from gateway.contract import (
    EmptyRequest,
    EnvelopeInvalid,
    GatewayError,
    GetCertificateRequest,
    ProvisionRequest,
    RequestInvalid,
    SyncDnsRecordRequest,
    SyncDnsRecordResponse,
    parse_request,
    read_request,
    render_response,
)
from gateway.contract.answers import parse_answer, read_answer, read_certificate_answer
from gateway.dns.errors import DnsFault
from gateway.dns.observe import judge
from gateway.dns.proof import Mark, find_marks
from gateway.dns.replies import Peer, read_reply
from gateway.dns.signing import Asked
from tests.fuzz.conftest import FUZZ
from tests.fuzz.mutations import altered, damaged
from tests.lab.certificates import LabAuthority
from tests.unit.dns.building import MARKERS, NAME, OWNER, V4, ZONE

NOW = datetime.now(UTC)
HOSTNAME = "relay.example.test"
OWNERSHIP = {"appId": "cluster-relay", "hostname": HOSTNAME}
CA = "https://ca.example.test"
TOKEN = "evaGxfADs6pSRb2LAv9IZf17Dt3juxGJ-PCt92wr-oA"

REQUESTS: dict[str, dict[str, Any]] = {
    "syncGatewayClientDnsRecord": {
        "ownership": OWNERSHIP,
        "record": {"type": "A", "value": "198.51.100.85", "ttl": 300},
    },
    "getGatewayClientCertificate": {"ownership": OWNERSHIP},
    "provisionGatewayClientCredential": {
        "action": "ensure",
        "spec": {
            "clientId": "cluster-a",
            "clientType": "cloudly",
            "hostnamePatterns": ["relay.*.example.test"],
            "allowedDnsRecordAddresses": ["198.51.100.0/24", "2001:db8::/32"],
            "capabilities": ["syncDnsRecords"],
        },
    },
    "getGatewayCapabilities": {},
}
MODELS = (SyncDnsRecordRequest, GetCertificateRequest, ProvisionRequest, EmptyRequest)
BODIES = [
    json.dumps({"method": method, "request": {"apiToken": "gwc_x", **request}}).encode()
    for method, request in REQUESTS.items()
]

AUTHORITY = LabAuthority()
ISSUED = AUTHORITY.issue(HOSTNAME)
CERTIFICATE = ISSUED.as_certificate(HOSTNAME)
CHAIN_PEM, KEY_PEM = ISSUED.chain_pem.encode(), ISSUED.private_key_pem.encode()

ANSWERS: list[dict[str, Any]] = [
    {
        "status": "managed-created",
        "hostname": HOSTNAME,
        "retryAfterMs": None,
        "message": "Done.",
        "record": {"type": "A", "value": "198.51.100.85", "ttl": 300},
    },
    {"status": "ready", "certificate": CERTIFICATE.to_wire()},
    {"status": "pending", "retryAfterMs": 1500},
    {"status": "refused", "reason": "rate-limited", "message": "Later.", "retryAfterMs": 1},
]
ENVELOPES = [
    json.dumps({"method": "m", "response": answer, "correlation": {"id": "c"}}).encode()
    for answer in ANSWERS
]

SIGNER = load_signer(new_private_key(KeyType.ECDSA_P256), f"{CA}/account/1")
ACME_BODIES: list[dict[str, Any]] = [
    {
        "status": "pending",
        "identifiers": [{"type": "dns", "value": HOSTNAME}],
        "authorizations": [f"{CA}/authz/1"],
        "finalize": f"{CA}/finalize/1",
        "certificate": f"{CA}/cert/1",
        "error": {"type": "urn:ietf:params:acme:error:caa", "detail": "no", "subproblems": [{}]},
    },
    {
        "status": "pending",
        "identifier": {"type": "dns", "value": HOSTNAME},
        "challenges": [
            {"type": "dns-01", "url": f"{CA}/chall/2", "status": "pending", "token": TOKEN}
        ],
    },
    {"suggestedWindow": {"start": "2026-11-30T00:00:00Z", "end": "2026-12-01T00:00:00.5+01:00"}},
    {"status": "valid", "contact": ["mailto:ops@example.test"], "orders": f"{CA}/orders/1"},
]


def replies() -> tuple[dns.message.Message, list[bytes]]:
    query = dns.message.make_query(NAME, "ANY", flags=0)
    wires = []
    for lines in (
        "relay.example.test. 300 IN A 192.0.2.1\n"
        'relay.example.test. 300 IN TXT "gateway-owner=v1:new:AAAA" "b"',
        "relay.example.test. 300 IN CNAME other.example.test.",
        "example.test. 60 IN DNAME example.net.\nexample.test. 60 IN SOA a. b. 1 2 3 4 5",
    ):
        text = f"id {query.id}\nopcode QUERY\nrcode NOERROR\nflags QR AA\n;QUESTION\n"
        text += f"relay.example.test. IN ANY\n;ANSWER\n{lines}\n"
        text += ";AUTHORITY\nexample.test. 60 IN NS ns.example.test.\n"
        wires.append(dns.message.from_text(text).to_wire())
    return query, wires


QUERY, WIRES = replies()
ASKED = Asked(QUERY.to_wire())
UNSIGNED = Peer(ZONE.primary, ZONE.name)


def refused(read: Callable[[], object], by: type[Exception]) -> bool:
    """Whether that is refused; in words that spoil no terminal and no line of a log."""
    try:
        read()
    except by as refusal:
        if not str(refusal).isprintable():
            raise AssertionError("an unprintable refusal") from refusal
        return True
    return False


@settings(FUZZ)
@given(body=damaged(BODIES))
def test_request_is_read_or_refused(body: bytes) -> None:
    if not refused(lambda: parse_request(body), EnvelopeInvalid):
        envelope = parse_request(body)
        for model in MODELS:
            refused(lambda model=model: read_request(model, envelope.request), RequestInvalid)  # type: ignore[misc]
        answer = render_response(envelope.method, envelope.correlation_id, {}, None)
        assert json.loads(answer)["method"] == envelope.method


@pytest.mark.parametrize("model", MODELS)
@settings(FUZZ)
@given(request=altered([request for request in REQUESTS.values() if request]))
def test_altered_request_is_read_or_refused(model: Any, request: dict[str, Any]) -> None:
    refused(lambda: read_request(model, request), RequestInvalid)


def read_either(response: object) -> None:
    refused(lambda: read_certificate_answer(response), AnswerInvalid)
    refused(lambda: read_answer(SyncDnsRecordResponse, response), AnswerInvalid)


@settings(FUZZ)
@given(body=damaged(ENVELOPES))
def test_answer_is_read_or_refused(body: bytes) -> None:
    if not refused(lambda: parse_answer(body, "m", "c"), GatewayError):
        read_either(parse_answer(body, "m", "c"))


@settings(FUZZ)
@given(response=altered(ANSWERS))
def test_altered_answer_is_read_or_refused(response: dict[str, Any]) -> None:
    read_either(response)


@settings(FUZZ)
@given(wire=damaged(WIRES), keeps_id=st.booleans())
def test_dns_reply_proves_nothing_or_is_refused(wire: bytes, keeps_id: bool) -> None:
    if keeps_id:  # the most damaged reply is still one to this question
        wire = WIRES[0][:3] + wire[3:]

    def marks() -> tuple[Mark, ...]:
        observed = judge(read_reply(ASKED, wire, UNSIGNED), NAME, ZONE)
        return find_marks(observed, OWNER, MARKERS, [V4])

    assert refused(marks, DnsFault) or marks() == ()


def read_acme(body: bytes, header: str) -> None:
    reply = Reply(200, {"retry-after": header, "location": header}, body)
    for read in (
        lambda: read_order(Operation.READ_ORDER, reply, f"{CA}/order/1", NOW),
        lambda: read_authorization(reply, f"{CA}/authz/1", SIGNER, NOW),
        lambda: read_renewal_info(reply, NOW),
        lambda: read_account(Operation.NEW_ACCOUNT, reply, SIGNER),
    ):
        refused(read, AuthorityFault)
    problem = reply.problem()
    assert problem is None or problem.words.isprintable()


@settings(FUZZ)
@given(body=damaged([json.dumps(each).encode() for each in ACME_BODIES]), header=damaged([b"120"]))
def test_acme_answer_is_read_or_the_authoritys_fault(body: bytes, header: bytes) -> None:
    read_acme(body, header.decode("latin-1"))


@settings(FUZZ)
@given(body=altered(ACME_BODIES))
def test_altered_acme_answer_is_read_or_the_authoritys_fault(body: dict[str, Any]) -> None:
    read_acme(json.dumps(body).encode(), "1")


def pem_of(der: bytes) -> bytes:
    return (
        b"-----BEGIN CERTIFICATE-----\n" + base64.encodebytes(der) + b"-----END CERTIFICATE-----\n"
    )


LEAF_DER = base64.b64decode(b"".join(CHAIN_PEM.split(b"-----")[2].split()))


@settings(FUZZ)
@given(
    chain=st.one_of(damaged([CHAIN_PEM]), damaged([LEAF_DER]).map(pem_of)),
    key=damaged([KEY_PEM]),
)
def test_certificate_is_taken_or_refused(chain: bytes, key: bytes) -> None:
    chain_pem, key_pem = chain.decode("latin-1"), key.decode("latin-1")
    answered = CERTIFICATE.model_copy(update={"chain_pem": chain_pem, "private_key_pem": key_pem})
    refused(lambda: check_certificate(chain_pem, KEY_PEM, HOSTNAME, NOW), CertificateWrong)
    refused(lambda: judge_certificate(answered, HOSTNAME, NOW), AnswerInvalid)
    refused(lambda: read_chain(chain_pem, HOSTNAME), AnswerInvalid)
    renewal_id(chain_pem)
