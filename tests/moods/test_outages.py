"""A CA that is broken, away, or gone in the middle: before it acted, after it, and half way."""

import os
import signal

import pytest

from tests.integration.service.calling import Ownership
from tests.lab.acme_calls import Answer, Operation
from tests.lab.acme_moods import Cut, Drop, Exchange, Hang, Lose, Refuse, Truncate
from tests.lab.process import wait_until
from tests.moods.moodlab import MoodLab

PROMISED_END_SECONDS = 10.0

EVERYWHERE = [
    Operation.NEW_ORDER,
    Operation.ORDER,
    Operation.AUTHORIZATION,
    Operation.CHALLENGE,
    Operation.FINALIZE,
    Operation.CERTIFICATE,
]

ONCE_AND_AGAIN = 2
"""The gateway repeats a request at once when its connection was cut: an idle one ends like that."""


@pytest.mark.parametrize("operation", EVERYWHERE)
def test_server_error_is_waited_for_with_the_same_order(
    moody: MoodLab, operation: Operation
) -> None:
    each = {status: moody.world.ownership() for status in (500, 502, 503)}
    for status, mine in each.items():
        moody.on(mine, operation, Refuse(status, "serverInternal" if status == 500 else ""))
        assert mine.get()["status"] == "pending"
    moody.issued(*each.values())
    for mine in each.values():
        assert moody.held_up(mine.hostname) == {"authority-unavailable"}
        assert len(moody.orders(mine)) == 1


@pytest.mark.parametrize("status", [400, 403, 404, 405])
@pytest.mark.parametrize("operation", EVERYWHERE)
def test_refusal_that_is_not_the_authoritys_own_costs_no_second_order(
    moody: MoodLab, mine: Ownership, operation: Operation, status: int
) -> None:
    # A firewall, or a load balancer with nobody behind it: no problem document.
    rule = moody.on(mine, operation, Refuse(status))
    assert moody.issued(mine).reasons == {"authority-unavailable"}
    assert len(rule.hits) == 1
    assert len(moody.orders(mine)) == 1
    assert len(moody.proxy.done(Operation.FINALIZE, mine.hostname)) == 1
    certificates = moody.proxy.done(Operation.CERTIFICATE, mine.hostname)
    assert len({call.path for call in certificates}) == 1


@pytest.mark.parametrize("operation", EVERYWHERE)
def test_connection_dropped_before_the_authority_acted_costs_no_second_order(
    moody: MoodLab, mine: Ownership, operation: Operation
) -> None:
    rule = moody.on(mine, operation, Drop(), times=ONCE_AND_AGAIN)
    assert moody.issued(mine).reasons == {"authority-unavailable"}
    assert len(rule.hits) == ONCE_AND_AGAIN
    assert len(moody.orders(mine)) == 1


@pytest.mark.parametrize("mood", [Lose(), Truncate()], ids=["lost", "truncated"])
def test_lost_answer_to_a_new_order_costs_one_more_order(
    moody: MoodLab, mine: Ownership, mood: Lose | Truncate
) -> None:
    rule = moody.on(mine, Operation.NEW_ORDER, mood)
    moody.issued(mine)
    assert len(rule.hits) == 1
    assert len(moody.orders(mine)) == 2


@pytest.mark.parametrize("mood", [Lose(), Truncate()], ids=["lost", "truncated"])
@pytest.mark.parametrize(
    "operation",
    [Operation.ORDER, Operation.AUTHORIZATION, Operation.CHALLENGE, Operation.FINALIZE],
)
def test_lost_answer_to_anything_else_costs_no_second_order(
    moody: MoodLab, mine: Ownership, operation: Operation, mood: Lose | Truncate
) -> None:
    rule = moody.on(mine, operation, mood)
    moody.issued(mine)
    assert len(rule.hits) == 1
    assert len(moody.orders(mine)) == 1
    assert len(moody.proxy.done(Operation.FINALIZE, mine.hostname)) == 1


class EndAfterLeaf:
    """The certificate's answer ends where the first certificate does."""

    name = "chain cut off after its first certificate"

    def __call__(self, exchange: Exchange) -> Answer:
        answer = exchange.pass_on()
        end = b"-----END CERTIFICATE-----\n"
        raise Cut(answer, answer.body.index(end) + len(end))


@pytest.mark.parametrize("mood", [Lose(), Truncate(), EndAfterLeaf()], ids=lambda mood: mood.name)
def test_certificate_whose_answer_was_lost_is_fetched_again_and_whole(
    moody: MoodLab, mine: Ownership, mood: Lose | Truncate | EndAfterLeaf
) -> None:
    rule = moody.on(mine, Operation.CERTIFICATE, mood)
    chain = moody.issued(mine).certificate["chainPem"]
    assert len(rule.hits) == 1
    assert chain.count("-----BEGIN CERTIFICATE-----") == 2
    assert len(moody.orders(mine)) == 1


def test_authority_that_never_answers_is_given_up_in_time_and_asked_again(
    moody: MoodLab,
) -> None:
    before, after = moody.world.ownership(), moody.world.ownership()
    rules = [
        moody.on(before, Operation.NEW_ORDER, Hang(after_acting=False)),
        moody.on(after, Operation.FINALIZE, Hang(after_acting=True)),
    ]
    for mine in (before, after):
        assert mine.get()["status"] == "pending"
    # Another hostname is not held up by them.
    assert moody.issued(moody.world.ownership()).reasons == set()
    for mine in (before, after):
        assert moody.issued(mine).reasons == {"authority-unavailable"}
        assert len(moody.orders(mine)) == 1
    for rule in rules:
        assert len(rule.hits) == 1
        rule.end()


def test_gateway_ends_in_time_while_its_authority_hangs(moody: MoodLab, mine: Ownership) -> None:
    rule = moody.on(mine, Operation.NEW_ORDER, Hang(after_acting=False), times=None)
    assert mine.get()["status"] == "pending"
    wait_until(lambda: bool(rule.hits), "the call hangs")
    process = moody.gateway.process
    os.kill(process.pid, signal.SIGTERM)
    try:
        wait_until(lambda: not process.is_running, "the gateway ends", PROMISED_END_SECONDS)
    finally:
        rule.end()
        moody.gateway.start()
    assert moody.issued(mine)
    assert len(moody.orders(mine)) == 1
