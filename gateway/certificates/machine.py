"""The issuance state machine: `advance(issuance, event, moment) -> Step`, pure.

It decides, the worker acts: no clock, no randomness, no I/O. A step names at most one command to
carry out at once; without one the issuance rests until its `due_at_ms`. Whoever carries a command
out stores the step's issuance first, so the next process finds all it needs: key and CSR before the
order, the order's URL at once after it, the challenge's place and value before it is published.

Where a process may have died, the order is read again before anything is chosen: it may be ready or
valid already (RFC 8555 section 7.1.6: reused authorizations, a crash after finalize). An event that
cannot happen in a state raises `Unexpected`.

Polling follows the CA's Retry-After where it gives one. Else it begins at 25 ms, since most CAs
and servers are done within milliseconds, and doubles to 5 s: a fixed second, as most clients have
it, costs a second on every issuance.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from gateway.certificates import events
from gateway.certificates.events import Command
from gateway.certificates.orders import FaultKind
from gateway.certificates.states import Issuance, Reason, State

if TYPE_CHECKING:
    from collections.abc import Callable

    from gateway.certificates.events import Event
    from gateway.certificates.orders import AuthorizationView, OrderView

FIRST_LOOK_MS: Final = 25
LONGEST_LOOK_MS: Final = 5_000
PROPAGATION_BOUND_MS: Final = 120_000
VALIDATION_BOUND_MS: Final = 600_000
PROCESSING_BOUND_MS: Final = 24 * 3_600_000

FIRST_FAULT_MS: Final = 1_000
LONGEST_FAULT_MS: Final = 600_000
FIRST_FAILURE_MS: Final = 60_000
LONGEST_FAILURE_MS: Final = 6 * 3_600_000


class Unexpected(Exception):
    """An event that the machine does not list for the state: a fault of the gateway."""


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


def request(issuance_id: str, moment: Moment, *, renewal: bool = False) -> Issuance:
    """A new issuance, due at once."""
    return Issuance(
        issuance_id=issuance_id,
        state=State.REQUESTED,
        begun_at_ms=moment.now_ms,
        changed_at_ms=moment.now_ms,
        due_at_ms=moment.now_ms,
        renewal=renewal,
    )


def advance(issuance: Issuance, event: Event, moment: Moment) -> Step:
    """What an event makes of an issuance.

    Raises:
        Unexpected: when the state does not expect the event.
    """
    decide = _TRANSITIONS.get((issuance.state, type(event)))
    if decide is None:
        raise Unexpected(f"{type(event).__name__} in state {issuance.state}")
    return decide(issuance, event, moment)


def wait_ms(first_ms: int, longest_ms: int, times: int, jitter: float) -> int:
    """An exponential wait: doubles from `first_ms` to `longest_ms`, then spread down by a fifth."""
    full = min(longest_ms, first_ms * 2 ** min(times, 30))
    return int(full * (1 - 0.2 * jitter))


def _moved(issuance: Issuance, state: State, moment: Moment, **changes: object) -> Issuance:
    fresh = {"changed_at_ms": moment.now_ms, "due_at_ms": moment.now_ms, "looks": 0}
    cleared = {"resume": None, "reason": None, "message": None}
    return replace(issuance, state=state, **(fresh | cleared | changes))  # type: ignore[arg-type]


def _look_again(issuance: Issuance, moment: Moment, retry_after_seconds: float | None) -> Step:
    if retry_after_seconds is not None and retry_after_seconds > 0:
        pause_ms = int(retry_after_seconds * 1000)
    else:
        pause_ms = wait_ms(FIRST_LOOK_MS, LONGEST_LOOK_MS, issuance.looks, 0)
    return Step(replace(issuance, looks=issuance.looks + 1, due_at_ms=moment.now_ms + pause_ms))


def _wait(issuance: Issuance, moment: Moment, reason: Reason, message: str, pause_ms: int) -> Step:
    """Rest after a passing fault; go on in the same state, with the same order."""
    resume = issuance.resume if issuance.state is State.WAITING else issuance.state
    waiting = _moved(issuance, State.WAITING, moment, due_at_ms=moment.now_ms + pause_ms)
    faults = issuance.faults + 1
    return Step(replace(waiting, resume=resume, reason=reason, message=message, faults=faults))


def _without_order(issuance: Issuance) -> Issuance:
    return replace(
        issuance,
        order_url=None,
        finalize_url=None,
        authorization_url=None,
        certificate_url=None,
        challenge_url=None,
        challenge_zone=None,
        challenge_name=None,
        challenge_value=None,
    )


def _fail(issuance: Issuance, moment: Moment, reason: Reason, message: str) -> Step:
    """The order came to nothing: forget it and its key, and begin anew after a longer while."""
    failures = issuance.failures + 1
    pause_ms = wait_ms(FIRST_FAILURE_MS, LONGEST_FAILURE_MS, failures - 1, moment.jitter)
    failed = _moved(_without_order(issuance), State.FAILED, moment)
    return Step(
        replace(
            failed,
            failures=failures,
            sealed_key=None,
            csr=None,
            reason=reason,
            message=message,
            due_at_ms=moment.now_ms + pause_ms,
        )
    )


def _order_anew(issuance: Issuance, moment: Moment, message: str) -> Step:
    """The order can no longer be used though nothing is wrong: place another, after a pause."""
    waiting = _wait(
        _without_order(issuance),
        moment,
        Reason.AUTHORITY_UNAVAILABLE,
        message,
        _fault_pause_ms(issuance, moment, None),
    )
    return Step(replace(waiting.issuance, resume=State.REQUESTED))


def _fault_pause_ms(issuance: Issuance, moment: Moment, retry_after: float | None) -> int:
    backoff = wait_ms(FIRST_FAULT_MS, LONGEST_FAULT_MS, issuance.faults, moment.jitter)
    return max(backoff, int((retry_after or 0) * 1000))


# Due: what to do next, told from the state alone.


def _due(issuance: Issuance, _: Event, moment: Moment) -> Step:
    if issuance.state in {State.WAITING, State.FAILED}:
        on = issuance.resume or State.REQUESTED
        return _due(_moved(issuance, on, moment, begun_at_ms=moment.now_ms), _, moment)
    if issuance.state is State.REQUESTED and issuance.sealed_key is None:
        return Step(issuance, Command.MAKE_KEY)
    return Step(issuance, _NEXT[issuance.state])


_NEXT: Final = {
    State.REQUESTED: Command.PLACE_ORDER,
    State.ORDERED: Command.READ_ORDER,
    State.PUBLISHED: Command.CHECK_PROPAGATION,
    State.PROPAGATED: Command.READ_ORDER,
    State.VALIDATING: Command.READ_AUTHORIZATION,
    State.READY: Command.READ_ORDER,
    State.FINALIZING: Command.READ_ORDER,
    State.ISSUED: None,
}


# The smooth way.


def _key_made(issuance: Issuance, event: events.KeyMade, _: Moment) -> Step:
    keyed = replace(issuance, sealed_key=event.sealed_key, csr=event.csr)
    return Step(keyed, Command.PLACE_ORDER)


def _order_placed(issuance: Issuance, event: events.OrderSeen, moment: Moment) -> Step:
    order = event.order
    placed = _moved(
        issuance, State.ORDERED, moment, order_url=order.url, finalize_url=order.finalize_url
    )
    return _order_seen(placed, event, moment)


def _order_seen(issuance: Issuance, event: events.OrderSeen, moment: Moment) -> Step:
    order = event.order
    if order.status == "pending":
        return _order_pending(issuance, order, moment)
    if order.status == "ready":
        return _order_ready(issuance, moment)
    if order.status == "processing":
        finalizing, pause = _finalizing(issuance, moment), order.retry_after_seconds
        return _look_again_bounded(finalizing, moment, pause, PROCESSING_BOUND_MS)
    if order.status == "valid" and order.certificate_url:
        valid = replace(_finalizing(issuance, moment), certificate_url=order.certificate_url)
        return Step(valid, Command.FETCH_CERTIFICATE)
    problem = order.problem or f"the authority calls the order {order.status}"
    return _fail(issuance, moment, Reason.ISSUANCE_FAILED, problem)


def _order_pending(issuance: Issuance, order: OrderView, moment: Moment) -> Step:
    if not order.authorization_urls:
        return _fail(issuance, moment, Reason.ISSUANCE_FAILED, "the order has no authorization")
    if issuance.state is State.PROPAGATED:
        return Step(issuance, Command.ANSWER_CHALLENGE)
    if issuance.state is State.ORDERED:
        known = replace(issuance, authorization_url=order.authorization_urls[0])
        if issuance.challenge_value is None:
            return Step(known, Command.READ_AUTHORIZATION)
        if issuance.challenge_name is None:
            return Step(known, Command.LOCATE_CHALLENGE)
        return Step(known, Command.PUBLISH_CHALLENGE)
    return _look_again_bounded(issuance, moment, order.retry_after_seconds)


def _order_ready(issuance: Issuance, moment: Moment) -> Step:
    if issuance.state is State.READY:
        return Step(issuance, Command.FINALIZE)
    return Step(
        _moved(issuance, State.READY, moment, challenge_value=None, faults=0), Command.FINALIZE
    )


def _finalized(issuance: Issuance, event: events.Finalized, moment: Moment) -> Step:
    if event.order.status == "ready":
        # It took the CSR and changed nothing; asked again at once, it might go on like that.
        return _look_again_bounded(issuance, moment, event.order.retry_after_seconds)
    return _order_seen(issuance, events.OrderSeen(event.order), moment)


def _finalizing(issuance: Issuance, moment: Moment) -> Issuance:
    if issuance.state is State.FINALIZING:
        return issuance
    return _moved(issuance, State.FINALIZING, moment, challenge_value=None)


def _authorization_seen(
    issuance: Issuance, event: events.AuthorizationSeen, moment: Moment
) -> Step:
    authorization = event.authorization
    if authorization.status == "valid":
        return _authorization_valid(issuance, moment)
    if authorization.status == "invalid":
        problem = authorization.problem or "the authority could not validate the hostname"
        return _fail(issuance, moment, Reason.ISSUANCE_FAILED, problem)
    if authorization.status != "pending":
        return _order_anew(issuance, moment, f"the authorization is {authorization.status}")
    if issuance.state is State.VALIDATING:
        return _look_again_bounded(issuance, moment, authorization.retry_after_seconds)
    return _authorization_pending(issuance, authorization, moment)


def _authorization_valid(issuance: Issuance, moment: Moment) -> Step:
    if issuance.state is State.VALIDATING:
        return Step(issuance, Command.READ_ORDER)
    return _look_again_bounded(issuance, moment, None)


def _authorization_pending(
    issuance: Issuance, authorization: AuthorizationView, moment: Moment
) -> Step:
    if authorization.challenge_url is None or authorization.txt_value is None:
        message = "the authority offers no dns-01 challenge for this hostname"
        return _fail(issuance, moment, Reason.AUTHORITY_REFUSED, message)
    chosen = replace(
        issuance,
        challenge_url=authorization.challenge_url,
        challenge_value=authorization.txt_value,
    )
    if authorization.challenge_status == "processing":
        return _look_again(_moved(chosen, State.VALIDATING, moment), moment, None)
    return Step(chosen, Command.LOCATE_CHALLENGE)


def _challenge_located(issuance: Issuance, event: events.ChallengeLocated, _: Moment) -> Step:
    located = replace(issuance, challenge_zone=event.zone, challenge_name=event.name)
    return Step(located, Command.PUBLISH_CHALLENGE)


def _challenge_published(issuance: Issuance, _: Event, moment: Moment) -> Step:
    return Step(_moved(issuance, State.PUBLISHED, moment), Command.CHECK_PROPAGATION)


def _propagation_seen(issuance: Issuance, event: events.PropagationSeen, moment: Moment) -> Step:
    if not event.missing:
        return Step(_moved(issuance, State.PROPAGATED, moment), Command.ANSWER_CHALLENGE)
    if moment.now_ms - issuance.changed_at_ms < PROPAGATION_BOUND_MS:
        return _look_again(issuance, moment, None)
    servers = ", ".join(event.missing)
    message = f"the challenge record is not yet answered by {servers}"
    pause_ms = _fault_pause_ms(issuance, moment, None)
    waiting = _wait(issuance, moment, Reason.ZONE_UNAVAILABLE, message, pause_ms)
    # From the order on: it may have expired, and the record may be gone, which publishing mends.
    return Step(replace(waiting.issuance, resume=State.ORDERED))


def _challenge_answered(issuance: Issuance, _: Event, moment: Moment) -> Step:
    return _look_again(_moved(issuance, State.VALIDATING, moment), moment, None)


def _look_again_bounded(
    issuance: Issuance,
    moment: Moment,
    retry_after_seconds: float | None,
    bound_ms: int = VALIDATION_BOUND_MS,
) -> Step:
    if moment.now_ms - issuance.changed_at_ms < bound_ms:
        return _look_again(issuance, moment, retry_after_seconds)
    message = "the authority has not come to a decision on the hostname"
    return _fail(issuance, moment, Reason.ISSUANCE_FAILED, message)


def _certificate_fetched(issuance: Issuance, _: Event, moment: Moment) -> Step:
    return Step(_moved(issuance, State.ISSUED, moment))


def _certificate_rejected(
    issuance: Issuance, event: events.CertificateRejected, moment: Moment
) -> Step:
    return _fail(issuance, moment, Reason.ISSUANCE_FAILED, event.detail)


# What goes wrong.


def _authority_failed(issuance: Issuance, event: events.AuthorityFailed, moment: Moment) -> Step:
    if event.kind in {FaultKind.UNREACHABLE, FaultKind.SERVER_ERROR}:
        pause_ms = _fault_pause_ms(issuance, moment, event.retry_after_seconds)
        return _wait(issuance, moment, Reason.AUTHORITY_UNAVAILABLE, event.detail, pause_ms)
    if event.kind is FaultKind.RATE_LIMITED:
        backoff = wait_ms(FIRST_FAILURE_MS, LONGEST_FAILURE_MS, issuance.faults, moment.jitter)
        told = event.retry_after_seconds
        pause_ms = backoff if told is None else _fault_pause_ms(issuance, moment, told)
        return _wait(issuance, moment, Reason.RATE_LIMITED, event.detail, pause_ms)
    if event.kind is FaultKind.ACCOUNT_REFUSED:
        backoff = wait_ms(FIRST_FAILURE_MS, LONGEST_FAILURE_MS, issuance.faults, moment.jitter)
        return _wait(issuance, moment, Reason.AUTHORITY_REFUSED, event.detail, backoff)
    if event.kind in {FaultKind.ACCOUNT_MISSING, FaultKind.GONE}:
        return _order_anew(issuance, moment, event.detail)
    return _order_failed(issuance, event, moment)


def _order_failed(issuance: Issuance, event: events.AuthorityFailed, moment: Moment) -> Step:
    """The CA refused this very request; the authorization or the order may still explain it."""
    if event.kind is FaultKind.NOT_READY and issuance.state is State.READY:
        return _look_again_bounded(issuance, moment, event.retry_after_seconds)
    if event.kind is FaultKind.MALFORMED and issuance.state is State.PROPAGATED:
        # It was told to validate before (a crash, a lost answer) and will not be told again.
        return _look_again(_moved(issuance, State.VALIDATING, moment), moment, None)
    reason = Reason.AUTHORITY_REFUSED if event.kind is FaultKind.REFUSED else Reason.ISSUANCE_FAILED
    return _fail(issuance, moment, reason, event.detail)


def _zone_failed(issuance: Issuance, event: events.ZoneFailed, moment: Moment) -> Step:
    if event.retry_after_seconds is None:
        return _fail(issuance, moment, Reason.ZONE_UNAVAILABLE, event.detail)
    pause_ms = _fault_pause_ms(issuance, moment, event.retry_after_seconds)
    return _wait(issuance, moment, Reason.ZONE_UNAVAILABLE, event.detail, pause_ms)


def _step_broke(issuance: Issuance, event: events.StepBroke, moment: Moment) -> Step:
    message = f"the gateway itself failed; its log says more under {event.incident_id}"
    pause_ms = wait_ms(FIRST_FAILURE_MS, LONGEST_FAILURE_MS, issuance.faults, moment.jitter)
    return _wait(issuance, moment, Reason.ISSUANCE_FAILED, message, pause_ms)


_WITH_ORDER: Final = (
    State.ORDERED,
    State.PROPAGATED,
    State.VALIDATING,
    State.READY,
    State.FINALIZING,
)
_AT_WORK: Final = (State.REQUESTED, State.PUBLISHED, *_WITH_ORDER)

_TRANSITIONS: Final[dict[tuple[State, type], Callable[..., Step]]] = {
    **{(state, events.Due): _due for state in State},
    (State.REQUESTED, events.KeyMade): _key_made,
    (State.REQUESTED, events.OrderSeen): _order_placed,
    **{(state, events.OrderSeen): _order_seen for state in _WITH_ORDER},
    (State.READY, events.Finalized): _finalized,
    (State.ORDERED, events.AuthorizationSeen): _authorization_seen,
    (State.VALIDATING, events.AuthorizationSeen): _authorization_seen,
    (State.ORDERED, events.ChallengeLocated): _challenge_located,
    (State.ORDERED, events.ChallengePublished): _challenge_published,
    (State.PUBLISHED, events.PropagationSeen): _propagation_seen,
    (State.PROPAGATED, events.ChallengeAnswered): _challenge_answered,
    (State.FINALIZING, events.CertificateFetched): _certificate_fetched,
    (State.FINALIZING, events.CertificateRejected): _certificate_rejected,
    **{(state, events.AuthorityFailed): _authority_failed for state in _AT_WORK},
    **{(state, events.ZoneFailed): _zone_failed for state in _AT_WORK},
    **{(state, events.StepBroke): _step_broke for state in _AT_WORK},
}
