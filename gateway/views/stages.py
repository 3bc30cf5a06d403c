"""The stages of an issuance, each with when it was reached: pure, for a person to read.

A stage is a state of the smooth way (`certificates.states`), which is behind once it is entered:
what is worked for, waited for or failed at is the one after it. Called by `views.hostname`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from gateway.certificates.states import State

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gateway.certificates.states import Issuance

STAGES: Final[Mapping[State, str]] = {
    State.REQUESTED: "requested",
    State.ORDERED: "ordered at the authority",
    State.PUBLISHED: "challenge published",
    State.PROPAGATED: "challenge on all name servers",
    State.VALIDATING: "authority told to validate",
    State.READY: "validated by the authority",
    State.FINALIZING: "CSR sent",
    State.ISSUED: "issued",
}
"""Every stage in its order, in words."""


class Status(StrEnum):
    """What has become of a stage. `SKIPPED`: there was no need of it, as of a second validation."""

    PASSED = "passed"
    SKIPPED = "skipped"
    CURRENT = "current"
    WAITING = "waiting"
    FAILED = "failed"
    TO_COME = "to-come"


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage. `at_ms`: when it was first entered, epoch milliseconds, where that is known."""

    state: State
    words: str
    status: Status
    at_ms: int | None = None


def stages_of(issuance: Issuance) -> tuple[Stage, ...]:
    """The stages of the present attempt."""
    status = {State.WAITING: Status.WAITING, State.FAILED: Status.FAILED}.get(
        issuance.state, Status.CURRENT
    )
    return _stages(issuance.passed_ms, _reached(issuance), status)


def stages_passed(passed_ms: Mapping[str, int]) -> tuple[Stage, ...]:
    """The stages of an issuance that is over; none where no time is known."""
    return _stages(passed_ms, State.ISSUED, Status.PASSED) if passed_ms else ()


def _reached(issuance: Issuance) -> State | None:
    """The last stage that is behind; None where that is not known."""
    if issuance.state in STAGES:
        return issuance.state
    if issuance.state is State.WAITING and issuance.resume is not None:
        return issuance.resume
    known = [state for state in STAGES if state.value in issuance.passed_ms]
    if issuance.state is State.WAITING:
        return known[0] if known else None
    return known[-1] if known else None


def _stages(
    passed_ms: Mapping[str, int], reached: State | None, status_of_next: Status
) -> tuple[Stage, ...]:
    order: Sequence[State] = list(STAGES)
    place = -1 if reached is None else order.index(reached)
    # A release that kept no times leaves out that of the request too.
    all_are_known = State.REQUESTED.value in passed_ms
    stages = []
    for number, (state, words) in enumerate(STAGES.items()):
        at_ms = passed_ms.get(state.value) if number <= place else None
        if number > place + 1:
            status = Status.TO_COME
        elif number > place:
            status = status_of_next
        else:
            status = Status.SKIPPED if at_ms is None and all_are_known else Status.PASSED
        stages.append(Stage(state, words, status, at_ms))
    return tuple(stages)
