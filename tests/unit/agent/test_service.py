"""Whether rounds come to an end, which is what the watchdog is told."""

from contextlib import suppress

from gateway.agent.service import STUCK_MS, Progress


def test_agent_at_rest_is_not_stuck() -> None:
    assert not Progress().is_stuck(10 * STUCK_MS)


def test_round_that_does_not_end_is_stuck_in_the_end() -> None:
    progress = Progress()
    with progress.of_a_round(lambda: 5):
        assert not progress.is_stuck(5 + STUCK_MS)
        assert progress.is_stuck(5 + STUCK_MS + 1)
    assert not progress.is_stuck(5 + 2 * STUCK_MS)


def test_round_that_hangs_is_not_stuck_while_others_end() -> None:
    progress = Progress()
    with progress.of_a_round(lambda: 0):
        with progress.of_a_round(lambda: STUCK_MS):
            pass
        assert not progress.is_stuck(2 * STUCK_MS)


def test_round_that_breaks_has_ended() -> None:
    progress = Progress()
    with suppress(ZeroDivisionError), progress.of_a_round(lambda: 0):
        raise ZeroDivisionError
    assert not progress.is_stuck(2 * STUCK_MS)
