"""The failures of a call, as one tree: what the caller is told when no method could answer.

Responsible for the code, the sentence and the data of each failure. An outcome of an admitted call
is no failure and not here: it is a `status` in a response. Raised by every layer of the gateway and
rendered by the envelope; raised again on the client's side, which reads them back (`answers`). No
text here ever holds a token, a key or another client's name.

    GatewayError                what a call may end with on the client's side
        AnswerInvalid           the answer breaks the contract
        CallError               the gateway answered with an error
            EnvelopeInvalid     the body is no request at all
            MethodUnknown
            Unauthorized
            Forbidden           the role or a capability is missing
            RequestInvalid      the schema or a value
            HostnameForbidden   none of the client's patterns
            Overloaded          later, for this caller or for everybody
            Unavailable         later, the store cannot be reached
            Internal            a fault of the gateway
            UnknownFailure      a code of a newer gateway
"""

from collections.abc import Sequence
from typing import Any


class GatewayError(Exception):
    """Base of everything that a call may end with; `text` is one sentence for a person."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    def __reduce__(self) -> tuple[Any, ...]:
        """How it is copied and sent to another process, whatever its class is made of."""
        return _made_again, (type(self), self.args), self.__dict__


def _made_again(kind: type[GatewayError], args: tuple[Any, ...]) -> GatewayError:
    return kind.__new__(kind, *args)


class AnswerInvalid(GatewayError):
    """What was answered breaks the contract, so that nothing of it is used."""


class CallError(GatewayError):
    """Base of all failures that reach the caller as an `error` in the envelope."""

    code: str
    http_status: int = 200

    def data(self) -> dict[str, Any]:
        """The part of the error that is meant for programs."""
        return {"code": self.code}


class EnvelopeInvalid(CallError):
    """The body cannot be read as a request, so that nobody knows what was asked."""

    code = "envelope-invalid"

    def __init__(self, text: str, http_status: int = 400) -> None:
        super().__init__(text)
        self.http_status = http_status


class MethodUnknown(CallError):
    """There is no such method; the text is the one that the ecosystem's own router answers."""

    code = "method-unknown"

    def __init__(self) -> None:
        super().__init__("There is no available method for this call on the server side")


class Unauthorized(CallError):
    """No token, or one that is unknown, expired or revoked; always the same words."""

    code = "unauthorized"

    def __init__(self) -> None:
        super().__init__("The call needs a valid apiToken.")


class Forbidden(CallError):
    """The credential is good and may not call this; `capability` is None if its role is wrong."""

    code = "forbidden"

    def __init__(self, capability: str | None, text: str) -> None:
        super().__init__(text)
        self.capability = capability

    def data(self) -> dict[str, Any]:
        """The code, and the capability that is missing if it is one."""
        return super().data() | {"capability": self.capability}


class HostnameForbidden(CallError):
    """The hostname is valid and matches none of the client's patterns."""

    code = "hostname-forbidden"

    def __init__(self, hostname: str) -> None:
        super().__init__(f"The hostname {hostname} matches none of the client's hostname patterns.")


class RequestInvalid(CallError):
    """The request breaks its schema; `violations` are all of them, each with its path first."""

    code = "request-invalid"

    def __init__(self, violations: Sequence[str]) -> None:
        more = f" (and {len(violations) - 1} more)" if len(violations) > 1 else ""
        super().__init__(f"The request is not valid: {violations[0]}{more}.")
        self.violations = tuple(violations)

    def data(self) -> dict[str, Any]:
        """The code and every violation."""
        return super().data() | {"violations": list(self.violations)}


class _AskAgain(CallError):
    def __init__(self, text: str, retry_after_ms: int) -> None:
        super().__init__(text)
        self.retry_after_ms = retry_after_ms

    def data(self) -> dict[str, Any]:
        """The code and when asking again makes sense."""
        return super().data() | {"retryAfterMs": self.retry_after_ms}


class Unavailable(_AskAgain):
    """Nothing can be decided now; mostly since the gateway's store cannot be reached."""

    code = "unavailable"

    def __init__(
        self, retry_after_ms: int, text: str = "The gateway cannot reach its store right now."
    ) -> None:
        super().__init__(text, retry_after_ms)


class Overloaded(_AskAgain):
    """A limit was reached, the caller's own or that of the service."""

    code = "overloaded"

    def __init__(
        self, retry_after_ms: int, text: str = "The gateway takes no more calls right now."
    ) -> None:
        super().__init__(text, retry_after_ms)


class Internal(CallError):
    """A fault of the gateway itself; its log says more under the same incident."""

    code = "internal"

    def __init__(self, incident_id: str) -> None:
        super().__init__("The gateway failed in an unexpected way; its log has the incident.")
        self.incident_id = incident_id

    def data(self) -> dict[str, Any]:
        """The code and the incident under which the gateway's log has the details."""
        return super().data() | {"incidentId": self.incident_id}


class UnknownFailure(CallError):
    """A failure with a code that this build does not know; raised on the client's side only."""

    def __init__(self, text: str, code: str) -> None:
        super().__init__(text)
        self.code = code
