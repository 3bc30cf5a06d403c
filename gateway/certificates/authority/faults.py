"""Which fault an answer of a CA means.

Pure: one table over the call, the HTTP status and the problem's type. The kinds are what the
issuance machine tells apart; what to do about each is its decision, not made here.

A refusal counts as the CA's own only with an ACME problem document. What stands in front of a CA
(a firewall, a proxy, a load balancer without a server behind it) answers 403, 404 or 400 as well,
without one: that passes, and no order is given up for it. Some CAs say 404 of an order that they
have forgotten without a document, but with a nonce, which only they can make.

Called by the other modules of this package.
"""

import re
from datetime import datetime
from enum import StrEnum
from typing import Final

from gateway.certificates.authority.replies import Problem, Reply
from gateway.certificates.orders import AuthorityFault, FaultKind

_SIGNATURE: Final = re.compile(r"\b(JWS|JWT|signature)\b", re.IGNORECASE)
# A certificate request is signed as well.
_REQUESTED: Final = re.compile(r"\b(CSR|certificate request)\b", re.IGNORECASE)


class Operation(StrEnum):
    """One kind of call to a CA; where the directory lists it, by the directory's own name."""

    DIRECTORY = "directory"
    NEW_NONCE = "newNonce"
    NEW_ACCOUNT = "newAccount"
    NEW_ORDER = "newOrder"
    READ_ORDER = "readOrder"
    READ_AUTHORIZATION = "readAuthorization"
    ANSWER_CHALLENGE = "answerChallenge"
    FINALIZE = "finalize"
    RENEWAL_INFO = "renewalInfo"
    FETCH_CERTIFICATE = "fetchCertificate"
    DEACTIVATE_AUTHORIZATION = "deactivateAuthorization"
    FIND_ACCOUNT = "findAccount"
    READ_ACCOUNT = "readAccount"
    UPDATE_ACCOUNT = "updateAccount"
    KEY_CHANGE = "keyChange"


_BY_TYPE: Final = {
    "rateLimited": FaultKind.RATE_LIMITED,
    "rejectedIdentifier": FaultKind.REFUSED,
    "unsupportedIdentifier": FaultKind.REFUSED,
    "caa": FaultKind.REFUSED,
    "invalidProfile": FaultKind.REFUSED,
    "accountDoesNotExist": FaultKind.ACCOUNT_MISSING,
    "externalAccountRequired": FaultKind.ACCOUNT_REFUSED,
    "userActionRequired": FaultKind.ACCOUNT_REFUSED,
    "invalidContact": FaultKind.ACCOUNT_REFUSED,
    "unsupportedContact": FaultKind.ACCOUNT_REFUSED,
    "orderNotReady": FaultKind.NOT_READY,
    "badCSR": FaultKind.BAD_CSR,
    "badNonce": FaultKind.SERVER_ERROR,
    "serverInternal": FaultKind.SERVER_ERROR,
}

# Whose key a CA means: the account's at newAccount, the certificate request's at finalize.
_BAD_KEY: Final = {
    Operation.NEW_ACCOUNT: FaultKind.ACCOUNT_REFUSED,
    Operation.KEY_CHANGE: FaultKind.ACCOUNT_REFUSED,
    Operation.FINALIZE: FaultKind.BAD_CSR,
}

_BY_STATUS: Final = {
    408: FaultKind.SERVER_ERROR,
    425: FaultKind.SERVER_ERROR,
    429: FaultKind.RATE_LIMITED,
}

# Calls about the account itself. All others name an object of the CA by its URL.
_ON_ACCOUNT: Final = frozenset(
    {
        Operation.NEW_ACCOUNT,
        Operation.NEW_ORDER,
        Operation.FIND_ACCOUNT,
        Operation.READ_ACCOUNT,
        Operation.UPDATE_ACCOUNT,
        Operation.KEY_CHANGE,
    }
)
_ON_SERVICE: Final = _ON_ACCOUNT | {Operation.DIRECTORY, Operation.NEW_NONCE}

