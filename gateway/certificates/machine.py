"""The issuance state machine: `advance(issuance, event, moment) -> Step`, pure.

It decides, the worker acts: no clock, no randomness, no I/O. A step names at most one command to
carry out at once; without one the issuance rests until its `due_at_ms`. Whoever carries a command
out stores the step's issuance first, so the next process finds all it needs: key and CSR before the
order, the order's URL at once after it, the challenge's place and value before it is published.
Only a step that `may_be_forgotten` need not be stored.

Where a process may have died, the order is read again before anything is chosen: it may be ready or
valid already (RFC 8555 section 7.1.6: reused authorizations, a crash after finalize). An event that
cannot happen in a state raises `Unexpected`.

Polling follows the CA's Retry-After where it gives one. Else it begins at 10 ms, since most CAs
and servers are done within milliseconds, and doubles to 5 s: a fixed second, as most clients have
it, costs a second on every issuance.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gateway.certificates import events, mishaps
from gateway.certificates.events import Command
from gateway.certificates.moves import (
    LONGEST_LOOK_MS,
    PROCESSING_BOUND_MS,
    VALIDATION_BOUND_MS,
    Step,
    fail,
    fault_pause_ms,
    look_again,
    look_again_bounded,
    moved,
    order_anew,
    wait,
    without_key,
    without_order,
)
from gateway.certificates.states import Issuance, Reason, State, replace

if TYPE_CHECKING:
    from collections.abc import Callable

    from gateway.certificates.events import Event
    from gateway.certificates.moves import Moment
    from gateway.certificates.orders import AuthorizationView, OrderView
    from gateway.certificates.states import StoredCertificate

PROPAGATION_BOUND_MS: Final = 120_000
SHORT_REST_MS: Final = 50
"""A rest up to this long is waited for under the lease: three polls of a CA that is fast."""

LOOKS_BEFORE_CSR_AGAIN: Final = 9
LOOKS_AT_ORDER_ALONE: Final = 4


class Unexpected(Exception):
    """An event that the machine does not list for the state: a fault of the gateway."""


def request(issuance_id: str, moment: Moment) -> Issuance:
    """A new issuance, due at once."""
    return Issuance(
        issuance_id=issuance_id,
        state=State.REQUESTED,
        begun_at_ms=moment.now_ms,
        changed_at_ms=moment.now_ms,
        due_at_ms=moment.now_ms,
        wanted_since_ms=moment.now_ms,
        passed_ms={State.REQUESTED.value: moment.now_ms},
    )


def request_renewal(
    issuance_id: str, certificate: StoredCertificate, renewal_id: str | None, moment: Moment
) -> Issuance:
    """The issuance of a certificate's successor; `renewal_id` names the certificate to its CA."""
    return replace(
        request(issuance_id, moment),
        renewal=True,
        overdue_at_ms=certificate.share_at_ms,
        renewal_id=renewal_id,
        renewed_directory_url=certificate.directory_url,
    )


def advance(issuance: Issuance, event: Event, moment: Moment) -> Step:
    """What an event makes of an issuance.

    Raises:
        Unexpected: when the state does not expect the event.
    """
    decide = _TRANSITIONS.get((issuance.state, type(event)))
    if decide is None:
        raise Unexpected(f"{type(event).__name__} in state {issuance.state}")
    step = decide(issuance, event, moment)
    before, after = _RANKS.get(issuance.state), _RANKS.get(step.issuance.state)
    if before is not None and after is not None and after > before:
        # It came forward: what comes next begins with fresh patience.
        return Step(replace(step.issuance, faults=0, away=0), step.command)
    return step


def may_be_forgotten(stored: State, step: Step, moment: Moment) -> bool:
    """Whether whoever goes on after a crash, from the state that is `stored`, needs nothing of it.

    It next looks at what is outside, at once or soon: doing that again costs nothing but time.
    Never before something is changed there: a challenge's record, what the CA is told. That saves
    seven of an issuance's seventeen writes to Redis.
    """
    if step.issuance.state not in _COVERED.get(stored, {stored}):
        return False
    return step.command in events.REPEATABLE or is_short_rest(step, moment)


