"""Which failed calls are made again, and after which pause."""

import pytest
from hypothesis import given, strategies as st

from gateway.client import (
    AnswerInvalid,
    EnvelopeInvalid,
    Forbidden,
    GatewayError,
    HostnameForbidden,
    Internal,
    MethodUnknown,
    Overloaded,
    RequestInvalid,
    Unauthorized,
    Unavailable,
    UnknownFailure,
    Unreachable,
)
from gateway.client.repeating import LONGEST_PAUSE_SECONDS, pause_before_repeating

UNSENT = Unreachable("No connection.", may_have_arrived=False)
LOST = Unreachable("It broke.", may_have_arrived=True)
DISTRUSTED = Unreachable("Not trusted.", may_have_arrived=False, is_lasting=True)
LASTING: list[GatewayError] = [
    DISTRUSTED,
    AnswerInvalid("It breaks the contract."),
    EnvelopeInvalid("Not JSON."),
    MethodUnknown(),
    Unauthorized(),
    Forbidden(None, "Not yours."),
    RequestInvalid(["spec is missing"]),
    HostnameForbidden("a.example.test"),
    Internal("incident"),
    UnknownFailure("Something new.", "new-code"),
]
COUNTS = st.integers(min_value=0, max_value=10**9)
CHANCES = st.floats(min_value=0, max_value=1)


def pause(
    failure: GatewayError, *, may_repeat: bool = True, repetition: int = 0, chance: float = 0.0
) -> float | None:
    return pause_before_repeating(
        failure, repetition=repetition, may_repeat=may_repeat, chance=chance
    )


@pytest.mark.parametrize("failure", [UNSENT, LOST, Unavailable(0), Overloaded(0)])
def test_passing_failure_of_a_safe_call_is_repeated(failure: GatewayError) -> None:
    assert pause(failure)


@pytest.mark.parametrize("failure", LASTING, ids=lambda failure: type(failure).__name__)
@pytest.mark.parametrize("may_repeat", [True, False])
def test_lasting_failure_is_never_repeated(failure: GatewayError, may_repeat: bool) -> None:
    assert pause(failure, may_repeat=may_repeat) is None


@pytest.mark.parametrize("failure", [LOST, Unavailable(0), Overloaded(0)])
def test_call_that_makes_a_token_is_not_repeated_once_it_may_have_arrived(
    failure: GatewayError,
) -> None:
    assert pause(failure, may_repeat=False) is None


def test_call_that_makes_a_token_is_repeated_without_a_connection() -> None:
    assert pause(UNSENT, may_repeat=False)


@given(wait_ms=st.integers(min_value=0, max_value=10**12), repetition=COUNTS, chance=CHANCES)
def test_gateways_own_wait_is_never_undercut(wait_ms: int, repetition: int, chance: float) -> None:
    for failure in (Unavailable(wait_ms), Overloaded(wait_ms)):
        seconds = pause(failure, repetition=repetition, chance=chance)
        assert seconds is not None
        assert wait_ms / 1000 <= seconds <= wait_ms / 1000 + LONGEST_PAUSE_SECONDS


@given(chance=CHANCES)
def test_wait_that_a_proxy_named_is_not_undercut(chance: float) -> None:
    full = Unreachable("Full.", may_have_arrived=True, retry_after_ms=7_000)
    seconds = pause(full, chance=chance)
    assert seconds is not None
    assert seconds >= 7.0


@given(repetition=COUNTS, chance=CHANCES)
def test_pauses_grow_and_are_bounded(repetition: int, chance: float) -> None:
    shorter = pause(LOST, repetition=repetition, chance=chance)
    longer = pause(LOST, repetition=repetition + 1, chance=chance)
    assert shorter is not None
    assert longer is not None
    assert 0 < shorter <= longer <= LONGEST_PAUSE_SECONDS


def test_clients_that_failed_together_come_back_at_different_times() -> None:
    assert pause(LOST, chance=0.1) != pause(LOST, chance=0.9)
