"""Authorities in order of preference: the next is tried while one is away or refuses."""

from pathlib import Path

import pytest

from tests.integration.authorities.duo import is_from, running_duo
from tests.lab.acme_calls import Operation
from tests.lab.acme_moods import Refuse
from tests.lab.acme_proxy import AcmeProxy
from tests.lab.bind import BindPair
from tests.lab.pebble import PebbleProcess, start_pebble
from tests.lab.process import wait_until

BLOCKED_ZONE = "example.net.test"


def test_first_authority_is_preferred(
    tmp_path: Path, bind: BindPair, pebble: PebbleProcess, second_pebble: PebbleProcess
) -> None:
    with running_duo(tmp_path, bind, pebble, second_pebble) as duo:
        mine = duo.world.ownership()
        assert is_from(mine.certificate(), pebble)
        assert duo.certificate(mine.hostname)["directory_url"] == pebble.directory_url


def test_next_authority_is_tried_while_one_is_away_and_renewal_returns_to_it(
    tmp_path: Path, bind: BindPair, mortal_pebble: PebbleProcess, second_pebble: PebbleProcess
) -> None:
    with running_duo(tmp_path, bind, mortal_pebble, second_pebble) as duo:
        before, meanwhile = duo.world.ownership(), duo.world.ownership()
        first = before.certificate()
        assert is_from(first, mortal_pebble)
        mortal_pebble.stop()
        # What it issued is served while it is away, and renewed by the other.
        serial = duo.certificate(before.hostname)["serial"]
        duo.renew_now(before.hostname)
        wait_until(lambda: meanwhile.get()["status"] == "ready", "the second issues")
        assert is_from(meanwhile.certificate(), second_pebble)
        renewed = duo.wait_until_renewed(before, serial)
        assert renewed["directory_url"] == second_pebble.directory_url
        assert is_from(before.certificate(), second_pebble)

        mortal_pebble.start()
        duo.forget_ledgers()
        duo.renew_now(meanwhile.hostname)
        again = duo.wait_until_renewed(meanwhile, duo.certificate(meanwhile.hostname)["serial"])
        assert again["directory_url"] == mortal_pebble.directory_url


def test_next_authority_is_tried_where_one_refuses_the_hostname(
    tmp_path: Path,
    bind: BindPair,
    second_pebble: PebbleProcess,
) -> None:
    folder = tmp_path / "strict"
    folder.mkdir()
    strict = start_pebble(folder, bind.primary, settings={"domainBlocklist": [BLOCKED_ZONE]})
    try:
        with running_duo(tmp_path, bind, strict, second_pebble) as duo:
            blocked = duo.world.ownership(BLOCKED_ZONE)
            assert is_from(blocked.certificate(), second_pebble)
            assert is_from(duo.world.ownership().certificate(), strict)
    finally:
        strict.stop()


@pytest.mark.parametrize("status", [403, 404])
@pytest.mark.parametrize(
    "operation",
    [Operation.DIRECTORY, Operation.NEW_NONCE, Operation.NEW_ACCOUNT, Operation.NEW_ORDER],
)
def test_next_authority_is_tried_where_something_else_answers_for_one(
    tmp_path: Path,
    bind: BindPair,
    pebble: PebbleProcess,
    second_pebble: PebbleProcess,
    operation: Operation,
    status: int,
) -> None:
    folder = tmp_path / "first"
    folder.mkdir()
    with AcmeProxy(folder, pebble) as first:
        # A web server where the authority was, or a firewall in front of it.
        rule = first.on(operation, Refuse(status), times=None)
        with running_duo(tmp_path, bind, first, second_pebble) as duo:
            mine = duo.world.ownership()
            wait_until(lambda: mine.get()["status"] == "ready", "the second issues")
            assert is_from(mine.certificate(), second_pebble)
        assert rule.hits
        assert not first.done(Operation.NEW_ORDER)


def test_next_authority_is_tried_where_the_budget_of_one_is_used_up(
    tmp_path: Path, bind: BindPair, pebble: PebbleProcess, second_pebble: PebbleProcess
) -> None:
    figures = {"GATEWAY_ACME__0__BUDGET__ORDERS_PER_3_HOURS": "1"}
    with running_duo(tmp_path, bind, pebble, second_pebble, figures) as duo:
        assert is_from(duo.world.ownership().certificate(), pebble)
        assert is_from(duo.world.ownership().certificate(), second_pebble)


def test_order_left_at_an_authority_is_taken_back_once_it_answers(
    tmp_path: Path, bind: BindPair, mortal_pebble: PebbleProcess, second_pebble: PebbleProcess
) -> None:
    with running_duo(tmp_path, bind, mortal_pebble, second_pebble) as duo:
        mine = duo.world.ownership()
        bind.secondary_process.pause()
        try:
            assert mine.get()["status"] == "pending"
            wait_until(
                lambda: "authorization_url" in duo.document(mine.hostname).get("issuance", {}),
                "the first authority's order is under way",
            )
            mortal_pebble.stop()
        finally:
            bind.secondary_process.resume()
        wait_until(lambda: mine.get()["status"] == "ready", "the second issues")
        assert is_from(mine.certificate(), second_pebble)

        def only_the_authorization_is_owed() -> bool:
            debts = duo.document(mine.hostname).get("debts", [])
            owed = [(debt["kind"], debt.get("directory_url")) for debt in debts]
            return owed == [("authorization", mortal_pebble.directory_url)]

        wait_until(only_the_authorization_is_owed, "all that can be cleaned up is")