def is_short_rest(step: Step, moment: Moment) -> bool:
    """Whether a step is followed by another look at the CA or the zone so soon.

    It is waited for under the lease: to give that up and take it again is two writes to Redis.
    """
    if step.command is not None or step.issuance.state not in _POLLED or not step.issuance.looks:
        return False
    return step.issuance.due_at_ms <= moment.now_ms + SHORT_REST_MS


_RANKS: Final[dict[State, int]] = {
    state: rank for rank, state in enumerate(State) if state not in {State.WAITING, State.FAILED}
}
"""How far an issuance has come in a state; `State` lists them in order."""

_COVERED: Final[dict[State, frozenset[State]]] = {
    State.ORDERED: frozenset({State.ORDERED, State.PUBLISHED}),
    State.READY: frozenset({State.READY, State.FINALIZING}),
}
"""From which stored state going on comes to the same as from the states beyond it."""

_POLLED: Final = frozenset({State.PUBLISHED, State.VALIDATING, State.READY, State.FINALIZING})


# Due: what to do next, told from the state alone.


def _due(issuance: Issuance, _: Event, moment: Moment) -> Step:
    if issuance.state in {State.WAITING, State.FAILED}:
        on = issuance.resume or State.REQUESTED
        begun = {"begun_at_ms": moment.now_ms, "wanted_since_ms": issuance.since_ms}
        if on is State.REQUESTED:
            begun["looks"] = issuance.looks
            if issuance.lapsed:
                issuance = without_key(without_order(issuance))
        return _due(moved(issuance, on, moment, **begun), _, moment)
    if issuance.state is State.REQUESTED:
        return _due_requested(issuance)
    if issuance.state is State.VALIDATING and _is_turn_of_authorization(issuance.looks):
        return Step(issuance, Command.READ_AUTHORIZATION)
    return Step(issuance, _NEXT[issuance.state])


def _is_turn_of_authorization(looks: int) -> bool:
    """Whether the authorization is read, and not the order, which mostly says as much.

    One call less for a validation that takes no time. Where it does, every other look is at the
    authorization: a CA's order may be late to tell of its end.
    """
    return looks >= LOOKS_AT_ORDER_ALONE and looks % 2 == 0


def _due_requested(issuance: Issuance) -> Step:
    # The authority comes first: it says what kind of key is made.
    if issuance.directory_url is None:
        return Step(issuance, Command.CHOOSE_AUTHORITY)
    if issuance.sealed_key is None:
        return Step(issuance, Command.MAKE_KEY)
    return Step(issuance, Command.PLACE_ORDER)


_NEXT: Final = {
    State.ORDERED: Command.READ_ORDER,
    State.PUBLISHED: Command.CHECK_PROPAGATION,
    State.PROPAGATED: Command.READ_ORDER,
    State.VALIDATING: Command.READ_ORDER,
    State.READY: Command.READ_ORDER,
    State.FINALIZING: Command.READ_ORDER,
    State.ISSUED: None,
}


# The smooth way.


def _authority_chosen(issuance: Issuance, event: events.AuthorityChosen, _: Moment) -> Step:
    replaces = issuance.renewal_id if event.takes_replaces else None
    return _due_requested(replace(issuance, directory_url=event.directory_url, replaces=replaces))


def _key_made(issuance: Issuance, event: events.KeyMade, _: Moment) -> Step:
    keyed = replace(issuance, sealed_key=event.sealed_key, csr=event.csr)
    return Step(keyed, Command.PLACE_ORDER)


