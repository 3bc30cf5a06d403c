"""What an account may ask for: held back with the true time, renewals first."""

import json
from pathlib import Path

from tests.integration.authorities.duo import running_duo
from tests.integration.cli.running import run
from tests.integration.service.calling import Ownership
from tests.lab.bind import BindPair
from tests.lab.pebble import PebbleProcess, start_pebble
from tests.lab.ports import LOOPBACK, free_port

HOUR_MS = 3_600_000


def figures(**counts: object) -> dict[str, str]:
    return {
        f"GATEWAY_ACME__0__BUDGET__{name.upper()}": str(count).lower()
        for name, count in counts.items()
    }


def test_order_beyond_the_figure_is_held_back_with_the_true_time(
    tmp_path: Path, bind: BindPair, pebble: PebbleProcess
) -> None:
    with running_duo(tmp_path, bind, pebble, environ=figures(orders_per_3_hours=1)) as duo:
        first, second = duo.world.ownership(), duo.world.ownership()
        first.certificate()
        answer = second.settled()
        assert (answer["status"], answer["reason"]) == ("refused", "rate-limited")
        assert 2.9 * HOUR_MS < answer["retryAfterMs"] < 3.1 * HOUR_MS
        # The other client's names are nobody's business.
        assert first.hostname not in answer["message"]
        assert "3 hours" in answer["message"]
        # What is held back hides nothing that is there, and is given up without a trace.
        assert first.get()["status"] == "ready"
        assert second.release() == "released"


def test_operator_sees_what_is_used_and_what_is_held(
    tmp_path: Path, bind: BindPair, pebble: PebbleProcess
) -> None:
    few = figures(orders_per_3_hours=2, certificates_per_hostname_per_week=1)
    with running_duo(tmp_path, bind, pebble, environ=few) as duo:
        mine = duo.world.ownership()
        mine.certificate()
        environ = {"GATEWAY_ACME__0__NAME": "first", **few}
        command = ("budget", "--config", duo.config.config_file)
        shown = run(*command, environ=environ).stdout
        assert shown.splitlines()[:2] == ["first", "  of 2 new orders in 3 hours, 1 is free now"]
        assert "this client's share" not in shown
        assert f"{mine.hostname}: of 1 certificates in 7 days, none is free now" in shown
        (told,) = json.loads(run(*command, "--json", environ=environ).stdout)
        assert told["name"] == "first"
        used = {(use["limit"], use["subject"]): use["used"] for use in told["uses"]}
        assert used[("orders", None)] == used[("host", mine.hostname)] == 1
        assert told["holds"] == []


def test_renewal_is_not_held_back_by_what_new_names_have_used_up(
    tmp_path: Path, bind: BindPair, pebble: PebbleProcess
) -> None:
    few = figures(
        orders_per_3_hours=1,
        certificates_per_domain_per_week=1,
        certificates_per_hostname_per_week=1,
    )
    with running_duo(tmp_path, bind, pebble, environ=few) as duo:
        mine = duo.world.ownership()
        mine.certificate()
        serial = duo.certificate(mine.hostname)["serial"]
        duo.renew_now(mine.hostname)
        assert duo.wait_until_renewed(mine, serial)["serial"] != serial


def test_hostname_asked_for_and_released_over_and_over_is_held_back(
    tmp_path: Path, bind: BindPair, pebble: PebbleProcess
) -> None:
    few = figures(certificates_per_hostname_per_week=2)
    with running_duo(tmp_path, bind, pebble, environ=few) as duo:
        mine = duo.world.ownership()
        for _ in range(2):
            mine.certificate()
            assert mine.release() == "released"
        answer = mine.settled()
        assert (answer["status"], answer["reason"]) == ("refused", "rate-limited")
        assert mine.hostname in answer["message"]


def test_failed_validations_hold_back_their_hostname_only(tmp_path: Path, bind: BindPair) -> None:
    blind_folder = tmp_path / "blind"
    blind_folder.mkdir()
    # It asks where no DNS server is, so it can validate nothing.
    blind = start_pebble(blind_folder, (LOOPBACK, free_port()))
    few = figures(failed_validations_per_hour=1)
    try:
        with running_duo(tmp_path, bind, blind, environ=few) as duo:
            failing, other = duo.world.ownership(), duo.world.ownership()
            assert failing.settled()["reason"] == "issuance-failed"
            assert failing.release() == "released"
            answer = failing.settled()
            assert (answer["status"], answer["reason"]) == ("refused", "rate-limited")
            assert 0.9 * HOUR_MS < answer["retryAfterMs"] < 1.1 * HOUR_MS
            assert other.settled()["reason"] == "issuance-failed"
    finally:
        blind.stop()


def test_one_client_cannot_use_up_what_all_have(
    tmp_path: Path, bind: BindPair, pebble: PebbleProcess
) -> None:
    few = figures(orders_per_3_hours=4, client_share=0.5)
    with running_duo(tmp_path, bind, pebble, environ=few) as duo:
        greedy = duo.world.client("*.example.test")
        modest = duo.world.ownership()
        names = [Ownership(greedy, f"greedy-{number}.example.test") for number in range(3)]
        assert [each.settled()["status"] for each in names] == ["ready", "ready", "refused"]
        assert modest.certificate()["hostname"] == modest.hostname
