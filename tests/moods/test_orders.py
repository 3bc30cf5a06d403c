"""Orders and authorizations that are not what the gateway left them as."""

from pathlib import Path
from typing import Any

import pytest

from tests.integration.service.calling import Ownership
from tests.lab.acme_calls import Answer, Operation
from tests.lab.acme_moods import Exchange, Refuse, Replace, Rewrite
from tests.lab.bind import BindPair
from tests.lab.process import wait_until
from tests.moods.moodlab import MoodLab, mood_lab

GONE = Refuse(404, "malformed", "it expired and was removed")


def status(value: str) -> Rewrite:
    return Rewrite(f"it is {value}", lambda thing: thing.update(status=value))


class WithOrderOf:
    """`newOrder` answered with another hostname's order, as it was answered there."""

    name = "another hostname's order"

    def __init__(self, moody: MoodLab, other: Ownership) -> None:
        self._answers: list[Answer] = []
        moody.on(other, Operation.NEW_ORDER, Replace("remembered", self._remember))

    def _remember(self, answer: Answer) -> Answer:
        self._answers.append(answer)
        return answer

    def __call__(self, exchange: Exchange) -> Answer:
        return self._answers[0]


@pytest.mark.parametrize(
    "operation", [Operation.ORDER, Operation.AUTHORIZATION, Operation.CHALLENGE]
)
def test_order_that_vanished_is_followed_by_another(
    moody: MoodLab, mine: Ownership, operation: Operation
) -> None:
    rule = moody.on(mine, operation, GONE)
    assert moody.issued(mine).reasons == {"authority-unavailable"}
    assert len(rule.hits) == 1
    assert len(moody.orders(mine)) == 2
    wait_until(lambda: moody.is_tidy(mine), "nothing is left behind")


@pytest.mark.parametrize("operation", [Operation.FINALIZE, Operation.CERTIFICATE])
def test_order_that_vanished_with_its_certificate_is_followed_by_another_much_later(
    moody: MoodLab, mine: Ownership, operation: Operation
) -> None:
    moody.on(mine, operation, GONE)
    answer = mine.settled()
    assert (answer["status"], answer["reason"]) == ("refused", "issuance-failed")
    assert answer["retryAfterMs"] > 10_000
    moody.hurry(mine.hostname)
    moody.issued(mine)
    assert len(moody.orders(mine)) == 2
    wait_until(lambda: moody.is_tidy(mine), "nothing is left behind")


def test_order_that_expired_is_followed_by_another(moody: MoodLab, mine: Ownership) -> None:
    # RFC 8555, 7.1.6: an order that expires is invalid.
    moody.on(mine, Operation.ORDER, status("invalid"))
    answer = mine.settled()
    assert (answer["status"], answer["reason"]) == ("refused", "issuance-failed")
    assert answer["retryAfterMs"] > 10_000
    moody.hurry(mine.hostname)
    moody.issued(mine)
    assert len(moody.orders(mine)) == 2


@pytest.mark.parametrize("end", ["expired", "deactivated", "revoked"])
def test_authorization_that_came_to_an_end_is_followed_by_another_order(
    moody: MoodLab, mine: Ownership, end: str
) -> None:
    moody.on(mine, Operation.AUTHORIZATION, status(end))
    assert moody.issued(mine).reasons == {"authority-unavailable"}
    assert len(moody.orders(mine)) == 2
    wait_until(lambda: moody.is_tidy(mine), "nothing is left behind")


def test_authorization_that_is_valid_already_needs_no_challenge(
    tmp_path: Path, bind: BindPair
) -> None:
    with mood_lab(tmp_path, bind, environ={"PEBBLE_AUTHZREUSE": "100"}) as lab:
        mine = lab.world.ownership()
        first = lab.issued(mine).certificate
        assert mine.release() == "released"
        second = lab.issued(mine)
        assert second.reasons == set()
        assert second.certificate["chainPem"] != first["chainPem"]
        assert len(lab.orders(mine)) == 2
        assert len(lab.proxy.seen(Operation.CHALLENGE, mine.hostname)) == 1


def test_order_that_is_late_to_notice_its_valid_authorization_is_waited_for(
    tmp_path: Path, bind: BindPair
) -> None:
    with mood_lab(tmp_path, bind, environ={"PEBBLE_AUTHZREUSE": "100"}) as lab:
        mine = lab.world.ownership()
        lab.issued(mine)
        assert mine.release() == "released"
        rules = [
            lab.on(mine, operation, status("pending"))
            for operation in (Operation.NEW_ORDER, Operation.ORDER)
        ]
        assert lab.issued(mine).reasons == set()
        assert all(rule.hits for rule in rules)
        assert len(lab.orders(mine)) == 2
        assert len(lab.proxy.seen(Operation.CHALLENGE, mine.hostname)) == 1


