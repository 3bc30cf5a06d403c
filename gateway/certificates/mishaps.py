"""What becomes of an issuance when something goes wrong: the machine's other half, pure.

Three ways out: rest and go on with the same order (a fault that passes), place another order at
once or after a pause (the order is spoilt, the hostname is not), or fail (this attempt came to
nothing; the next one has a new key, after 1 minute to 6 hours). With another authority to turn to,
one that refuses or stays away is passed over for a while instead.

Once a CSR may have been taken, the issuance stays with its authority for about an hour of faults:
the certificate may exist already, and a second one elsewhere would be issued twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gateway.certificates.events import Command
from gateway.certificates.moves import (
    FIRST_CONTEST_MS,
    LONGEST_CONTEST_MS,
    LONGEST_FAILURE_MS,
    LONGEST_REST_MS,
    SHORT_HOLD_MS,
    Step,
    fail,
    failure_pause_ms,
    fault_pause_ms,
    go_elsewhere,
    look_again,
    look_again_bounded,
    moved,
    order_anew,
    wait,
    wait_ms,
    without_challenge,
    without_key,
    without_order,
)
from gateway.certificates.orders import FaultKind
from gateway.certificates.states import Issuance, Reason, State, replace

if TYPE_CHECKING:
    from collections.abc import Callable

    from gateway.certificates import events
    from gateway.certificates.moves import Moment

PATIENCE_FAULTS: Final = 3
"""Passing faults of an authority in a row after which another is turned to: some seconds."""

PATIENCE_AFTER_CSR_FAULTS: Final = 15
"""The same once a CSR may have been taken: more than an hour."""

UNKNOWN_HERE_FAULTS: Final = 8
"""How often a process that does not know the authority leaves an order to others: minutes."""

MALFORMED_FAULTS: Final = 10
"""How often a request is repeated that was called malformed though it cannot be: minutes."""

PASSED_OVER_MS: Final = 600_000
"""How long an authority that could not be reached is passed over."""

BUSY_PAUSE_MS: Final = 1_000
LONGEST_HOLD_MS: Final = 24 * 3_600_000

_REPLACES_REFUSED: Final = {
    FaultKind.REFUSED,
    FaultKind.ACCOUNT_REFUSED,
    FaultKind.GONE,
    FaultKind.MALFORMED,
}


def authority_failed(issuance: Issuance, event: events.AuthorityFailed, moment: Moment) -> Step:
    """A call to the CA failed."""
    if issuance.state is State.REQUESTED and issuance.replaces and event.kind in _REPLACES_REFUSED:
        # Whatever the CA has against it, the order itself may still be right (RFC 9773 section 5).
        return Step(replace(issuance, replaces=None), Command.PLACE_ORDER)
    return _BY_KIND[event.kind](issuance, event, moment)


def authorities_held(issuance: Issuance, event: events.AuthoritiesHeld, moment: Moment) -> Step:
    """No order may be placed before a time: rest till then, and a little longer than others.

    It is looked at again sooner, since what holds it may end: by an operator, or with the
    authority that was away. Where others were faster it rests longer each time, up to an hour. One
    that had been granted before is chosen anew at once: by another authority, perhaps.
    """
    if issuance.directory_url is not None:
        return Step(without_key(without_order(issuance)), Command.CHOOSE_AUTHORITY)
    looks = issuance.looks if event.reason is Reason.RATE_LIMITED else 0
    contest_ms = _contest_ms(looks, moment)
    pause_ms = max(event.until_ms - moment.now_ms, contest_ms)
    rest_ms = max(min(pause_ms, LONGEST_REST_MS), contest_ms)
    spread_ms = int(moment.jitter * min(60_000, max(500, pause_ms // 10)))
    waiting = wait(issuance, moment, event.reason, event.detail, rest_ms + spread_ms).issuance
    return Step(
        replace(
            waiting,
            # Nothing went wrong: it was told beforehand.
            faults=issuance.faults,
            told_until_ms=moment.now_ms + pause_ms + spread_ms,
            looks=looks + (pause_ms == rest_ms),
        )
    )


def _contest_ms(looks: int, moment: Moment) -> int:
    """How long to leave a limit to others, having come so often when it was to be free."""
    if not looks:
        return 0
    return wait_ms(FIRST_CONTEST_MS, LONGEST_CONTEST_MS, looks - 1, moment.jitter)


def zone_failed(issuance: Issuance, event: events.ZoneFailed, moment: Moment) -> Step:
    """The challenge could not be placed."""
    if event.retry_after_seconds is None:
        return fail(issuance, moment, Reason.ZONE_UNAVAILABLE, event.detail)
    pause_ms = fault_pause_ms(issuance, moment, event.retry_after_seconds)
    return wait(issuance, moment, Reason.ZONE_UNAVAILABLE, event.detail, pause_ms)


def step_broke(issuance: Issuance, event: events.StepBroke, moment: Moment) -> Step:
    """The gateway itself is at fault."""
    message = f"the gateway itself failed; its log says more under {event.incident_id}"
    pause_ms = failure_pause_ms(issuance.faults + 1, moment)
    return wait(issuance, moment, Reason.ISSUANCE_FAILED, message, pause_ms)


def certificate_rejected(
    issuance: Issuance, event: events.CertificateRejected, moment: Moment
) -> Step:
    """What the CA gave must not be used."""
    return fail(issuance, moment, Reason.ISSUANCE_FAILED, event.detail)


def _authority_away(issuance: Issuance, event: events.AuthorityFailed, moment: Moment) -> Step:
    issuance = replace(issuance, away=issuance.away + 1)
    patience = PATIENCE_AFTER_CSR_FAULTS if may_be_issued(issuance) else PATIENCE_FAULTS
    if event.elsewhere and issuance.away >= patience:
        return go_elsewhere(issuance, moment, moment.now_ms + PASSED_OVER_MS)
    if issuance.state is State.REQUESTED and event.kind is FaultKind.SERVER_ERROR:
        # Pebble answers so to a certificate that it does not know: next time without it.
        issuance = replace(issuance, replaces=None)
    pause_ms = min(fault_pause_ms(issuance, moment, event.retry_after_seconds), LONGEST_HOLD_MS)
    return wait(issuance, moment, Reason.AUTHORITY_UNAVAILABLE, event.detail, pause_ms)


def _rate_limited(issuance: Issuance, event: events.AuthorityFailed, moment: Moment) -> Step:
    told = event.retry_after_seconds
    backoff = failure_pause_ms(issuance.faults + 1, moment)
    pause_ms = backoff if told is None else fault_pause_ms(issuance, moment, told)
    if event.elsewhere and pause_ms > SHORT_HOLD_MS and not may_be_issued(issuance):
        return go_elsewhere(issuance, moment, moment.now_ms + pause_ms)
    # Before an order the ledger, which has it too, is asked again in between.
    longest_ms = LONGEST_REST_MS if issuance.state is State.REQUESTED else LONGEST_HOLD_MS
    rest_ms = min(pause_ms, longest_ms)
    waiting = wait(issuance, moment, Reason.RATE_LIMITED, event.detail, rest_ms).issuance
    return Step(replace(waiting, told_until_ms=moment.now_ms + pause_ms))


def _account_refused(issuance: Issuance, event: events.AuthorityFailed, moment: Moment) -> Step:
    if event.elsewhere and not may_be_issued(issuance):
        return go_elsewhere(issuance, moment, moment.now_ms + LONGEST_FAILURE_MS)
    backoff = failure_pause_ms(issuance.faults + 1, moment)
    return wait(issuance, moment, Reason.AUTHORITY_REFUSED, event.detail, backoff)


def _gone(issuance: Issuance, event: events.AuthorityFailed, moment: Moment) -> Step:
    if may_be_issued(issuance):
        # A certificate may have been issued for it: not another one a second later.
        return fail(issuance, moment, Reason.ISSUANCE_FAILED, event.detail)
    return order_anew(issuance, moment, event.detail)


def _stale_challenge(issuance: Issuance, event: events.AuthorityFailed, moment: Moment) -> Step:
    if issuance.order_url is None:
        return order_anew(issuance, moment, event.detail)
    return Step(moved(without_challenge(issuance), State.ORDERED, moment))


def _busy(issuance: Issuance, event: events.AuthorityFailed, moment: Moment) -> Step:
    """Nothing was asked, and nobody but this process is to blame."""
    pause_ms = int(BUSY_PAUSE_MS * (1 + moment.jitter))
    waiting = wait(issuance, moment, Reason.AUTHORITY_UNAVAILABLE, event.detail, pause_ms)
    return Step(replace(waiting.issuance, faults=issuance.faults))


def _not_configured(issuance: Issuance, event: events.AuthorityFailed, moment: Moment) -> Step:
    """Another process may know the authority; when none does for long, it was taken out."""
    if issuance.order_url is None:
        return Step(moved(without_key(without_order(issuance)), State.REQUESTED, moment))
    limit = PATIENCE_AFTER_CSR_FAULTS if may_be_issued(issuance) else UNKNOWN_HERE_FAULTS
    if issuance.faults + 1 >= limit:
        return order_anew(issuance, moment, event.detail)
    pause_ms = fault_pause_ms(issuance, moment, None)
    return wait(issuance, moment, Reason.AUTHORITY_UNAVAILABLE, event.detail, pause_ms)


def _refused(issuance: Issuance, event: events.AuthorityFailed, moment: Moment) -> Step:
    """The CA will not issue for this hostname: another may, else much later."""
    if event.elsewhere:
        return go_elsewhere(issuance, moment, moment.now_ms + LONGEST_FAILURE_MS)
    return fail(issuance, moment, Reason.AUTHORITY_REFUSED, event.detail)


def _not_ready(issuance: Issuance, event: events.AuthorityFailed, moment: Moment) -> Step:
    if may_be_issued(issuance):
        return look_again_bounded(issuance, moment, event.retry_after_seconds)
    return fail(issuance, moment, Reason.ISSUANCE_FAILED, event.detail)


def _bad_csr(issuance: Issuance, event: events.AuthorityFailed, moment: Moment) -> Step:
    return fail(issuance, moment, Reason.ISSUANCE_FAILED, event.detail)


def _malformed(issuance: Issuance, event: events.AuthorityFailed, moment: Moment) -> Step:
    """The CA refused this very request; the authorization or the order may still explain it."""
    if issuance.state is State.PROPAGATED:
        # It was told to validate before (a crash, a lost answer) and will not be told again.
        return look_again(moved(issuance, State.VALIDATING, moment), moment, None)
    if issuance.state is State.REQUESTED:
        if event.elsewhere:
            return go_elsewhere(issuance, moment, moment.now_ms + LONGEST_FAILURE_MS)
        return fail(issuance, moment, Reason.ISSUANCE_FAILED, event.detail)
    if issuance.faults + 1 >= MALFORMED_FAULTS:
        return fail(issuance, moment, Reason.ISSUANCE_FAILED, event.detail)
    pause_ms = fault_pause_ms(issuance, moment, event.retry_after_seconds)
    return wait(issuance, moment, Reason.AUTHORITY_UNAVAILABLE, event.detail, pause_ms)


_BY_KIND: Final[dict[FaultKind, Callable[..., Step]]] = {
    FaultKind.UNREACHABLE: _authority_away,
    FaultKind.SERVER_ERROR: _authority_away,
    FaultKind.RATE_LIMITED: _rate_limited,
    FaultKind.REFUSED: _refused,
    FaultKind.ACCOUNT_MISSING: _gone,
    FaultKind.ACCOUNT_REFUSED: _account_refused,
    FaultKind.GONE: _gone,
    FaultKind.NOT_READY: _not_ready,
    FaultKind.BAD_CSR: _bad_csr,
    FaultKind.MALFORMED: _malformed,
    FaultKind.STALE_CHALLENGE: _stale_challenge,
    FaultKind.BUSY: _busy,
    FaultKind.NOT_CONFIGURED: _not_configured,
}


def may_be_issued(issuance: Issuance) -> bool:
    """Whether a CSR may have been sent: a certificate may exist, or count as issued."""
    return bool({issuance.state, issuance.resume} & {State.READY, State.FINALIZING})
