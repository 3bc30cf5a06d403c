"""A CA that takes its time, and says for how long in each of the ways that HTTP has."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from itertools import pairwise
from pathlib import Path

import pytest

from tests.integration.service.calling import Ownership
from tests.lab.acme_calls import Answer, Operation
from tests.lab.acme_moods import Exchange, Refuse
from tests.lab.bind import BindPair
from tests.lab.process import wait_until
from tests.moods.moodlab import MoodLab, mood_lab

MINUTE_MS = 60_000


class Processing:
    """The order is `processing` for so many answers after the CSR, whatever Pebble says."""

    name = "processing"

    def __init__(self, answers: int, retry_after: str | None = None) -> None:
        self.at: list[float] = []
        self._answers = answers
        self._retry_after = retry_after

    def __call__(self, exchange: Exchange) -> Answer:
        answer = exchange.pass_on()
        order = answer.json()
        is_finalized = order.get("status") in {"processing", "valid"}
        if not is_finalized or len(self.at) == self._answers:
            return answer
        self.at.append(exchange.call.at)
        order.pop("certificate", None)
        answer = answer.with_json({**order, "status": "processing"})
        if self._retry_after is None:
            return answer
        return answer.with_header("Retry-After", self._retry_after)


def processing(moody: MoodLab, mine: Ownership, mood: Processing) -> Processing:
    for operation in (Operation.FINALIZE, Operation.ORDER):
        moody.on(mine, operation, mood, times=None)
    return mood


def in_a_minute() -> str:
    return format_datetime(datetime.now(UTC) + timedelta(minutes=1), usegmt=True)


def an_hour_ago() -> str:
    return format_datetime(datetime.now(UTC) - timedelta(hours=1), usegmt=True)


def pause_ms(moody: MoodLab, mine: Ownership) -> int:
    """How long the issuance rests, from its last change of state on."""
    issuance = moody.issuance(mine.hostname)
    return int(issuance["due_at_ms"] - issuance["changed_at_ms"])


def assert_polls_double(at: list[float]) -> None:
    """Each pause is at least twice the one before it, from 10 ms on: no hot loop."""
    pauses = [later - earlier for earlier, later in pairwise(at)]
    assert all(pause >= 0.010 * 2**index for index, pause in enumerate(pauses)), pauses


def test_order_that_is_processed_for_long_stays_pending_until_it_is_issued(
    moody: MoodLab, mine: Ownership
) -> None:
    mood = processing(moody, mine, Processing(8))
    told = moody.issued(mine)
    assert told.reasons == set()
    assert len(mood.at) == 8
    assert_polls_double(mood.at)
    assert len(moody.orders(mine)) == 1
    assert len(moody.proxy.done(Operation.FINALIZE, mine.hostname)) == 1


def test_order_that_is_processed_for_hours_is_still_the_same_order(
    moody: MoodLab, mine: Ownership
) -> None:
    processing(moody, mine, Processing(2, "7200"))
    assert mine.get()["status"] == "pending"
    for _ in range(2):
        wait_until(lambda: pause_ms(moody, mine) >= 7_200_000, "it is asked again in two hours")
        assert mine.get()["status"] == "pending"
        moody.hurry(mine.hostname)
    moody.issued(mine)
    assert len(moody.orders(mine)) == 1


@pytest.mark.parametrize("retry_after", ["60", in_a_minute], ids=["seconds", "date"])
def test_retry_after_of_a_poll_holds_in_either_form(
    moody: MoodLab, mine: Ownership, retry_after: object
) -> None:
    text = retry_after() if callable(retry_after) else str(retry_after)
    processing(moody, mine, Processing(1, text))
    mine.get()
    moody.wait_for_state(mine.hostname, "finalizing")
    # A date loses what it has been on the way.
    assert MINUTE_MS - 20_000 < pause_ms(moody, mine) <= MINUTE_MS
    moody.hurry(mine.hostname)
    assert moody.issued(mine).reasons == set()


def test_retry_after_in_the_past_is_no_hot_loop(moody: MoodLab, mine: Ownership) -> None:
    mood = processing(moody, mine, Processing(5, an_hour_ago()))
    assert moody.issued(mine).reasons == set()
    assert len(mood.at) == 5
    assert_polls_double(mood.at)


@pytest.mark.parametrize("retry_after", ["60", in_a_minute], ids=["seconds", "date"])
def test_retry_after_of_a_refusal_holds_in_either_form(
    tmp_path: Path, bind: BindPair, retry_after: object
) -> None:
    text = retry_after() if callable(retry_after) else str(retry_after)
    # A lab of its own: the authority is left alone for all hostnames meanwhile.
    with mood_lab(tmp_path, bind) as lab:
        mine = lab.world.ownership()
        lab.on(mine, Operation.FINALIZE, Refuse(503, retry_after=text))
        answer = mine.settled()
        assert (answer["status"], answer["reason"]) == ("refused", "authority-unavailable")
        assert MINUTE_MS - 20_000 < answer["retryAfterMs"] <= 2 * MINUTE_MS
        assert MINUTE_MS - 20_000 < pause_ms(lab, mine) <= MINUTE_MS
        lab.hurry(mine.hostname)
        lab.issued(mine)
        assert len(lab.orders(mine)) == 1


def test_refusal_with_a_retry_after_in_the_past_waits_by_itself(
    moody: MoodLab, mine: Ownership
) -> None:
    rule = moody.on(mine, Operation.FINALIZE, Refuse(503, retry_after=an_hour_ago()), times=2)
    assert moody.issued(mine).reasons == {"authority-unavailable"}
    first, second = (call.at for call in rule.hits)
    # A second, spread down by a fifth.
    assert second - first >= 0.8
    assert len(moody.orders(mine)) == 1
