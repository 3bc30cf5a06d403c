"""When a client that waits for a certificate asks next, and when it stops."""

import pytest
from hypothesis import given, strategies as st

from gateway.client import (
    AnswerInvalid,
    DeadlinePassed,
    Forbidden,
    GatewayError,
    Internal,
    IssuanceRefused,
    Overloaded,
    Pending,
    Progress,
    Refused,
    Unauthorized,
    Unavailable,
    Unreachable,
)
from gateway.client.waiting import (
    LAST_QUESTION_SECONDS,
    PAUSE_AFTER_FAILURE_SECONDS,
    SHORTEST_PAUSE_SECONDS,
    Waiting,
)

STARTED_AT, TIMEOUT = 1_000.0, 60.0
WAITING = Waiting("relay.example.test", TIMEOUT, STARTED_AT)
SILENT = Unreachable("No connection.", may_have_arrived=False)
LATE = DeadlinePassed("No answer within 30 seconds.", may_have_arrived=True)


def after(answer: Pending | Refused | GatewayError, waited: float = 10.0) -> Progress:
    return WAITING.after(answer, STARTED_AT + waited)


def pending(retry_after_ms: int) -> Pending:
    return Pending(retry_after_ms=retry_after_ms)


def refused(retry_after_ms: int | None) -> Refused:
    return Refused(
        reason="rate-limited", message="No more orders today.", retry_after_ms=retry_after_ms
    )


def test_pending_is_asked_again_when_the_gateway_says() -> None:
    answer = pending(1_500)
    assert after(answer) == Progress(
        answer=answer, waited_seconds=10.0, next_in_seconds=1.5, left_seconds=50.0
    )


def test_refusal_that_ends_in_time_is_waited_through() -> None:
    assert after(refused(50_000 - 1)).next_in_seconds == pytest.approx(49.999)


@pytest.mark.parametrize("answer", [pending(0), refused(0)])
def test_questions_never_follow_one_another_without_a_pause(answer: Pending | Refused) -> None:
    assert after(answer).next_in_seconds == SHORTEST_PAUSE_SECONDS


@pytest.mark.parametrize("failure", [SILENT, LATE, Unavailable(0), Overloaded(0)])
def test_passing_failure_is_asked_again_after_a_pause(failure: GatewayError) -> None:
    progress = after(failure)
    assert progress.answer is failure
    assert progress.next_in_seconds == PAUSE_AFTER_FAILURE_SECONDS


@pytest.mark.parametrize("failure", [Unavailable(7_000), Overloaded(7_000)])
def test_failure_with_a_wait_is_not_asked_earlier(failure: GatewayError) -> None:
    assert after(failure).next_in_seconds == 7.0


@pytest.mark.parametrize(
    "failure",
    [
        Unauthorized(),
        Forbidden("readCertificates", "Not yours."),
        Internal("incident"),
        AnswerInvalid("It breaks the contract."),
        Unreachable("Not trusted.", may_have_arrived=False, is_lasting=True),
    ],
)
def test_lasting_failure_ends_the_waiting_as_it_is(failure: GatewayError) -> None:
    with pytest.raises(type(failure)) as raised:
        after(failure)
    assert raised.value is failure


@pytest.mark.parametrize("retry_after_ms", [None, 50_001, 10**14])
def test_refusal_beyond_the_time_that_is_left_ends_the_waiting(retry_after_ms: int | None) -> None:
    with pytest.raises(IssuanceRefused, match=r"relay.example.test \(rate-limited\): No") as raised:
        after(refused(retry_after_ms))
    error = raised.value
    assert (error.reason, error.message) == ("rate-limited", "No more orders today.")
    assert error.retry_after_ms == retry_after_ms


@pytest.mark.parametrize("answer", [pending(3_600_000), pending(50_000)])
def test_last_question_is_asked_while_there_is_time_for_its_answer(answer: Pending) -> None:
    assert after(answer).next_in_seconds == 50.0 - LAST_QUESTION_SECONDS


@pytest.mark.parametrize(
    ("answer", "shown"),
    [(pending(2_000), "it is pending"), (SILENT, "No connection"), (LATE, "No answer within 30")],
)
def test_waiting_ends_when_no_other_question_fits(
    answer: Pending | GatewayError, shown: str
) -> None:
    with pytest.raises(
        DeadlinePassed, match=rf"relay.example.test after 58.0 seconds; .*: {shown}.*\.$"
    ):
        after(answer, TIMEOUT - LAST_QUESTION_SECONDS)


@pytest.mark.parametrize(
    "failure",
    [
        Unavailable(50_001),
        Overloaded(50_001),
        Unreachable("Full.", may_have_arrived=True, retry_after_ms=50_001),
    ],
)
def test_failure_with_a_wait_beyond_the_time_that_is_left_is_raised_as_it_is(
    failure: GatewayError,
) -> None:
    with pytest.raises(type(failure)) as raised:
        after(failure)
    assert raised.value is failure


@pytest.mark.parametrize(
    ("answer", "arrived"), [(pending(500), True), (SILENT, False), (LATE, True)]
)
def test_end_tells_whether_the_last_question_may_have_arrived(
    answer: Pending | GatewayError, arrived: bool
) -> None:
    with pytest.raises(DeadlinePassed) as raised:
        after(answer, TIMEOUT - 0.1)
    assert raised.value.may_have_arrived == arrived


def test_refusal_with_no_time_for_another_question_ends_the_waiting() -> None:
    with pytest.raises(DeadlinePassed, match="it is refused"):
        after(refused(500), TIMEOUT - 0.5)


def test_time_that_is_left_is_never_negative() -> None:
    assert WAITING.left(STARTED_AT + TIMEOUT + 1) == 0.0


ANSWERS = st.one_of(
    st.integers(min_value=0, max_value=10**14).map(pending),
    st.integers(min_value=0, max_value=10**14).map(refused),
    st.integers(min_value=0, max_value=10**14).map(Unavailable),
    st.sampled_from([SILENT, LATE]),
)


@given(answers=st.lists(ANSWERS, max_size=50), delay=st.floats(min_value=0, max_value=30))
def test_waiting_always_ends_and_never_asks_beyond_its_timeout(
    answers: list[Pending | Refused | GatewayError], delay: float
) -> None:
    waited = 0.0
    for answer in answers:
        waited += delay
        try:
            progress = after(answer, waited)
        except (DeadlinePassed, IssuanceRefused, Unavailable):
            return
        assert progress.next_in_seconds > 0
        waited += progress.next_in_seconds
        assert waited < TIMEOUT
