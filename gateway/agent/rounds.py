"""What a keeper's round comes to: what was done, what is wrong, and when to come back.

Responsible for the words that keepers and the loop around them share, for the pauses after
failures, and for what each failure of a call means to an agent. Pure: randomness comes in as a
number. Must not: talk to anybody. Used by the keepers, `contact`, `service` and `once`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from gateway.agent.clocks import DAY_MS, MINUTE_MS
from gateway.client import (
    AnswerInvalid,
    DeadlinePassed,
    GatewayError,
    Internal,
    Overloaded,
    Unauthorized,
    Unavailable,
    Unreachable,
)
from gateway.client.errors import NoGateway

OPERATOR_PAUSE_MS: Final = 5 * MINUTE_MS
"""How long to wait where only a person can mend it: short enough to notice soon that one has."""

LONGEST_PAUSE_MS: Final = 5 * MINUTE_MS
SHORTEST_PAUSE_MS: Final = 200
"""An answer that says "again at once" must not become a loop."""

LONGEST_TOLD_PAUSE_MS: Final = DAY_MS
"""An answer that says "again in a thousand years" must not end the agent's work."""

_LONGEST_SENTENCE: Final = 600

_MOST_DOUBLINGS: Final = 30  # beyond any longest pause; keeps the power small


@dataclass(frozen=True, slots=True)
class Fault:
    """Why something is not as it should be, in one sentence without secrets.

    `mends` says that waiting helps; else a person has to act. `is_shared` says that every call has
    it: no way to the gateway, no token. `incident` is the gateway's own name for what failed, new
    each time, so two faults are the same whatever it is. Whatever a sentence quotes of an answer,
    it comes out printable, on one line and of bounded length. `is_logged`: whoever met it has
    written it to the log each time, with more than a sentence can hold.
    """

    sentence: str
    mends: bool
    is_shared: bool = False
    incident: str | None = field(default=None, compare=False)
    is_logged: bool = field(default=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "sentence", _readable(self.sentence))

    def __str__(self) -> str:
        if self.incident is None:
            return self.sentence
        return f"{self.sentence} (incident {_readable(self.incident)})"


@dataclass(frozen=True, slots=True)
class Round:
    """What a round came to, and after how many milliseconds the next one is due.

    `done` has a sentence for each change that was made. `awaits` says what is under way and needs
    nothing but time. Neither it nor a fault: all is current. `tries` is how often in a row it has
    failed, where others are told that.
    """

    pause_ms: int
    done: tuple[str, ...] = ()
    awaits: str | None = None
    fault: Fault | None = None
    tries: int = 0

    @property
    def is_current(self) -> bool:
        """Whether there is nothing left to do before the next look."""
        return self.awaits is None and self.fault is None

    @property
    def needs_a_person(self) -> bool:
        """Whether waiting does not help."""
        return self.fault is not None and not self.fault.mends

    def differs_from(self, last: Round | None) -> bool:
        """Whether there is something new to report."""
        if last is None or self.done:
            return True
        return (self.fault, self.awaits, self.tries) != (last.fault, last.awaits, last.tries)


def backoff_ms(
    failures: int,
    jitter: float,
    *,
    first_ms: int,
    longest_ms: int = LONGEST_PAUSE_MS,
) -> int:
    """The pause after so many failures in a row (1 or more), doubling up to the longest.

    `jitter`, from 0 to 1, takes up to a quarter off, so that what failed together comes back apart.
    """
    doublings = min(failures - 1, _MOST_DOUBLINGS)
    whole = min(first_ms << doublings, longest_ms)
    return round(whole * (1 - jitter / 4))


def told_pause_ms(retry_after_ms: int) -> int:
    """The pause that the gateway asked for, as far as that is reasonable."""
    return min(max(retry_after_ms, SHORTEST_PAUSE_MS), LONGEST_TOLD_PAUSE_MS)


def held_ms(until_ms: int | None, now_ms: int) -> int:
    """What is left of a wait that the gateway told an earlier run; 0 when it is over.

    No wait is longer than a day, so one that ends later was told by a clock that was wrong.
    """
    left_ms = (until_ms or 0) - now_ms
    return left_ms if 0 < left_ms <= LONGEST_TOLD_PAUSE_MS else 0


def fault_of_call(error: GatewayError) -> Fault:
    """What a failed call means: whether waiting mends it, and whether every call has it."""
    mends = isinstance(error, Unreachable | DeadlinePassed | Unavailable | Overloaded | Internal)
    if isinstance(error, Unreachable) and error.is_lasting:
        mends = False
    incident = error.incident_id if isinstance(error, Internal) else None
    return Fault(str(error), mends, _is_shared(error), incident)


def is_suspect(error: GatewayError) -> bool:
    """Whether a failed call may be the whole gateway's fault, or that of one hostname's call alone.

    It is the whole gateway's when several hostnames in a row have it: `contact` counts.
    """
    if isinstance(error, Overloaded) and error.retry_after_ms > LONGEST_PAUSE_MS:
        # No gateway is that busy: the client holds as many hostnames as it may.
        return False
    passing = Unreachable | DeadlinePassed | Unavailable | Overloaded | Internal | NoGateway
    return isinstance(error, passing) and not _is_shared(error)


def _is_shared(error: GatewayError) -> bool:
    if isinstance(error, Unreachable | DeadlinePassed):
        # What came as far as the gateway may have hung or broken there for this call's own sake.
        return not error.may_have_arrived
    return isinstance(error, Unauthorized)


def wait_of_call_ms(error: GatewayError) -> int:
    """How long the gateway, or what stands before it, asked to wait; 0 if it did not."""
    if isinstance(error, Unavailable | Overloaded | Unreachable):
        wait_ms = error.retry_after_ms
        return 0 if wait_ms is None else told_pause_ms(wait_ms)
    return 0


def pause_of_call_ms(error: GatewayError, failures: int, jitter: float, first_ms: int) -> int:
    """How long to wait after a failed call, the `failures`th in a row."""
    if isinstance(error, AnswerInvalid) or fault_of_call(error).mends:
        # The gateway's word counts, but no more calls than that after each further failure.
        return max(wait_of_call_ms(error), backoff_ms(failures, jitter, first_ms=first_ms))
    return OPERATOR_PAUSE_MS


def _readable(text: str) -> str:
    line = "".join(each if each.isprintable() else " " for each in text)
    return line if len(line) <= _LONGEST_SENTENCE else f"{line[:_LONGEST_SENTENCE]}…"
