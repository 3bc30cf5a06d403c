"""What failures mean to an agent, and the pauses after them."""

import pytest

from gateway.agent.rounds import (
    LONGEST_PAUSE_MS,
    LONGEST_TOLD_PAUSE_MS,
    OPERATOR_PAUSE_MS,
    SHORTEST_PAUSE_MS,
    Fault,
    Round,
    backoff_ms,
    fault_of_call,
    held_ms,
    pause_of_call_ms,
    told_pause_ms,
)
from gateway.client import (
    AnswerInvalid,
    DeadlinePassed,
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

NOW = 1_795_000_000_000
AWAY = Unreachable("The gateway cannot be reached.", may_have_arrived=False)
DISTRUSTED = Unreachable("Not trusted.", may_have_arrived=False, is_lasting=True)
LATE = DeadlinePassed("No answer.", may_have_arrived=True)
PASSING = [AWAY, LATE, Unavailable(100), Overloaded(100), Internal("i")]
FOR_A_PERSON = [
    DISTRUSTED,
    Unauthorized(),
    Forbidden(None, "No."),
    HostnameForbidden("a.example"),
    RequestInvalid(["record.ttl must be 60"]),
    MethodUnknown(),
    UnknownFailure("What?", "new-code"),
]


def test_backoff_doubles_up_to_the_longest_pause() -> None:
    pauses = [backoff_ms(failures, 0.0, first_ms=1_000) for failures in range(1, 12)]
    assert pauses[:4] == [1_000, 2_000, 4_000, 8_000]
    assert pauses[-1] == LONGEST_PAUSE_MS == 300_000


def test_backoff_stays_at_the_longest_pause_after_days() -> None:
    assert backoff_ms(1_000_000, 0.0, first_ms=1_000) == LONGEST_PAUSE_MS


def test_jitter_takes_up_to_a_quarter_off() -> None:
    assert backoff_ms(3, 1.0, first_ms=1_000) == 3_000


@pytest.mark.parametrize("error", PASSING, ids=lambda each: type(each).__name__)
def test_failure_that_passes_mends_by_itself(error: GatewayError) -> None:
    assert fault_of_call(error).mends
    assert pause_of_call_ms(error, 1, 0.0, 1_000) < OPERATOR_PAUSE_MS


@pytest.mark.parametrize("error", FOR_A_PERSON, ids=lambda each: type(each).__name__)
def test_failure_for_a_person_is_asked_about_slowly(error: GatewayError) -> None:
    assert not fault_of_call(error).mends
    assert pause_of_call_ms(error, 1, 0.0, 1_000) == OPERATOR_PAUSE_MS


def test_broken_answer_needs_a_person_but_is_asked_for_again_soon() -> None:
    error = AnswerInvalid("The answer is no JSON.")
    assert not fault_of_call(error).mends
    assert pause_of_call_ms(error, 1, 0.0, 1_000) == 1_000


def test_only_what_every_call_has_is_shared() -> None:
    shared = [each for each in (*PASSING, *FOR_A_PERSON) if fault_of_call(each).is_shared]
    assert {type(each) for each in shared} == {Unreachable, Unauthorized}


def test_call_that_never_got_there_is_nobody_s_own_fault() -> None:
    assert fault_of_call(DeadlinePassed("No answer.", may_have_arrived=False)).is_shared


def test_wait_of_an_earlier_run_is_over_when_it_is_over_or_beyond_reason() -> None:
    assert held_ms(None, NOW) == held_ms(NOW, NOW) == held_ms(NOW - 1, NOW) == 0
    assert held_ms(NOW + LONGEST_TOLD_PAUSE_MS, NOW) == LONGEST_TOLD_PAUSE_MS
    assert held_ms(NOW + LONGEST_TOLD_PAUSE_MS + 1, NOW) == 0


def test_gateway_s_own_wait_is_not_undercut() -> None:
    assert pause_of_call_ms(Overloaded(90_000), 1, 1.0, 1_000) == 90_000


def test_gateway_that_says_at_once_again_and_again_is_not_hammered() -> None:
    assert pause_of_call_ms(Unavailable(0), 9, 0.0, 1_000) == 256_000


def test_answer_that_says_at_once_is_no_loop() -> None:
    assert told_pause_ms(0) == SHORTEST_PAUSE_MS


def test_answer_that_says_in_a_thousand_years_is_asked_again_the_next_day() -> None:
    assert told_pause_ms(10**30) == LONGEST_TOLD_PAUSE_MS == 86_400_000


def test_sentence_that_quotes_an_answer_is_one_printable_line_of_bounded_length() -> None:
    fault = Fault("refused:\x1b[2J\n" + "x" * 1_000_000, mends=True)
    assert fault.sentence.startswith("refused: [2J xxx")
    assert len(fault.sentence) < 1_000


def test_round_is_current_when_nothing_is_wrong_or_under_way() -> None:
    assert Round(1, done=("published",)).is_current
    assert not Round(1, awaits="an issuance").is_current
    assert not Round(1, fault=Fault("no", mends=True)).is_current


def test_only_a_fault_that_does_not_mend_needs_a_person() -> None:
    assert Round(1, fault=Fault("no", mends=False)).needs_a_person
    assert not Round(1, fault=Fault("no", mends=True)).needs_a_person
    assert not Round(1, awaits="an issuance").needs_a_person


def test_round_like_the_last_is_nothing_to_report() -> None:
    last = Round(1, fault=Fault("no", mends=True))
    assert not Round(2, fault=Fault("no", mends=True)).differs_from(last)
    assert Round(2, fault=Fault("still no", mends=True)).differs_from(last)
    assert Round(2, done=("installed",), fault=last.fault).differs_from(last)
    assert last.differs_from(None)


def test_round_that_failed_once_more_in_the_same_way_is_something_to_report() -> None:
    last = Round(1, fault=Fault("no", mends=False), tries=1)
    assert Round(1, fault=Fault("no", mends=False), tries=2).differs_from(last)
    assert not Round(1, fault=Fault("no", mends=False), tries=1).differs_from(last)
