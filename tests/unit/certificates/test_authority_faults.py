"""Which fault an answer means, by table."""

import json

import pytest

from gateway.certificates.authority.faults import (
    Operation,
    again,
    classify,
    fault_of,
    is_signature_refused,
    senseless,
)
from gateway.certificates.authority.replies import Problem, Reply
from gateway.certificates.orders import AuthorityFault, FaultKind
from tests.unit.certificates.issuing import NOW

PREFIX = "urn:ietf:params:acme:error:"

ANY = list(Operation)
ON_OBJECTS = [
    Operation.READ_ORDER,
    Operation.READ_AUTHORIZATION,
    Operation.ANSWER_CHALLENGE,
    Operation.FINALIZE,
    Operation.FETCH_CERTIFICATE,
    Operation.DEACTIVATE_AUTHORIZATION,
    Operation.RENEWAL_INFO,
]
ON_ACCOUNT = [
    Operation.NEW_ACCOUNT,
    Operation.NEW_ORDER,
    Operation.FIND_ACCOUNT,
    Operation.READ_ACCOUNT,
    Operation.UPDATE_ACCOUNT,
    Operation.KEY_CHANGE,
]
ON_SERVICE = [*ON_ACCOUNT, Operation.DIRECTORY, Operation.NEW_NONCE]

AT_OTHERS = [Operation.NEW_ORDER, Operation.READ_ACCOUNT, Operation.UPDATE_ACCOUNT]
AT_SERVICE = [one for one in ON_SERVICE if one not in AT_OTHERS]

TABLE = [
    # (operations, status, problem type or None for no problem document, kind)
    (ANY, 429, "rateLimited", FaultKind.RATE_LIMITED),
    (ANY, 503, "rateLimited", FaultKind.RATE_LIMITED),
    (ANY, 429, None, FaultKind.RATE_LIMITED),
    (ANY, 400, "rejectedIdentifier", FaultKind.REFUSED),
    (ANY, 403, "rejectedIdentifier", FaultKind.REFUSED),
    (ANY, 400, "unsupportedIdentifier", FaultKind.REFUSED),
    (ANY, 403, "caa", FaultKind.REFUSED),
    (ANY, 400, "invalidProfile", FaultKind.REFUSED),
    (ANY, 400, "accountDoesNotExist", FaultKind.ACCOUNT_MISSING),
    (ANY, 403, "externalAccountRequired", FaultKind.ACCOUNT_REFUSED),
    (ANY, 403, "userActionRequired", FaultKind.ACCOUNT_REFUSED),
    (ANY, 400, "invalidContact", FaultKind.ACCOUNT_REFUSED),
    (ANY, 400, "unsupportedContact", FaultKind.ACCOUNT_REFUSED),
    (ANY, 401, "unauthorized", FaultKind.ACCOUNT_REFUSED),
    (ON_ACCOUNT, 403, "unauthorized", FaultKind.ACCOUNT_REFUSED),
    (ON_OBJECTS, 403, "unauthorized", FaultKind.GONE),
    ([Operation.NEW_ACCOUNT], 400, "badPublicKey", FaultKind.ACCOUNT_REFUSED),
    ([Operation.NEW_ACCOUNT], 400, "badSignatureAlgorithm", FaultKind.ACCOUNT_REFUSED),
    ([Operation.KEY_CHANGE], 400, "badPublicKey", FaultKind.ACCOUNT_REFUSED),
    ([Operation.FINALIZE], 400, "badPublicKey", FaultKind.BAD_CSR),
    ([Operation.READ_ORDER], 400, "badPublicKey", FaultKind.MALFORMED),
    ([Operation.FINALIZE], 400, "badCSR", FaultKind.BAD_CSR),
    ([Operation.FINALIZE], 403, "orderNotReady", FaultKind.NOT_READY),
    (ON_OBJECTS, 404, "malformed", FaultKind.GONE),
    (ON_OBJECTS, 410, "malformed", FaultKind.GONE),
    # Nothing is known to be the CA's own without a problem document of ACME.
    *((ANY, status, None, FaultKind.SERVER_ERROR) for status in (400, 401, 403, 404, 405, 410)),
    # A CA that has moved says so in its own manner.
    *((AT_SERVICE, status, "malformed", FaultKind.SERVER_ERROR) for status in (403, 404, 405, 410)),
    (AT_SERVICE, 404, "somethingNew", FaultKind.SERVER_ERROR),
    (AT_SERVICE, 403, "rejectedIdentifier", FaultKind.REFUSED),
    (AT_OTHERS, 404, "malformed", FaultKind.MALFORMED),
    (ON_OBJECTS, 405, "malformed", FaultKind.MALFORMED),
    (ANY, 400, "malformed", FaultKind.MALFORMED),
    (ANY, 409, "alreadyReplaced", FaultKind.MALFORMED),
    (ANY, 400, "somethingNew", FaultKind.MALFORMED),
    (ANY, 400, "badNonce", FaultKind.SERVER_ERROR),
    (ANY, 400, "serverInternal", FaultKind.SERVER_ERROR),
    (ANY, 500, "serverInternal", FaultKind.SERVER_ERROR),
    (ANY, 500, None, FaultKind.SERVER_ERROR),
    (ANY, 502, None, FaultKind.SERVER_ERROR),
    (ANY, 503, "", FaultKind.SERVER_ERROR),
    (ANY, 408, None, FaultKind.SERVER_ERROR),
    (ANY, 301, None, FaultKind.SERVER_ERROR),
    (ANY, 600, None, FaultKind.SERVER_ERROR),
]


