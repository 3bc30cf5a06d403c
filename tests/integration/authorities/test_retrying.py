"""An operator's retry and what an authority allows: it never gets past that, nor waits for less."""

import json
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

from tests.integration.authorities.duo import Duo, running_duo
from tests.integration.authorities.test_budget import figures
from tests.integration.cli.running import run
from tests.integration.service.calling import Ownership
from tests.lab.bind import BindPair
from tests.lab.gateway import start_gateway
from tests.lab.pebble import PebbleProcess

ONE_ORDER = figures(orders_per_3_hours=1)


def retry(duo: Duo, hostname: str, *more: str) -> CompletedProcess[str]:
    environ = {"GATEWAY_ACME__0__NAME": "first", **ONE_ORDER}
    typed = ("issuances", "retry", hostname, *more)
    result: CompletedProcess[str] = run(*typed, "--config", duo.config.config_file, environ=environ)
    return result


def held(duo: Duo) -> Ownership:
    """An ownership whose order the ledger holds for three hours."""
    duo.world.ownership().certificate()
    mine = duo.world.ownership()
    assert mine.settled()["reason"] == "rate-limited"
    duo.wait_until_looked_at(mine.hostname)
    return mine


def test_what_the_ledger_holds_stays_held_and_is_issued_at_once_when_there_is_room(
    tmp_path: Path, bind: BindPair, pebble: PebbleProcess
) -> None:
    with running_duo(tmp_path, bind, pebble, environ=ONE_ORDER) as duo:
        mine = held(duo)
        refused = retry(duo, mine.hostname)
        assert refused.returncode == 1
        assert f"{mine.hostname} waits (rate-limited): at first, " in refused.stderr
        assert "the order is placed at the earliest at 20" in refused.stderr
        assert ". It is held until 20" in refused.stderr
        told: dict[str, Any] = json.loads(retry(duo, mine.hostname, "--json").stdout)
        assert (told["began"], told["standing"], told["state"]) == ("anew", "waiting", "waiting")
        assert told["toldUntil"] > told["dueAt"]
        duo.forget_ledgers()
        # Else it would be looked at again in ten minutes only.
        done = retry(duo, mine.hostname, "--wait", "30")
        assert done.returncode == 0, done.stderr
        assert mine.get()["status"] == "ready"


def test_retry_that_no_worker_has_taken_up_is_done_by_the_next_one(
    tmp_path: Path, bind: BindPair, pebble: PebbleProcess
) -> None:
    with running_duo(tmp_path, bind, pebble, environ=ONE_ORDER) as duo:
        mine = held(duo)
        duo.gateway.process.kill()
        duo.forget_ledgers()
        due = retry(duo, mine.hostname, "--wait", "0")
        assert due.returncode == 0, due.stderr
        assert due.stdout.endswith(f"{mine.hostname} is due; no worker has taken it up yet.\n")
        gateway = start_gateway(duo.config, "next", environ=ONE_ORDER)
        try:
            assert mine.certificate()
        finally:
            gateway.stop()
