"""Who may call while no call can work."""

from gateway.agent.gate import Gate
from gateway.agent.rounds import LONGEST_PAUSE_MS, OPERATOR_PAUSE_MS, Fault

AWAY = Fault("The gateway cannot be reached.", mends=True, is_shared=True)
T = 5_000


def _shut(gate: Gate, steady_ms: int, least_ms: int = 0) -> Gate:
    return gate.shut(AWAY, steady_ms, 0.0, least_ms=least_ms, first_ms=1_000)


def test_open_gate_lets_everybody_call() -> None:
    gate = Gate()
    assert gate.wait_ms(T) == 0
    assert gate.entered().wait_ms(T) == 0


def test_shut_gate_lets_nobody_call_before_the_pause_is_over() -> None:
    gate = _shut(Gate(), T)
    assert gate.wait_ms(T) == 1_000
    assert gate.wait_ms(T + 999) == 1
    assert gate.wait_ms(T + 1_000) == 0


def test_only_one_tries_when_the_pause_is_over() -> None:
    gate = _shut(Gate(), T).entered()
    assert gate.wait_ms(T + 60_000) > 0


def test_those_that_come_while_one_tries_do_not_come_back_at_once() -> None:
    assert _shut(Gate(), T).entered().wait_ms(T + 60_000) == 5_000


def test_try_that_was_given_up_lets_another_one_try() -> None:
    gate = _shut(Gate(), T).entered().left()
    assert gate.wait_ms(T + 1_000) == 0


def test_failed_try_doubles_the_pause() -> None:
    gate = _shut(_shut(Gate(), T).entered(), T + 1_000)
    assert gate.wait_ms(T + 1_000) == 2_000


def test_calls_that_failed_together_are_one_failure() -> None:
    gate = Gate()
    for _ in range(4):
        gate = gate.entered()
    for _ in range(4):
        gate = _shut(gate, T)
    assert gate.failures == 1
    assert gate.wait_ms(T) == 1_000


def test_gateway_away_for_days_is_tried_every_five_minutes() -> None:
    gate, steady_ms, tries = Gate(), 0, 0
    while steady_ms < 3 * 24 * 3_600_000:
        gate = _shut(gate.entered(), steady_ms)
        steady_ms += gate.wait_ms(steady_ms)
        tries += 1
    assert gate.wait_ms(gate.try_at_ms - LONGEST_PAUSE_MS) == LONGEST_PAUSE_MS
    assert tries < 3 * 24 * 12 + 12


def test_pause_for_an_operator_is_not_undercut() -> None:
    gate = _shut(Gate(), T, least_ms=OPERATOR_PAUSE_MS)
    assert gate.wait_ms(T) == OPERATOR_PAUSE_MS
