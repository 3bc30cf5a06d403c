"""When the gateway is asked for a certificate, and what its answers mean."""

from dataclasses import replace

import pytest

from gateway.agent.certificate_keeper import (
    ASK_AGAIN_MS,
    IDLE,
    Known,
    Standing,
    fault_of_refusal,
    next_look_ms,
    pause_after_refusal_ms,
    pause_when_late_ms,
    reason_to_ask,
    remembered,
)
from gateway.agent.clocks import HOUR_MS, MINUTE_MS
from gateway.agent.memory import Memory
from gateway.agent.rounds import OPERATOR_PAUSE_MS, SHORTEST_PAUSE_MS, Fault
from gateway.client import Refused
from gateway.contract import RefusalReason

NOW = 1_795_000_000_000
DAY_MS = 24 * HOUR_MS
GOOD = Known(
    not_after_ms=NOW + 60 * DAY_MS,
    unusable=None,
    renew_after_ms=NOW + 30 * DAY_MS,
    answered_at_ms=NOW - MINUTE_MS,
)


def refused(retry_after_ms: int | None, reason: RefusalReason = "authority-refused") -> Refused:
    return Refused(reason=reason, message="CAA forbids it.", retry_after_ms=retry_after_ms)


def test_good_certificate_is_not_asked_for() -> None:
    assert reason_to_ask(GOOD, NOW) is None


@pytest.mark.parametrize(
    ("known", "why"),
    [
        (replace(GOOD, not_after_ms=None), "there is no certificate yet"),
        (replace(GOOD, not_after_ms=None, unusable="the key does not fit"), "the key does not fit"),
        (replace(GOOD, renew_after_ms=None), "nothing is remembered of the certificate"),
        (replace(GOOD, answered_at_ms=None), "nothing is remembered of the certificate"),
        (replace(GOOD, not_after_ms=NOW), "the certificate has expired"),
        (replace(GOOD, renew_after_ms=NOW), "the renewal is due"),
        (replace(GOOD, answered_at_ms=NOW - ASK_AGAIN_MS), "the last answer is an hour old"),
        (replace(GOOD, answered_at_ms=NOW + 1), "the last answer is an hour old"),
    ],
    ids=["none", "broken", "no-renewal", "no-answer", "expired", "due", "old", "clock-set-back"],
)
def test_gateway_is_asked_for_a_reason(known: Known, why: str) -> None:
    assert reason_to_ask(known, NOW) == why
    assert next_look_ms(known, NOW) == NOW


def test_next_question_is_at_the_first_of_the_dates() -> None:
    assert next_look_ms(GOOD, NOW) == NOW - MINUTE_MS + ASK_AGAIN_MS
    soon = replace(GOOD, renew_after_ms=NOW + 5)
    assert next_look_ms(soon, NOW) == NOW + 5


def test_late_renewal_is_asked_for_by_what_is_left() -> None:
    assert pause_when_late_ms(NOW + 30 * DAY_MS, NOW) == HOUR_MS
    assert pause_when_late_ms(NOW + 10 * HOUR_MS, NOW) == HOUR_MS // 2
    assert pause_when_late_ms(NOW + MINUTE_MS, NOW) == 10_000
    assert pause_when_late_ms(NOW - 1, NOW) == 10_000


def test_refusal_with_a_wait_mends_by_itself() -> None:
    answer = refused(90_000, "rate-limited")
    assert fault_of_refusal(answer) == Fault("rate-limited: CAA forbids it.", mends=True)
    assert pause_after_refusal_ms(answer) == 90_000


def test_refusal_without_a_wait_is_asked_about_slowly() -> None:
    answer = refused(None)
    assert fault_of_refusal(answer) == Fault("authority-refused: CAA forbids it.", mends=False)
    assert pause_after_refusal_ms(answer) == OPERATOR_PAUSE_MS


def test_refusal_with_a_wait_of_nothing_is_no_loop() -> None:
    assert pause_after_refusal_ms(refused(0)) == SHORTEST_PAUSE_MS


def test_refusal_that_an_earlier_run_was_told_is_waited_for() -> None:
    memory = Memory(certificate_fault="rate-limited", certificate_held_until_ms=NOW + HOUR_MS)
    fault = Fault("rate-limited", mends=True)
    assert remembered(memory, NOW, 5) == Standing(5 + HOUR_MS, fault=fault)


def test_issuance_that_an_earlier_run_was_told_of_is_waited_for() -> None:
    memory = Memory(certificate_awaits="an issuance", certificate_held_until_ms=NOW + 9)
    assert remembered(memory, NOW, 5) == Standing(14, awaits="an issuance")


@pytest.mark.parametrize("until_ms", [None, NOW, NOW + DAY_MS + 1], ids=["none", "over", "beyond"])
def test_earlier_run_without_a_wait_is_no_reason_not_to_ask(until_ms: int | None) -> None:
    memory = Memory(certificate_fault="rate-limited", certificate_held_until_ms=until_ms)
    assert remembered(memory, NOW, 5) == IDLE
