"""What a CA may make of our account: deactivated, forgotten, or never taken."""

import base64
import secrets
from pathlib import Path

import pytest

from tests.lab.acme_calls import Operation
from tests.lab.acme_moods import Refuse, Rewrite
from tests.lab.bind import BindPair
from tests.lab.process import wait_until
from tests.moods.moodlab import mood_lab

DEACTIVATED = 'account is not valid, has status "deactivated"'
KEY_ID = "lab-customer-1"


@pytest.mark.parametrize("http_status", [401, 403])
def test_deactivated_account_is_told_and_goes_on_once_it_is_valid_again(
    tmp_path: Path, bind: BindPair, http_status: int
) -> None:
    with mood_lab(tmp_path, bind) as lab:
        mine = lab.world.ownership()
        lab.on(mine, Operation.NEW_ORDER, Refuse(http_status, "unauthorized", DEACTIVATED))
        answer = mine.settled()
        assert (answer["status"], answer["reason"]) == ("refused", "authority-refused")
        assert DEACTIVATED in answer["message"]
        assert answer["retryAfterMs"] > 10_000
        lab.hurry(mine.hostname)
        lab.issued(mine)
        assert len(lab.orders(mine)) == 1


def test_account_that_is_deactivated_when_it_is_looked_up_is_told(
    tmp_path: Path, bind: BindPair
) -> None:
    with mood_lab(tmp_path, bind) as lab:
        mine = lab.world.ownership()
        deactivated = Rewrite("deactivated", lambda account: account.update(status="deactivated"))
        lab.proxy.on(Operation.NEW_ACCOUNT, deactivated)
        answer = mine.settled()
        assert (answer["status"], answer["reason"]) == ("refused", "authority-refused")
        assert lab.orders(mine) == []
        lab.hurry(mine.hostname)
        lab.issued(mine)


@pytest.mark.parametrize("operation", [Operation.NEW_ORDER, Operation.ORDER, Operation.CHALLENGE])
def test_account_that_the_authority_does_not_know_is_registered_again(
    tmp_path: Path, bind: BindPair, operation: Operation
) -> None:
    with mood_lab(tmp_path, bind) as lab:
        mine = lab.world.ownership()
        rule = lab.on(mine, operation, Refuse(400, "accountDoesNotExist", "no such account"))
        assert lab.issued(mine).reasons <= {"authority-unavailable"}
        assert len(rule.hits) == 1
        assert len(lab.proxy.done(Operation.NEW_ACCOUNT)) == 2
        assert len(lab.orders(mine)) == (1 if operation is Operation.NEW_ORDER else 2)


def test_account_that_the_authority_does_not_know_at_the_end_is_registered_again_much_later(
    tmp_path: Path, bind: BindPair
) -> None:
    with mood_lab(tmp_path, bind) as lab:
        mine = lab.world.ownership()
        refusal = Refuse(400, "accountDoesNotExist", "no such account")
        lab.on(mine, Operation.FINALIZE, refusal)
        answer = mine.settled()
        assert (answer["status"], answer["reason"]) == ("refused", "issuance-failed")
        lab.hurry(mine.hostname)
        lab.issued(mine)
        assert len(lab.proxy.done(Operation.NEW_ACCOUNT)) == 2
        assert len(lab.orders(mine)) == 2


def test_authority_that_was_reset_in_the_middle_is_started_anew_with(
    tmp_path: Path, bind: BindPair
) -> None:
    with mood_lab(tmp_path, bind) as lab:
        mine = lab.world.ownership()
        # Pebble may have decided by the first look; while it validates its order is looked at.
        undecided = Rewrite(
            "rests", lambda thing: thing.update(status="pending"), (("Retry-After", "3600"),)
        )
        rule = lab.on(mine, Operation.ORDER, undecided, times=None)
        mine.get()
        lab.wait_for_state(mine.hostname, "validating")
        lab.pebble.stop()
        lab.pebble.start()
        rule.end()
        lab.hurry(mine.hostname)
        lab.issued(mine)
        assert len(lab.proxy.done(Operation.NEW_ACCOUNT)) == 2
        assert len(lab.orders(mine)) == 2
        wait_until(lambda: lab.is_tidy(mine), "nothing is left behind")


def test_authority_that_was_reset_between_two_certificates_issues_the_next(
    tmp_path: Path, bind: BindPair
) -> None:
    with mood_lab(tmp_path, bind) as lab:
        lab.issued(lab.world.ownership())
        lab.pebble.stop()
        lab.pebble.start()
        lab.issued(lab.world.ownership())
        assert len(lab.proxy.done(Operation.NEW_ACCOUNT)) == 2


def binding() -> tuple[dict[str, object], str]:
    """An external account as Pebble is told of it, and as a gateway's configuration has it."""
    key = base64.urlsafe_b64encode(secrets.token_bytes(32)).rstrip(b"=").decode()
    settings = {"externalAccountBindingRequired": True, "externalAccountMACKeys": {KEY_ID: key}}
    return settings, f'eab = {{ key_id = "{KEY_ID}", hmac_key = "{key}" }}'


def test_authority_that_requires_an_external_account_says_so(
    tmp_path: Path, bind: BindPair
) -> None:
    settings, _ = binding()
    with mood_lab(tmp_path, bind, settings=settings) as lab:
        answer = lab.world.ownership().settled()
        assert (answer["status"], answer["reason"]) == ("refused", "authority-refused")
        assert "external" in answer["message"].lower()
        assert lab.proxy.done(Operation.NEW_ACCOUNT) == []


def test_authority_that_requires_an_external_account_takes_the_configured_one(
    tmp_path: Path, bind: BindPair
) -> None:
    settings, line = binding()
    with mood_lab(tmp_path, bind, settings=settings, acme=[line]) as lab:
        assert lab.issued(lab.world.ownership()).reasons == set()


def test_external_account_with_another_key_is_refused_without_the_key(
    tmp_path: Path, bind: BindPair
) -> None:
    settings, _ = binding()
    _, wrong = binding()
    with mood_lab(tmp_path, bind, settings=settings, acme=[wrong]) as lab:
        answer = lab.world.ownership().settled()
        assert answer["status"] == "refused"
        assert answer["reason"] == "authority-refused"
        key = wrong.split('"')[3]
        assert key not in answer["message"]
        assert key not in lab.log()
