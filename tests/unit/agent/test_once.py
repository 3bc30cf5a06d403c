"""The exit code of a run that ends, and the pauses of a hook that fails."""

import pytest

from gateway.agent.deployer import pause_after_failure_ms
from gateway.agent.once import CURRENT, FAILED, NOT_YET, exit_code
from gateway.agent.rounds import Fault, Round

GOOD = Round(1)
UNDER_WAY = Round(1, awaits="the gateway obtains a certificate")
AWAY = Round(1, fault=Fault("The gateway cannot be reached.", mends=True))
CONFLICT = Round(1, fault=Fault("record-conflict", mends=False))


@pytest.mark.parametrize(
    ("rounds", "code"),
    [
        ([GOOD, GOOD], CURRENT),
        ([GOOD, UNDER_WAY], NOT_YET),
        ([GOOD, AWAY], NOT_YET),
        ([GOOD, CONFLICT], FAILED),
        ([UNDER_WAY, AWAY, CONFLICT], FAILED),
    ],
    ids=["all-current", "under-way", "away", "conflict", "the-worst-counts"],
)
def test_exit_code_says_whether_running_again_makes_sense(rounds: list[Round], code: int) -> None:
    assert exit_code(rounds) == code


def test_failing_hook_is_run_again_after_ten_seconds_doubling_to_ten_minutes() -> None:
    pauses = [pause_after_failure_ms(tries, 0.0, 10_000) for tries in range(1, 9)]
    assert pauses == [10_000, 20_000, 40_000, 80_000, 160_000, 320_000, 600_000, 600_000]
