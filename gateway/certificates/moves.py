"""The moves of an issuance that the machine's transitions are made of: pure.

`Moment` is when a transition is decided, `Step` what it comes to. A move takes an issuance to a
state and sets when it is due there; which one is right is decided in `machine` and `mishaps`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gateway.certificates.states import Issuance, Reason, State, replace

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gateway.certificates.events import Command

FIRST_LOOK_MS: Final = 10
LONGEST_LOOK_MS: Final = 5_000
VALIDATION_BOUND_MS: Final = 600_000
PROCESSING_BOUND_MS: Final = 24 * 3_600_000

SHORT_HOLD_MS: Final = 60_000
"""What is held for no longer is waited for; past it another authority is turned to."""

LONGEST_REST_MS: Final = 600_000
"""A held order is looked at again after this time: what holds it may have ended before."""

FIRST_CONTEST_MS: Final = 30_000
LONGEST_CONTEST_MS: Final = 3_600_000
"""What is held by a limit and finds nothing left at the time it was told rests ever longer: a
thousand that wait for one figure would else all look whenever one of them can go on."""

FIRST_FAULT_MS: Final = 1_000
LONGEST_FAULT_MS: Final = 600_000
FIRST_FAILURE_MS: Final = 60_000
LONGEST_FAILURE_MS: Final = 6 * 3_600_000


@dataclass(frozen=True, slots=True)
class Moment:
    """When a step is decided: epoch milliseconds, and a random share (0 to 1) for jitter."""

    now_ms: int
    jitter: float


@dataclass(frozen=True, slots=True)
class Step:
    """The issuance afterwards, and the command to carry out at once, if any."""

    issuance: Issuance
    command: Command | None = None


def wait_ms(first_ms: int, longest_ms: int, times: int, jitter: float) -> int:
    """An exponential wait: doubles from `first_ms` to `longest_ms`, then spread down by a fifth."""
    full = min(longest_ms, first_ms * 2 ** min(times, 30))
    return int(full * (1 - 0.2 * jitter))


def fault_pause_ms(issuance: Issuance, moment: Moment, retry_after_seconds: float | None) -> int:
    """How long to rest after a passing fault: ever longer, and as long as a server asked for."""
    backoff = wait_ms(FIRST_FAULT_MS, LONGEST_FAULT_MS, issuance.faults, moment.jitter)
    return max(backoff, int((retry_after_seconds or 0) * 1000))


def failure_pause_ms(failures: int, moment: Moment) -> int:
    """How long to rest before a new order after the `failures`th that came to nothing."""
    return wait_ms(FIRST_FAILURE_MS, LONGEST_FAILURE_MS, failures - 1, moment.jitter)


def moved(issuance: Issuance, state: State, moment: Moment, **changes: object) -> Issuance:
    """In another state, and due there at once."""
    fresh = {
        "changed_at_ms": moment.now_ms,
        "due_at_ms": moment.now_ms,
        "looks": 0,
        "passed_ms": _passed_ms(issuance, state, moment),
    }
    cleared = {
        "resume": None,
        "reason": None,
        "message": None,
        "told_until_ms": None,
        "barred": False,
    }
    return replace(issuance, state=state, **(fresh | cleared | changes))  # type: ignore[arg-type]


def _passed_ms(issuance: Issuance, state: State, moment: Moment) -> Mapping[str, int]:
    """When each state was entered, with this one. One that comes to nothing keeps what it passed.

    A new attempt begins in `requested`; one that got no further before goes on being the same.
    """
    passed = issuance.passed_ms
    if state in {State.WAITING, State.FAILED}:
        return passed
    if state is State.REQUESTED and set(passed) - {state.value}:
        passed = {}
    return {**passed, state.value: passed.get(state.value, moment.now_ms)}


def look_again(issuance: Issuance, moment: Moment, retry_after_seconds: float | None) -> Step:
    """Stay in the state, and ask again after a poll's pause."""
    if retry_after_seconds is not None and retry_after_seconds > 0:
        pause_ms = int(retry_after_seconds * 1000)
    else:
        pause_ms = wait_ms(FIRST_LOOK_MS, LONGEST_LOOK_MS, issuance.looks, 0)
    return Step(replace(issuance, looks=issuance.looks + 1, due_at_ms=moment.now_ms + pause_ms))


