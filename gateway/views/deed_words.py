"""What came of an operator's own deeds, in sentences: pure.

Shows no key. Called by `cli.retrying`, `cli.releasing` and the page.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gateway.certificates.retrying import Begun, Standing
from gateway.certificates.states import State
from gateway.views.holdings import whose_words
from gateway.views.times import time_words

if TYPE_CHECKING:
    from gateway.certificates.retrying import Retried
    from gateway.certificates.states import Issuance
    from gateway.holdings.operator_deeds import Released, Watched, Withdrawn

_BEGUN: Final = {
    Begun.ANEW: "looks for an authority that has room for an order now",
    Begun.ORDER: "goes on with its order now",
    Begun.RENEWAL: "is renewed now, with a new key",
}


def retried_words(retried: Retried) -> str:
    """What a retry began."""
    return f"{retried.hostname} {_BEGUN[retried.began]}."


def watched_words(retried: Retried, seen: Watched) -> str:
    """What has come of a retry so far, and what holds it."""
    name, issuance = retried.hostname, seen.issuance
    if seen.standing is Standing.ISSUED and seen.certificate is not None:
        until = time_words(seen.certificate.valid_until_ms)
        return f"{name} has its certificate: serial {seen.certificate.serial}, valid until {until}."
    if issuance is None or seen.standing is Standing.GONE:
        return f"{name} was released meanwhile: nothing is under way."
    if seen.standing is Standing.UNTOUCHED:
        return f"{name} is due; no worker has taken it up yet."
    if seen.standing is Standing.UNDER_WAY:
        by = f", being worked on by {seen.worker}" if seen.worker else ""
        return f"{name} is under way, in the state {issuance.state}{by}."
    return f"{name} {_rest_words(issuance)}"


def released_words(done: Released) -> str:
    """What a release came to."""
    owner = done.owner
    stays = " Its record stays in the zone." if done.keeps_record else ""
    if not done.is_released:
        return (
            f"{owner.client_id} has no certificate for {owner.app_id} at {owner.hostname}, nor is"
            f" one under way: nothing was released.{stays}"
        )
    if not done.had_certificate:
        return (
            f"The issuance of {whose_words(owner)} at {owner.hostname} is given up; there was no"
            f" certificate yet.{stays}"
        )
    return f"The certificate of {whose_words(owner)} at {owner.hostname} is released.{stays}"


def withdrawn_words(done: Withdrawn) -> str:
    """What a withdrawal came to, with what the zone had otherwise than it was published."""
    owner, answer = done.owner, done.answer
    if not done.is_done:
        why = answer.message or "no reason was given."
        return f"Nothing was withdrawn at {owner.hostname} ({answer.status}): {why}"
    stays = " Its certificate stays." if done.keeps_certificate else ""
    remains = "" if done.remains is None else f" {done.remains[0].upper()}{done.remains[1:]}."
    return f"{_withdrawn(done)}{remains}{stays}"


def _withdrawn(done: Withdrawn) -> str:
    whose = whose_words(done.owner)
    if done.removed:
        record = ", ".join(f"{each.type} {each.value}" for each in done.removed)
        return f"{done.owner.hostname}: {record} of {whose} is taken out of the zone."
    if done.known is None:
        return f"{done.owner.hostname}: {whose} has no record there."
    record = f"{done.known.type} {done.known.value}"
    return f"{done.owner.hostname}: {record} of {whose} is given up."


def _rest_words(issuance: Issuance) -> str:
    if issuance.barred:
        return "rests: its client's policy does not allow it."
    verb = "failed" if issuance.state is State.FAILED else "waits"
    reason = "" if issuance.reason is None else f" ({issuance.reason.value})"
    message = (issuance.message or "no reason was given").rstrip(".")
    if issuance.told_until_ms is not None:
        when = f"It is held until {time_words(issuance.told_until_ms)}"
    else:
        when = f"It is tried again at {time_words(issuance.due_at_ms)}"
    return f"{verb}{reason}: {message}. {when}."
