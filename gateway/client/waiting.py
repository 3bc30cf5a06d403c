"""How a client waits for a certificate: when to ask next, and when to stop. Pure.

Responsible for the decision after each answer. Knows no clock and makes no call: the times are
handed in, as seconds of any clock that only goes forward. Used by both clients.
"""

from dataclasses import dataclass
from typing import Final, NoReturn

from gateway.client.errors import DeadlinePassed, IssuanceRefused, Unreachable
from gateway.contract import (
    CertificatePending,
    CertificateRefused,
    GatewayError,
    Overloaded,
    Unavailable,
)

SHORTEST_PAUSE_SECONDS: Final = 0.1
PAUSE_AFTER_FAILURE_SECONDS: Final = 2.0
LAST_QUESTION_SECONDS: Final = 2.0
"""What is kept of the time for the answer to a last question; of a short time, its half."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Where the waiting stands after an answer (or after a failure that passes). Seconds."""

    answer: CertificatePending | CertificateRefused | GatewayError
    waited_seconds: float
    next_in_seconds: float
    left_seconds: float


@dataclass(frozen=True, slots=True)
class Waiting:
    """One wait for the certificate of a hostname, from `started_at` for `timeout` seconds."""

    hostname: str
    timeout: float
    started_at: float

    def left(self, now: float) -> float:
        """Seconds until the waiting ends, never negative."""
        return max(0.0, self.started_at + self.timeout - now)

    def after(
        self, answer: CertificatePending | CertificateRefused | GatewayError, now: float
    ) -> Progress:
        """When to ask next after this answer.

        If an issuance is expected to take longer than the time that is left, a last question is
        asked shortly before its end. Any other answer with such a wait ends the waiting at once.

        Raises:
            DeadlinePassed: no time is left for another question.
            IssuanceRefused: the gateway expects no certificate in the time that is left.
            GatewayError: the failure itself, where asking again is no use, or not in time.

        """
        left = self.left(now)
        if isinstance(answer, CertificateRefused):
            pause = self._pause_after_refusal(answer, left)
        elif isinstance(answer, CertificatePending):
            pause = answer.retry_after_ms / 1000
        elif _passes(answer):
            pause = self._pause_after_failure(answer, left)
        else:
            raise answer
        pause = max(pause, SHORTEST_PAUSE_SECONDS)
        waited = now - self.started_at
        if pause >= left:
            is_last = isinstance(answer, CertificatePending)
            pause = left - min(LAST_QUESTION_SECONDS, self.timeout / 2) if is_last else 0.0
        if pause <= 0:
            self._end(answer, waited)
        return Progress(answer, waited, pause, left)

    def _pause_after_refusal(self, refused: CertificateRefused, left: float) -> float:
        wait_ms = refused.retry_after_ms
        if wait_ms is None or wait_ms / 1000 > left:
            raise IssuanceRefused(self.hostname, refused.reason, refused.message, wait_ms)
        return wait_ms / 1000

    def _pause_after_failure(self, failure: GatewayError, left: float) -> float:
        if not isinstance(failure, Unavailable | Overloaded | Unreachable):
            return PAUSE_AFTER_FAILURE_SECONDS
        wait_seconds = (failure.retry_after_ms or 0) / 1000
        if wait_seconds > left:
            raise failure
        return max(wait_seconds, PAUSE_AFTER_FAILURE_SECONDS)

    def _end(
        self, answer: CertificatePending | CertificateRefused | GatewayError, waited: float
    ) -> NoReturn:
        last = answer.text if isinstance(answer, GatewayError) else f"it is {answer.status}."
        arrived = not isinstance(answer, Unreachable | DeadlinePassed) or answer.may_have_arrived
        raise DeadlinePassed(
            f"No certificate for {self.hostname} after {waited:.1f} seconds; the last answer: "
            f"{last}",
            may_have_arrived=arrived,
        )


def _passes(failure: GatewayError) -> bool:
    """Whether a failure may be over by itself."""
    if isinstance(failure, Unreachable):
        return not failure.is_lasting
    return isinstance(failure, Unavailable | Overloaded | DeadlinePassed)
