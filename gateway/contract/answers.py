"""How a client reads what the gateway answered.

Responsible for turning the bytes of an answer into the model of its method or into the exception
of its error, and for refusing what breaks the contract before any of it is used. Keys that a newer
gateway may have added are ignored. Must not: judge a certificate (a client does, with its clock).
Used by clients.
"""

from collections.abc import Callable
from typing import Any, Final, TypeVar

from gateway.contract.envelope import parse_json
from gateway.contract.errors import (
    AnswerInvalid,
    CallError,
    EnvelopeInvalid,
    Forbidden,
    HostnameForbidden,
    Internal,
    MethodUnknown,
    Overloaded,
    RequestInvalid,
    Unauthorized,
    Unavailable,
    UnknownFailure,
)
from gateway.contract.faults import Fault, described, plain, quoted
from gateway.contract.responses import (
    MAX_MILLISECONDS,
    CertificatePending,
    CertificateReady,
    CertificateRefused,
    GetCertificateResponse,
)
from gateway.contract.schema import WireModel

AnswerT = TypeVar("AnswerT", bound=WireModel)

# Longer than any gateway's sentence: violations quote what was sent, each value cut.
_LONGEST_TEXT: Final = 2_000

_CERTIFICATE_ANSWERS: Final[dict[str, type[GetCertificateResponse]]] = {
    "ready": CertificateReady,
    "pending": CertificatePending,
    "refused": CertificateRefused,
}


def parse_answer(body: bytes, method: str, correlation_id: str) -> object:
    """The `response` of an answer to this call, still unread.

    Raises:
        CallError: the gateway answered with an error; the class says which. The text is its own,
            but for its length, control characters and whatever looks like a secret.
        AnswerInvalid: the body is no answer, or one to another call.

    """
    try:
        envelope = parse_json(body)
    except EnvelopeInvalid as fault:
        raise AnswerInvalid(f"The answer is not valid: {fault.text}") from None
    if type(envelope) is not dict:
        raise AnswerInvalid(f"The answer must be an object, not {described(envelope)}.")
    error = envelope.get("error")
    if error is not None:
        # Before the rest: an error about the envelope itself names neither method nor call.
        raise _failure(error)
    if envelope.get("method") != method:
        raise AnswerInvalid(f"The answer is to the method {described(envelope.get('method'))}.")
    correlation = envelope.get("correlation")
    if type(correlation) is not dict or correlation.get("id") != correlation_id:
        raise AnswerInvalid("The answer is to another call: its correlation is not ours.")
    return envelope.get("response")


def read_answer(model: type[AnswerT], response: object) -> AnswerT:
    """Read the `response` object of an answer.

    Raises:
        AnswerInvalid: with the first violation and how many more there are.

    """
    parsed, faults = model.from_answer(response)
    if parsed is None:
        raise AnswerInvalid(_sentence(faults))
    return parsed


def read_certificate_answer(response: object) -> GetCertificateResponse:
    """Read the `response` of `getGatewayClientCertificate`, whose status says what it is.

    Raises:
        AnswerInvalid: with the first violation and how many more there are.

    """
    status = response.get("status") if type(response) is dict else None
    model = _CERTIFICATE_ANSWERS.get(status) if type(status) is str else None
    if model is None:
        raise AnswerInvalid(f"The answer is not valid: status must not be {described(status)}.")
    return read_answer(model, response)


def _sentence(faults: list[Fault]) -> str:
    more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
    first = str(faults[0]) if faults[0].path else f"response {faults[0].sentence}"
    return f"The answer is not valid: {first}{more}."


def _failure(error: object) -> CallError:
    if type(error) is not dict:
        raise AnswerInvalid(f"The answer's error must be an object, not {described(error)}.")
    text, data = error.get("text"), error.get("data")
    code = data.get("code") if type(data) is dict else None
    if type(text) is not str or type(data) is not dict or type(code) is not str:
        raise AnswerInvalid("The answer's error must have a text and data with a code.")
    read = _FAILURES.get(code)
    failure = UnknownFailure("", _plain(code)) if read is None else read(data)
    # The gateway's own words, which may be of another version than ours.
    failure.text = _plain(text)
    failure.args = (failure.text,)
    return failure


def _violations(data: dict[str, Any]) -> list[str]:
    violations = data.get("violations")
    if type(violations) is not list or not all(type(each) is str for each in violations):
        raise AnswerInvalid("The answer's error must have violations, a list of texts.")
    return [_plain(each) for each in violations] or ["(none was named)"]


def _wait(data: dict[str, Any]) -> int:
    wait = data.get("retryAfterMs")
    if type(wait) is not int or not 0 <= wait <= MAX_MILLISECONDS:
        raise AnswerInvalid(f"The answer's retryAfterMs must not be {described(wait)}.")
    return wait


def _optional_text(data: dict[str, Any], key: str) -> str | None:
    value = data.get(key)
    if value is not None and type(value) is not str:
        raise AnswerInvalid(f"The answer's error has {quoted(key)} as {described(value)}.")
    return None if value is None else _plain(value)


def _plain(text: str) -> str:
    return plain(text, _LONGEST_TEXT)


_FAILURES: Final[dict[str, Callable[[dict[str, Any]], CallError]]] = {
    EnvelopeInvalid.code: lambda _: EnvelopeInvalid(""),
    MethodUnknown.code: lambda _: MethodUnknown(),
    Unauthorized.code: lambda _: Unauthorized(),
    Forbidden.code: lambda data: Forbidden(_optional_text(data, "capability"), ""),
    HostnameForbidden.code: lambda _: HostnameForbidden(""),
    RequestInvalid.code: lambda data: RequestInvalid(_violations(data)),
    Unavailable.code: lambda data: Unavailable(_wait(data)),
    Overloaded.code: lambda data: Overloaded(_wait(data)),
    Internal.code: lambda data: Internal(_optional_text(data, "incidentId") or "unknown"),
}