def challenge_records(moody: MoodLab, mine: Ownership) -> set[str]:
    return moody.hand.records(f"_acme-challenge.{mine.hostname}")


def test_order_of_another_hostname_under_way_is_never_worked_on(moody: MoodLab) -> None:
    other, mine = moody.world.ownership(), moody.world.ownership()
    mood = WithOrderOf(moody, other)
    # The other one rests with its challenge published and answered, its order pending.
    undecided = Rewrite(
        "still pending",
        lambda thing: thing.update(status="pending") if is_answered() else None,
        (("Retry-After", "3600"),),
    )

    def is_answered() -> bool:
        return bool(moody.proxy.seen(Operation.CHALLENGE, other.hostname))

    rule = moody.on(other, Operation.ORDER, undecided, times=None)
    assert other.get()["status"] == "pending"
    # Its first look at the order brings the Retry-After that it then rests for.
    wait_until(lambda: moody.issuance(other.hostname).get("looks", 0) == 2, "the other one rests")
    published = challenge_records(moody, other)
    calls_before = len([call for call in moody.proxy.calls if call.hostname == other.hostname])

    moody.on(mine, Operation.NEW_ORDER, mood)
    # Once it begins anew it is held before its own order, to look at what it has done so far.
    held = moody.on(mine, Operation.NEW_ORDER, Refuse(503), times=None)
    mine.get()
    wait_until(lambda: bool(held.hits), "it begins anew")
    assert challenge_records(moody, mine) == set()
    assert "challenge-record" not in moody.stored(mine.hostname).get("debts", "")
    assert moody.proxy.seen(Operation.FINALIZE, other.hostname) == []
    assert moody.proxy.seen(Operation.DEACTIVATION, other.hostname) == []
    # Done, not seen: an answer that was cut off before Pebble had it is sent again.
    assert len(moody.proxy.done(Operation.CHALLENGE, other.hostname)) == 1
    calls = [call for call in moody.proxy.calls if call.hostname == other.hostname]
    assert len(calls) - calls_before == 0
    held.end()
    assert moody.issued(mine).certificate["hostname"] == mine.hostname
    assert len(moody.orders(mine)) == 1

    assert challenge_records(moody, other) == published
    rule.end()
    moody.hurry(other.hostname)
    assert moody.issued(other).reasons == set()
    assert len(moody.orders(other)) == 1
    assert moody.proxy.seen(Operation.DEACTIVATION, other.hostname) == []


def test_certificate_of_another_hostnames_order_is_never_taken(moody: MoodLab) -> None:
    other, mine = moody.world.ownership(), moody.world.ownership()
    mood = WithOrderOf(moody, other)
    kept = moody.issued(other).certificate
    rule = moody.on(mine, Operation.NEW_ORDER, mood)
    certificate = moody.issued(mine).certificate
    assert len(rule.hits) == 1
    assert certificate["hostname"] == mine.hostname
    assert certificate["chainPem"] != kept["chainPem"]
    assert len(moody.proxy.done(Operation.FINALIZE, other.hostname)) == 1
    assert len(moody.orders(mine)) == 1
    assert other.certificate() == kept


def test_finalize_that_ran_already_is_read_and_not_repeated(
    moody: MoodLab, mine: Ownership
) -> None:
    ran_already = Refuse(403, "orderNotReady", "the order is valid already")

    def refused(answer: Answer) -> Answer:
        assert answer.status == 200
        return ran_already(None)  # type: ignore[arg-type]

    moody.on(mine, Operation.FINALIZE, Replace("ran already", refused))
    assert moody.issued(mine).reasons == set()
    assert len(moody.proxy.seen(Operation.FINALIZE, mine.hostname)) == 1
    assert len(moody.orders(mine)) == 1


def test_finalize_that_is_too_early_is_tried_again(moody: MoodLab, mine: Ownership) -> None:
    too_early: dict[str, Any] = {"status": 403, "problem_type": "orderNotReady"}
    moody.on(mine, Operation.FINALIZE, Refuse(**too_early), times=3)
    assert moody.issued(mine).reasons == set()
    assert len(moody.proxy.seen(Operation.FINALIZE, mine.hostname)) == 4
    assert len(moody.orders(mine)) == 1