def look_again_bounded(
    issuance: Issuance,
    moment: Moment,
    retry_after_seconds: float | None,
    bound_ms: int = VALIDATION_BOUND_MS,
) -> Step:
    """The same, until the issuance has been in the state for too long."""
    left_ms = issuance.changed_at_ms + bound_ms - moment.now_ms
    if left_ms > 0:
        looking = look_again(issuance, moment, retry_after_seconds).issuance
        due_at_ms = min(looking.due_at_ms, moment.now_ms + left_ms)
        return Step(replace(looking, due_at_ms=due_at_ms))
    message = "the authority has not come to a decision on the hostname"
    return fail(issuance, moment, Reason.ISSUANCE_FAILED, message)


def wait(issuance: Issuance, moment: Moment, reason: Reason, message: str, pause_ms: int) -> Step:
    """Rest after a passing fault; go on in the same state, with the same order if there is one.

    A new name without one is granted it anew then (`grants`).
    """
    resume = issuance.resume if issuance.state is State.WAITING else issuance.state
    waiting = moved(issuance, State.WAITING, moment, due_at_ms=moment.now_ms + pause_ms)
    return Step(
        replace(
            waiting,
            resume=resume,
            reason=reason,
            message=message,
            faults=issuance.faults + 1,
            lapsed=issuance.is_granted and resume is State.REQUESTED and not issuance.renewal,
        )
    )


def fail(issuance: Issuance, moment: Moment, reason: Reason, message: str) -> Step:
    """The order came to nothing: forget it and its key, and begin anew after a longer while."""
    failures = issuance.failures + 1
    failed = moved(without_key(without_order(issuance)), State.FAILED, moment)
    due_at_ms = moment.now_ms + failure_pause_ms(failures, moment)
    return Step(
        replace(failed, failures=failures, reason=reason, message=message, due_at_ms=due_at_ms)
    )


def order_anew(issuance: Issuance, moment: Moment, message: str) -> Step:
    """The order can no longer be used though nothing is wrong: place another, after a pause.

    A longer one each time: else an authority that loses every order would get one a second.
    """
    pause_ms = wait_ms(FIRST_FAULT_MS, LONGEST_FAILURE_MS, issuance.orders_lost, moment.jitter)
    reason = Reason.AUTHORITY_UNAVAILABLE
    waiting = wait(without_key(without_order(issuance)), moment, reason, message, pause_ms)
    lost = issuance.orders_lost + 1
    return Step(replace(waiting.issuance, resume=State.REQUESTED, orders_lost=lost))


def go_elsewhere(issuance: Issuance, moment: Moment, until_ms: int) -> Step:
    """Leave the authority alone until then; choose another one at once, with a new key."""
    passed_over = {
        url: over_ms for url, over_ms in issuance.passed_over.items() if over_ms > moment.now_ms
    }
    if issuance.directory_url is not None:
        passed_over[issuance.directory_url] = until_ms
    anew = without_key(without_order(issuance))
    return Step(moved(anew, State.REQUESTED, moment, passed_over=passed_over, faults=0, away=0))


def without_order(issuance: Issuance) -> Issuance:
    """Without its order, and whatever belongs to it: the next one is a new choice."""
    return replace(
        without_challenge(issuance),
        failed_at=issuance.directory_url or issuance.failed_at,
        directory_url=None,
        lapsed=False,
        replaces=None,
        order_url=None,
        finalize_url=None,
        authorization_url=None,
        certificate_url=None,
    )


def without_challenge(issuance: Issuance) -> Issuance:
    """Without its challenge: the authorization is to be read again."""
    return replace(
        issuance,
        challenge_url=None,
        challenge_zone=None,
        challenge_name=None,
        challenge_value=None,
        challenge_key=None,
        published_at_ms=None,
    )


def without_key(issuance: Issuance) -> Issuance:
    """Without its key and CSR: the next order gets new ones."""
    return replace(issuance, sealed_key=None, csr=None)