# Calls that go to the directory, or to a URL of it: nothing may be there (any more). Of newOrder a
# CA that knows ACME says 404 also when it does not know what the order is to replace.
_AT_SERVICE_URL: Final = _ON_SERVICE - {
    Operation.NEW_ORDER,
    Operation.READ_ACCOUNT,
    Operation.UPDATE_ACCOUNT,
}
_NOT_THERE: Final = frozenset({403, 404, 405, 410})


def classify(
    operation: Operation, status: int, problem: Problem | None, *, has_nonce: bool = False
) -> FaultKind:
    """Answer the kind of fault that an answer other than 2xx means.

    The problem's type decides, in a `compound` problem the first telling one of its parts; then
    the status, if the answer is the CA's own.
    """
    for part in (problem, *problem.subproblems) if problem is not None else ():
        kind = _kind_of_type(operation, status, part.type) if part.is_acme else None
        if kind is not None:
            return kind
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    is_acme = problem is not None and problem.is_acme
    if status in (404, 410) and operation not in _ON_SERVICE:
        return FaultKind.GONE if is_acme or has_nonce else FaultKind.SERVER_ERROR
    if operation in _AT_SERVICE_URL and status in _NOT_THERE:
        return FaultKind.SERVER_ERROR
    return FaultKind.MALFORMED if is_acme and 400 <= status < 500 else FaultKind.SERVER_ERROR


def fault_of(operation: Operation, reply: Reply, now_utc: datetime) -> AuthorityFault:
    """Make the fault that an answer other than 2xx means."""
    problem = reply.problem()
    kind = classify(operation, reply.status, problem, has_nonce=reply.has_nonce)
    if problem is None:
        detail = f"HTTP {reply.status} without a problem document"
    elif problem.type == "badNonce":
        # Not in the CA's words: some quote the nonce.
        detail = "badNonce: the CA rejected one nonce after the other"
    else:
        detail = problem.words
    return AuthorityFault(
        kind,
        detail,
        reply.retry_after_seconds(now_utc),
        problem_type=problem.type if problem is not None and problem.is_acme else "",
        http_status=reply.status,
    )


def is_signature_refused(fault: AuthorityFault) -> bool:
    """Answer whether a CA says that a request was not signed with the account's key.

    RFC 8555 has no type for that. CAs say `malformed`, and in their words what it is about.
    """
    return (
        fault.kind is FaultKind.MALFORMED
        and _SIGNATURE.search(fault.detail) is not None
        and _REQUESTED.search(fault.detail) is None
    )


def again(fault: AuthorityFault, kind: FaultKind) -> AuthorityFault:
    """Make the same fault once more, of that kind: an exception is raised once only."""
    return AuthorityFault(
        kind,
        fault.detail,
        fault.retry_after_seconds,
        problem_type=fault.problem_type,
        http_status=fault.http_status,
        is_unsent=fault.is_unsent,
    )


def senseless(operation: Operation, what: str) -> AuthorityFault:
    """Make the fault of an answer that claims success and can't be used."""
    return AuthorityFault(FaultKind.SERVER_ERROR, f"the answer to {operation} {what}")


def _kind_of_type(operation: Operation, status: int, problem_type: str) -> FaultKind | None:
    if problem_type == "unauthorized":
        return _kind_of_unauthorized(operation, status)
    if problem_type in ("badPublicKey", "badSignatureAlgorithm"):
        return _BAD_KEY.get(operation)
    return _BY_TYPE.get(problem_type)


def _kind_of_unauthorized(operation: Operation, status: int) -> FaultKind:
    # RFC 8555 gives 401 to a deactivated account; Boulder and Pebble say 403 for that too, and also
    # for an order or authorization of another account, which is as good as gone.
    if status == 401 or operation in _ON_ACCOUNT:
        return FaultKind.ACCOUNT_REFUSED
    return FaultKind.GONE
