"""An operator's retries, in a loop too: what the CA and the budget have said holds all the same."""

import os
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.integration.service.calling import Ownership
from tests.lab import forks
from tests.lab.acme_calls import Operation
from tests.lab.acme_moods import Refuse
from tests.lab.bind import BindPair
from tests.lab.process import wait_until
from tests.moods.moodlab import MoodLab, mood_lab

LIMIT_SECONDS = 60.0
TRIES = 3


def retry(lab: MoodLab, mine: Ownership, *more: str) -> CompletedProcess[str]:
    """`gateway issuances retry`, once no worker has the hostname in its hands."""
    wait_until(lambda: "lease" not in lab.stored(mine.hostname), "it rests")
    config = lab.gateway.process.log_file.parent / "gateway.toml"
    typed = ["issuances", "retry", mine.hostname, "--wait", "30", *more, "--config", str(config)]
    return forks.run_command(typed, os.environ, LIMIT_SECONDS)


def at_rest(lab: MoodLab, mine: Ownership) -> None:
    lab.issued(mine)
    busy = {"issuance", "debts", "lease"}
    wait_until(lambda: not lab.stored(mine.hostname).keys() & busy, "it is at rest")


def test_renewals_by_hand_are_held_by_the_accounts_orders(
    tmp_path: Path, bind: BindPair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GATEWAY_ACME__0__BUDGET__ORDERS_PER_3_HOURS", "2")
    with mood_lab(tmp_path, bind) as lab:
        mine = lab.world.ownership()
        at_rest(lab, mine)
        assert retry(lab, mine, "--renew").returncode == 0
        wait_until(lambda: not lab.stored(mine.hostname).keys() & {"debts", "lease"}, "all is paid")
        held = retry(lab, mine, "--renew")
        assert held.returncode == 1
        assert "2 new orders in 3 hours are used up" in held.stderr
        for _ in range(TRIES):
            assert retry(lab, mine).returncode == 1
        assert len(lab.orders(mine)) == 2
        assert mine.get()["status"] == "ready"


@pytest.mark.parametrize("operation", [Operation.NEW_ORDER, Operation.FINALIZE])
def test_ca_that_said_too_many_without_a_time_is_not_asked_again_by_retries(
    moody: MoodLab, mine: Ownership, operation: Operation
) -> None:
    refusal = Refuse(429, "rateLimited", "too many of them")
    with moody.on(mine, operation, refusal, None):
        mine.get()
        before = moody.wait_for_state(mine.hostname, "waiting")
        asked = len(moody.proxy.seen(operation, mine.hostname))
        for _ in range(TRIES):
            refused = retry(moody, mine)
            assert refused.returncode == 1
            assert f"takes no orders for {mine.hostname} before 20" in refused.stderr
        assert len(moody.proxy.seen(operation, mine.hostname)) == asked == 1
        assert moody.issuance(mine.hostname) == before


def test_retries_that_fail_move_the_next_attempt_no_further_off(
    moody: MoodLab, mine: Ownership
) -> None:
    with moody.on(mine, Operation.FINALIZE, Refuse(403, "unauthorized"), None):
        mine.settled()
        before = moody.issuance(mine.hostname)
        for _ in range(TRIES):
            assert retry(moody, mine).returncode == 1
        after = moody.issuance(mine.hostname)
    assert after["state"] == before["state"] == "failed"
    assert after["changed_at_ms"] > before["changed_at_ms"]
    assert after["failures"] == before["failures"] == 1