def _order_placed(issuance: Issuance, event: events.OrderSeen, moment: Moment) -> Step:
    order = event.order
    placed = moved(
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
        return look_again_bounded(finalizing, moment, pause, PROCESSING_BOUND_MS)
    if order.status == "valid" and order.certificate_url:
        valid = replace(_finalizing(issuance, moment), certificate_url=order.certificate_url)
        return Step(valid, Command.FETCH_CERTIFICATE)
    problem = order.problem or f"the authority calls the order {order.status}"
    if issuance.state in {State.ORDERED, State.VALIDATING} and issuance.challenge_url:
        # The authorization says why.
        return Step(replace(issuance, message=problem), Command.READ_AUTHORIZATION)
    return fail(issuance, moment, Reason.ISSUANCE_FAILED, problem)


def _order_pending(issuance: Issuance, order: OrderView, moment: Moment) -> Step:
    if not order.authorization_urls:
        return fail(issuance, moment, Reason.ISSUANCE_FAILED, "the order has no authorization")
    if issuance.state is State.PROPAGATED:
        return Step(issuance, Command.ANSWER_CHALLENGE)
    if issuance.state is State.ORDERED:
        known = replace(issuance, authorization_url=order.authorization_urls[0])
        if issuance.challenge_value is None:
            return Step(known, Command.READ_AUTHORIZATION)
        if issuance.challenge_name is None:
            return Step(known, Command.LOCATE_CHALLENGE)
        return Step(known, Command.PUBLISH_CHALLENGE)
    return look_again_bounded(issuance, moment, order.retry_after_seconds)


def _order_ready(issuance: Issuance, moment: Moment) -> Step:
    if issuance.state is State.READY:
        return Step(issuance, Command.FINALIZE)
    if issuance.state is State.FINALIZING:
        return _finalize_again(issuance, moment)
    return Step(moved(issuance, State.READY, moment, challenge_value=None), Command.FINALIZE)


def _finalize_again(issuance: Issuance, moment: Moment) -> Step:
    """The CA took the CSR and calls the order ready all the same: a reader behind, or it forgot.

    The CSR is sent again at a poll's pace only, and no longer than processing may take.
    """
    if issuance.looks < LOOKS_BEFORE_CSR_AGAIN:
        return look_again_bounded(issuance, moment, None, PROCESSING_BOUND_MS)
    return Step(issuance, Command.FINALIZE)


def _finalized(issuance: Issuance, event: events.Finalized, moment: Moment) -> Step:
    if event.order.status == "ready":
        # It took the CSR and changed nothing; asked again at once, it might go on like that.
        bound_ms = VALIDATION_BOUND_MS if issuance.state is State.READY else PROCESSING_BOUND_MS
        return look_again_bounded(issuance, moment, event.order.retry_after_seconds, bound_ms)
    return _order_seen(issuance, events.OrderSeen(event.order), moment)


def _finalizing(issuance: Issuance, moment: Moment) -> Issuance:
    if issuance.state is State.FINALIZING:
        return issuance
    return moved(issuance, State.FINALIZING, moment, challenge_value=None)


def _authorization_seen(
    issuance: Issuance, event: events.AuthorizationSeen, moment: Moment
) -> Step:
    authorization = event.authorization
    if authorization.status == "invalid":
        problem = authorization.problem or "the authority could not validate the hostname"
        return fail(issuance, moment, Reason.ISSUANCE_FAILED, problem)
    if issuance.message and authorization.status in {"valid", "pending"}:
        # The order came to its end, and not by this authorization.
        return fail(issuance, moment, Reason.ISSUANCE_FAILED, issuance.message)
    if authorization.status == "valid":
        return _authorization_valid(issuance, moment)
    if authorization.status != "pending":
        return order_anew(issuance, moment, f"the authorization is {authorization.status}")
    if issuance.state is State.VALIDATING:
        return look_again_bounded(issuance, moment, authorization.retry_after_seconds)
    return _authorization_pending(issuance, authorization, moment)


def _authorization_valid(issuance: Issuance, moment: Moment) -> Step:
    if issuance.state is State.VALIDATING:
        return Step(issuance, Command.READ_ORDER)
    return look_again_bounded(issuance, moment, None)


def _authorization_pending(
    issuance: Issuance, authorization: AuthorizationView, moment: Moment
) -> Step:
    if authorization.challenge_url is None or authorization.txt_value is None:
        message = "the authority offers no dns-01 challenge for this hostname"
        return fail(issuance, moment, Reason.AUTHORITY_REFUSED, message)
    chosen = replace(
        issuance,
        challenge_url=authorization.challenge_url,
        challenge_value=authorization.txt_value,
        challenge_key=authorization.key_thumbprint,
    )
    # Also one that is being validated already: its record must stay until that is over.
    return Step(chosen, Command.LOCATE_CHALLENGE)


def _challenge_located(issuance: Issuance, event: events.ChallengeLocated, _: Moment) -> Step:
    located = replace(issuance, challenge_zone=event.zone, challenge_name=event.name)
    return Step(located, Command.PUBLISH_CHALLENGE)


def _challenge_published(issuance: Issuance, _: Event, moment: Moment) -> Step:
    # Not when it is published again after a wait: silent servers have been waited for since then.
    published_at_ms = issuance.published_at_ms or moment.now_ms
    published = moved(issuance, State.PUBLISHED, moment, published_at_ms=published_at_ms)
    return Step(published, Command.CHECK_PROPAGATION)


def _propagation_seen(issuance: Issuance, event: events.PropagationSeen, moment: Moment) -> Step:
    patience_ms = _patience_ms(issuance, event, moment)
    if patience_ms is not None and patience_ms <= 0:
        return Step(moved(issuance, State.PROPAGATED, moment), Command.ANSWER_CHALLENGE)
    servers = ", ".join(event.lagging + event.silent)
    message = f"the challenge record is not yet answered by {servers}"
    if moment.now_ms - issuance.changed_at_ms < PROPAGATION_BOUND_MS:
        looking = look_again(replace(issuance, message=message), moment, None).issuance
        latest_ms = moment.now_ms + (LONGEST_LOOK_MS if patience_ms is None else patience_ms)
        return Step(replace(looking, due_at_ms=min(looking.due_at_ms, latest_ms)))
    pause_ms = fault_pause_ms(issuance, moment, None)
    waiting = wait(issuance, moment, Reason.ZONE_UNAVAILABLE, message, pause_ms)
    # From the order on: it may have expired, and the record may be gone, which publishing mends.
    return Step(replace(waiting.issuance, resume=State.ORDERED))


def _patience_ms(issuance: Issuance, event: events.PropagationSeen, moment: Moment) -> int | None:
    """How much longer the servers are waited for; None without end, since some lag."""
    if not event.lagging and not event.silent:
        return 0
    if event.lagging or event.silence_bound_ms is None:
        return None
    since_ms = issuance.published_at_ms or issuance.changed_at_ms
    return since_ms + event.silence_bound_ms - moment.now_ms


def _challenge_answered(issuance: Issuance, _: Event, moment: Moment) -> Step:
    return look_again(moved(issuance, State.VALIDATING, moment), moment, None)


def _certificate_fetched(issuance: Issuance, _: Event, moment: Moment) -> Step:
    return Step(moved(issuance, State.ISSUED, moment))


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
    (State.REQUESTED, events.AuthorityChosen): _authority_chosen,
    (State.REQUESTED, events.AuthoritiesHeld): mishaps.authorities_held,
    (State.REQUESTED, events.KeyMade): _key_made,
    (State.REQUESTED, events.OrderSeen): _order_placed,
    **{(state, events.OrderSeen): _order_seen for state in _WITH_ORDER},
    (State.READY, events.Finalized): _finalized,
    (State.FINALIZING, events.Finalized): _finalized,
    (State.ORDERED, events.AuthorizationSeen): _authorization_seen,
    (State.VALIDATING, events.AuthorizationSeen): _authorization_seen,
    (State.ORDERED, events.ChallengeLocated): _challenge_located,
    (State.ORDERED, events.ChallengePublished): _challenge_published,
    (State.PUBLISHED, events.PropagationSeen): _propagation_seen,
    (State.PROPAGATED, events.ChallengeAnswered): _challenge_answered,
    (State.FINALIZING, events.CertificateFetched): _certificate_fetched,
    (State.FINALIZING, events.CertificateRejected): mishaps.certificate_rejected,
    **{(state, events.AuthorityFailed): mishaps.authority_failed for state in _AT_WORK},
    **{(state, events.ZoneFailed): mishaps.zone_failed for state in _AT_WORK},
    **{(state, events.StepBroke): mishaps.step_broke for state in _AT_WORK},
}
