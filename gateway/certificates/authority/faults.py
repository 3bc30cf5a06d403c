"""Which fault an answer of a CA means.

Pure: one table over the call, the HTTP status and the problem's type. The kinds are what the
issuance machine tells apart; what to do about each is its decision, not made here.

Called by the other modules of this package.
"""

from datetime import datetime
from enum import StrEnum
from typing import Final

from gateway.certificates.authority.replies import Problem, Reply
from gateway.certificates.orders import AuthorityFault, FaultKind


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
    FETCH_CERTIFICATE = "fetchCertificate"
    DEACTIVATE_AUTHORIZATION = "deactivateAuthorization"


_BY_TYPE: Final = {
    "rateLimited": FaultKind.RATE_LIMITED,
    "rejectedIdentifier": FaultKind.REFUSED,
    "unsupportedIdentifier": FaultKind.REFUSED,
    "caa": FaultKind.REFUSED,
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
    Operation.FINALIZE: FaultKind.BAD_CSR,
}

_BY_STATUS: Final = {
    408: FaultKind.SERVER_ERROR,
    425: FaultKind.SERVER_ERROR,
    429: FaultKind.RATE_LIMITED,
}

# Calls about the account itself. All others name an object of the CA by its URL.
_ON_ACCOUNT: Final = frozenset({Operation.NEW_ACCOUNT, Operation.NEW_ORDER})
_ON_SERVICE: Final = _ON_ACCOUNT | {Operation.DIRECTORY, Operation.NEW_NONCE}


def classify(operation: Operation, status: int, problem: Problem | None) -> FaultKind:
    """Answer the kind of fault that an answer other than 2xx means.

    The problem's type decides, in a `compound` problem the first telling one of its parts; then
    the status.
    """
    for part in (problem, *problem.subproblems) if problem is not None else ():
        kind = _kind_of_type(operation, status, part.type)
        if kind is not None:
            return kind
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    if status in (404, 410) and operation not in _ON_SERVICE:
        return FaultKind.GONE
    if 400 <= status < 500:
        return FaultKind.MALFORMED
    return FaultKind.SERVER_ERROR


def fault_of(operation: Operation, reply: Reply, now_utc: datetime) -> AuthorityFault:
    """Make the fault that an answer other than 2xx means."""
    problem = reply.problem()
    kind = classify(operation, reply.status, problem)
    if problem is None:
        detail = f"HTTP {reply.status} without a problem document"
    elif problem.type == "badNonce":
        # Not in the CA's words: some quote the nonce.
        detail = "badNonce: the CA rejected one nonce after the other"
    else:
        detail = problem.words
    return AuthorityFault(kind, detail, reply.retry_after_seconds(now_utc))


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