@pytest.mark.parametrize(
    ("operations", "status", "problem_type", "kind"),
    TABLE,
    ids=[f"{row[1]}-{row[2]}-{row[3]}" for row in TABLE],
)
def test_answer_means_its_kind(
    operations: list[Operation], status: int, problem_type: str | None, kind: FaultKind
) -> None:
    problem = None if problem_type is None else Problem(problem_type, "words")
    assert {classify(one, status, problem) for one in operations} == {kind}


@pytest.mark.parametrize("status", [404, 410])
def test_object_is_gone_without_a_problem_document_where_the_ca_itself_says_so(status: int) -> None:
    own = {classify(one, status, None, has_nonce=True) for one in ON_OBJECTS}
    assert own == {FaultKind.GONE}
    service = {classify(one, status, None, has_nonce=True) for one in ON_SERVICE}
    assert service == {FaultKind.SERVER_ERROR}


@pytest.mark.parametrize(
    "body",
    [
        {"message": "Forbidden"},
        {"type": "about:blank", "title": "Not Found"},
        {"type": "https://proxy.example.test/denied", "detail": "no"},
        {"type": "malformed", "detail": "not ACME's, though it looks so"},
    ],
)
@pytest.mark.parametrize("status", [400, 403, 404])
def test_json_of_somebody_else_is_no_problem_document_of_acme(
    body: dict[str, str], status: int
) -> None:
    for operation in ANY:
        fault = fault_of(operation, reply(status, body), NOW)
        assert (fault.kind, fault.problem_type) == (FaultKind.SERVER_ERROR, "")
        assert fault.http_status == status


@pytest.mark.parametrize(
    ("kind", "detail", "is_refused"),
    [
        (FaultKind.MALFORMED, "malformed: JWS verification error", True),
        (FaultKind.MALFORMED, "malformed: the signature is invalid", True),
        (FaultKind.MALFORMED, "malformed: the CSR's signature is invalid", False),
        (FaultKind.MALFORMED, "malformed: no such profile", False),
        (FaultKind.GONE, "malformed: JWS verification error", False),
    ],
)
def test_refused_signature_is_told_by_the_words_of_the_ca(
    kind: FaultKind, detail: str, is_refused: bool
) -> None:
    assert is_signature_refused(AuthorityFault(kind, detail)) is is_refused


