"""429 `rateLimited`, wherever a CA may say it."""

import time
from pathlib import Path

import pytest

from tests.integration.service.calling import Ownership
from tests.lab.acme_calls import Operation
from tests.lab.acme_moods import Refuse
from tests.lab.bind import BindPair
from tests.moods.moodlab import MoodLab, mood_lab

TEN_MINUTES_MS = 600_000


def too_many(hostname: str, retry_after: str | None) -> Refuse:
    # In a CA's manner: it names what the limit is about.
    words = f'too many certificates (5) already issued for "{hostname}" in the last 168h0m0s'
    return Refuse(429, "rateLimited", words, retry_after)


def assert_true_time(lab: MoodLab, mine: Ownership) -> None:
    """The client is told to come back when the issuance will have gone on, and not before."""
    issuance = lab.wait_for_state(mine.hostname, "waiting")
    answer = mine.get()
    left_ms = issuance["due_at_ms"] - time.time() * 1000
    assert answer["retryAfterMs"] >= left_ms


@pytest.mark.parametrize("operation", [Operation.NEW_ORDER, Operation.FINALIZE])
def test_short_rate_limit_is_pending_with_its_true_time_and_goes_on_by_itself(
    moody: MoodLab, mine: Ownership, operation: Operation
) -> None:
    rule = moody.on(mine, operation, too_many(mine.hostname, "4"))
    assert mine.get()["status"] == "pending"
    assert_true_time(moody, mine)
    assert moody.issued(mine).reasons == {"rate-limited"}
    assert len(moody.orders(mine)) == 1
    (refused,), (again,) = rule.hits, moody.proxy.done(operation, mine.hostname)
    assert again.at - refused.at >= 4
    assert len(moody.proxy.seen(operation, mine.hostname)) == 2


@pytest.mark.parametrize("operation", [Operation.NEW_ORDER, Operation.FINALIZE])
def test_long_rate_limit_is_refused_with_its_true_time_and_the_authoritys_words(
    moody: MoodLab, mine: Ownership, operation: Operation
) -> None:
    moody.on(mine, operation, too_many(mine.hostname, "600"))
    answer = mine.settled()
    assert (answer["status"], answer["reason"]) == ("refused", "rate-limited")
    assert f'already issued for "{mine.hostname}"' in answer["message"]
    assert TEN_MINUTES_MS - 60_000 < answer["retryAfterMs"] < TEN_MINUTES_MS + 120_000
    assert_true_time(moody, mine)
    # It is about this hostname: no other one is held back.
    moody.issued(moody.world.ownership())
    assert mine.release() == "released"


def test_rate_limit_on_the_account_holds_its_other_hostnames_back_unasked(
    tmp_path: Path, bind: BindPair
) -> None:
    with mood_lab(tmp_path, bind) as lab:
        mine, other = lab.world.ownership(), lab.world.ownership()
        words = "too many new orders (300) from this account in the last 3h0m0s"
        lab.on(mine, Operation.NEW_ORDER, Refuse(429, "rateLimited", words, "600"))
        for each in (mine, other):
            answer = each.settled()
            assert (answer["status"], answer["reason"]) == ("refused", "rate-limited")
            assert answer["retryAfterMs"] > TEN_MINUTES_MS - 60_000
        assert lab.proxy.seen(Operation.NEW_ORDER, other.hostname) == []


def test_rate_limit_without_a_time_waits_for_about_a_minute(
    moody: MoodLab, mine: Ownership
) -> None:
    moody.on(mine, Operation.FINALIZE, too_many(mine.hostname, None))
    assert mine.get()["status"] == "pending"
    issuance = moody.wait_for_state(mine.hostname, "waiting")
    assert issuance["reason"] == "rate-limited"
    # A minute, spread down by a fifth.
    assert 48_000 <= issuance["due_at_ms"] - issuance["changed_at_ms"] <= 60_000
    moody.hurry(mine.hostname)
    moody.issued(mine)
    assert len(moody.orders(mine)) == 1


def test_rate_limit_on_new_accounts_holds_and_passes(tmp_path: Path, bind: BindPair) -> None:
    with mood_lab(tmp_path, bind) as lab:
        words = "too many registrations (10) from this IP address in the last 3h0m0s"
        rule = lab.proxy.on(Operation.NEW_ACCOUNT, Refuse(429, "rateLimited", words, "4"))
        mine = lab.world.ownership()
        assert mine.get()["status"] == "pending"
        issuance = lab.wait_for_state(mine.hostname, "waiting")
        assert words in issuance["message"]
        assert lab.issued(mine).reasons == {"rate-limited"}
        assert len(rule.hits) == 1
        assert len(lab.proxy.done(Operation.NEW_ACCOUNT)) == 1
        assert len(lab.orders(mine)) == 1
