"""What `gateway client` says and ends with when a call came to nothing. Pure.

Responsible for a sentence that tells what to do next, the error for programs and the exit code, for
each error of the SDK. Must not: show a token; the source that it came from is named instead. Used
by `cli.client_connection`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from gateway.cli.client_connection import NOT_YET, Failure
from gateway.cli.client_words import in_own_words, seconds_words
from gateway.cli.session import REFUSED, WRONG
from gateway.client import (
    AnswerInvalid,
    CallError,
    DeadlinePassed,
    Forbidden,
    HostnameForbidden,
    Internal,
    IssuanceRefused,
    MethodUnknown,
    Overloaded,
    RequestInvalid,
    Unauthorized,
    Unavailable,
    Unreachable,
)

if TYPE_CHECKING:
    from gateway.cli.client_connection import Where
    from gateway.client import GatewayError

_OPTIONS: Final = {
    "ownership.hostname": "HOSTNAME",
    "ownership.appId": "--app-id",
    "record.value": "--address",
    "record.ttl": "--ttl",
}
"""What the command line calls the parts of a request."""

_OWN_CODES: Final[dict[type[GatewayError], str]] = {
    AnswerInvalid: "answer-invalid",
    DeadlinePassed: "deadline-passed",
    IssuanceRefused: "issuance-refused",
    Unreachable: "unreachable",
}


_CAPABILITY_MISSING: Final = (
    "`gateway client context` shows the capabilities that there are; the operator grants them with"
    " `gateway clients ensure`."
)
_NOT_TRUSTED: Final = (
    "If another authority signed it, name that one's PEM file with --ca-file or $GATEWAY_CA_FILE."
)
_STEPS: Final[dict[type, str]] = {
    DeadlinePassed: "Try again later: what was asked for may be done by then.",
    Forbidden: "`gateway client context` shows the role that the token has.",
    HostnameForbidden: (
        "`gateway client context` shows the patterns; the operator adds one with"
        " `gateway clients ensure`."
    ),
    IssuanceRefused: (
        "Asking again is no use until that changes: the operator sees more with `gateway explain`."
    ),
    MethodUnknown: "This gateway is older than this command.",
    Unreachable: "Is --url right, and does the gateway run? Trying again later does no harm.",
}
"""What to do next, where that depends on nothing but the kind of the error."""


def failure_of(error: GatewayError, where: Where) -> Failure:
    """How a command ends after this error."""
    data = error.data() if isinstance(error, CallError) else _own_data(error)
    code = data.pop("code")
    if isinstance(error, RequestInvalid):
        lines = tuple(f"{in_own_words(each, _OPTIONS)}." for each in error.violations)
        return Failure(WRONG, code, lines, data)
    return Failure(_exit_code(error), code, _lines(error, where), data)


def _own_data(error: GatewayError) -> dict[str, Any]:
    code = next(
        (own for kind, own in _OWN_CODES.items() if isinstance(error, kind)), "client-failed"
    )
    if isinstance(error, IssuanceRefused):
        return {
            "code": code,
            "reason": error.reason,
            "message": error.message,
            "retryAfterMs": error.retry_after_ms,
        }
    return {"code": code}


def _exit_code(error: GatewayError) -> int:
    if isinstance(error, Unavailable | Overloaded | DeadlinePassed):
        return NOT_YET
    if isinstance(error, Unreachable):
        return REFUSED if error.is_lasting else NOT_YET
    if isinstance(error, IssuanceRefused):
        return REFUSED if error.retry_after_ms is None else NOT_YET
    return REFUSED


def _lines(error: GatewayError, where: Where) -> tuple[str, ...]:
    if isinstance(error, Unauthorized):
        return (
            f"The gateway at {where.url} does not know the token from {where.token_source}, or it"
            " is expired or revoked: ask the operator for a new one (`gateway clients rotate`).",
        )
    return (error.text, *_next_step(error))


def _next_step(error: GatewayError) -> tuple[str, ...]:
    """What to do now, where the error's own sentence does not say it."""
    match error:
        case Forbidden(capability=str()):
            step = _CAPABILITY_MISSING
        case Unreachable(is_lasting=True):
            step = _NOT_TRUSTED
        case Unavailable() | Overloaded():
            step = f"Try again in {seconds_words(error.retry_after_ms / 1000)}."
        case IssuanceRefused(retry_after_ms=int(wait_ms)):
            step = f"Asking again makes sense in {seconds_words(wait_ms / 1000)}."
        case Internal():
            step = f"Tell the operator the incident {error.incident_id}."
        case _:
            return tuple(_STEPS[kind] for kind in type(error).__mro__ if kind in _STEPS)
    return (step,)