def test_fault_is_made_again_as_another_kind() -> None:
    made = AuthorityFault(FaultKind.MALFORMED, "no", 9, problem_type="malformed", http_status=400)
    fault = again(made, FaultKind.SERVER_ERROR)
    assert fault.kind is FaultKind.SERVER_ERROR
    assert vars(fault) == {**vars(made), "kind": FaultKind.SERVER_ERROR}


def test_compound_problem_means_what_its_first_telling_part_means() -> None:
    problem = Problem(
        "compound",
        "several things",
        (Problem("somethingNew", "?"), Problem("caa", "no"), Problem("rateLimited", "later")),
    )
    assert classify(Operation.NEW_ORDER, 403, problem) is FaultKind.REFUSED


def reply(status: int, body: object, **headers: str) -> Reply:
    return Reply(
        status,
        {name.replace("_", "-"): text for name, text in headers.items()},
        (body if isinstance(body, bytes) else json.dumps(body).encode()),
    )


def test_fault_carries_the_words_of_the_ca() -> None:
    body = {
        "type": PREFIX + "compound",
        "detail": "Two\nnames",
        "subproblems": [
            {"type": PREFIX + "caa", "detail": "CAA forbids a.example.test"},
            {"type": PREFIX + "rejectedIdentifier", "title": "blocked"},
            "not a problem",
        ],
    }
    fault = fault_of(Operation.NEW_ORDER, reply(403, body, retry_after="90"), NOW)
    assert fault.kind is FaultKind.REFUSED
    assert fault.retry_after_seconds == 90
    assert fault.problem_type == "compound"
    assert fault.detail == (
        "compound: Two names; caa: CAA forbids a.example.test; rejectedIdentifier: blocked"
    )


@pytest.mark.parametrize("body", [b"<html>", b"", b"[]", b"\xff", b"[" * 100_000, b"1" * 10_000])
def test_fault_has_own_words_when_there_is_no_problem_document(body: bytes) -> None:
    fault = fault_of(Operation.READ_ORDER, reply(502, body), NOW)
    assert fault.kind is FaultKind.SERVER_ERROR
    assert fault.detail == "HTTP 502 without a problem document"
    assert fault.problem_type == ""
    assert fault.retry_after_seconds is None


def test_fault_of_a_rejected_nonce_does_not_quote_it() -> None:
    body = {"type": PREFIX + "badNonce", "detail": "JWS has an invalid anti-replay nonce: c2VjcmV0"}
    fault = fault_of(Operation.NEW_ORDER, reply(400, body), NOW)
    assert fault.kind is FaultKind.SERVER_ERROR
    assert "c2VjcmV0" not in str(fault)


def test_every_operation_is_either_on_an_object_or_on_the_service() -> None:
    assert sorted([*ON_OBJECTS, *ON_SERVICE]) == sorted(Operation)


def test_fault_does_not_quote_a_nonce_that_is_told_under_another_name() -> None:
    detail = 'JWS verification error, nonce "Zm9vYmFy", payload evaGxfADs6pSRb2LAv9IZf17Dt3juxGJ'
    body = {"type": PREFIX + "malformed", "detail": detail}
    fault = fault_of(Operation.NEW_ORDER, reply(400, body), NOW)
    assert fault.detail == 'malformed: JWS verification error, nonce "[hidden]", payload [hidden]'


def test_fault_without_any_words_says_so() -> None:
    fault = fault_of(Operation.NEW_ORDER, reply(400, {"type": "about:blank"}), NOW)
    assert fault.detail == "no reason given"


def test_senseless_answer_is_the_fault_of_the_server() -> None:
    fault = senseless(Operation.READ_ORDER, "is not a JSON object")
    assert fault.kind is FaultKind.SERVER_ERROR
    assert fault.detail == "the answer to readOrder is not a JSON object"
