"""What can go wrong on the way to a gateway and back, beside what the gateway itself answers.

Responsible for the errors that only a client has. They stand in one tree with the contract's
(`gateway.contract.errors`), so that `except GatewayError` catches all of them:

    GatewayError
        CallError           the gateway answered with an error: a class for each code
        AnswerInvalid       the answer breaks the contract
            NoGateway       it has an HTTP status that no gateway answers with
        Unreachable         no connection, or it broke before an answer
        DeadlinePassed      no answer within the time for the whole call
        IssuanceRefused     there is no certificate and waiting on is no use

No text here ever holds a token or a key.
"""

from typing import Final

from gateway.contract import AnswerInvalid, GatewayError, RefusalReason
from gateway.contract.faults import plain

_LONGEST_MESSAGE: Final = 2_000


class NoGateway(AnswerInvalid):
    """What answered is no gateway, so it is the same for whatever is asked."""


class Unreachable(GatewayError):
    """No answer: no connection could be made, or it broke before the answer was complete.

    `may_have_arrived`: whether the gateway may have got the call and carried it out.
    `is_lasting`: whether asking again is no use until somebody changes something (a certificate
    that is not trusted).
    `retry_after_ms`: when asking again makes sense, if what stands before the gateway said so.
    """

    def __init__(
        self,
        text: str,
        *,
        may_have_arrived: bool,
        is_lasting: bool = False,
        retry_after_ms: int | None = None,
    ) -> None:
        super().__init__(text)
        self.may_have_arrived = may_have_arrived
        self.is_lasting = is_lasting
        self.retry_after_ms = retry_after_ms


class DeadlinePassed(GatewayError):
    """The time for the whole call is over.

    `may_have_arrived`: whether the gateway may have got the call and carried it out; false if no
    attempt came further than connecting.
    """

    def __init__(self, text: str, *, may_have_arrived: bool) -> None:
        super().__init__(text)
        self.may_have_arrived = may_have_arrived


class IssuanceRefused(GatewayError):
    """The gateway has no certificate and expects none in the time that is left.

    `retry_after_ms`: when asking again makes sense, None if only after something else changed.
    """

    def __init__(
        self, hostname: str, reason: RefusalReason, message: str, retry_after_ms: int | None
    ) -> None:
        super().__init__(
            f"No certificate for {hostname} ({reason}): {plain(message, _LONGEST_MESSAGE)}"
        )
        self.reason = reason
        self.message = message
        self.retry_after_ms = retry_after_ms
