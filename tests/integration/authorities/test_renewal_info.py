"""Renewal as the CA suggests it (ARI, RFC 9773): asked, planned, moved, and broken."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from email.utils import formatdate
from pathlib import Path

import pytest

from tests.integration.authorities.conftest import AriLab
from tests.integration.authorities.duo import running_duo
from tests.integration.authorities.renewing import (
    DAY_MS,
    HOUR_MS,
    name_of,
    renewing_ca,
    replaced_by,
)
from tests.integration.service.calling import Ownership
from tests.lab.acme_calls import Answer, Operation
from tests.lab.acme_moods import (
    Drop,
    Exchange,
    Hang,
    Mood,
    Refuse,
    Replace,
    Rewrite,
    Truncate,
)
from tests.lab.bind import BindPair
from tests.lab.process import wait_until

RENEW_AT = 0.66
"""The configuration's default: the share of the lifetime where the CA says nothing."""


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def without_header(answer: Answer, name: str) -> Answer:
    kept = tuple(pair for pair in answer.headers if pair[0].lower() != name.lower())
    return Answer(answer.status, kept, answer.body)


def test_new_certificate_is_asked_about_at_once_and_planned_in_its_window(ari: AriLab) -> None:
    before_ms = now_ms()
    mine, held = ari.issued()
    assert len(ari.ca.questions(mine.hostname)) == 1
    start_ms, end_ms = ari.ca.window_of(held)
    assert held["window_ms"] == [start_ms, end_ms]
    assert start_ms <= held["renew_at_ms"] <= end_ms
    # Both Pebble and the proxy want to be asked again after six hours.
    assert before_ms <= held["ask_at_ms"] - 6 * HOUR_MS <= now_ms()
    told = mine.certificate()
    assert held["renew_at_ms"] < told["renewAfter"] < told["validUntil"]


def test_window_moved_into_the_past_renews_at_once_and_the_order_says_what_it_replaces(
    ari: AriLab,
) -> None:
    mine, held = ari.issued()
    first = mine.certificate()
    ari.ca.say(held, (now_ms() - 2 * DAY_MS, now_ms() - DAY_MS))
    ari.duo.ask_now(mine.hostname)
    renewed = ari.duo.wait_until_renewed(mine, held["serial"])
    assert [replaced_by(order) for order in ari.ca.made_orders(mine.hostname)] == [
        None,
        name_of(held),
    ]
    assert len(ari.ca.orders(mine.hostname)) == 2
    second = mine.certificate()
    assert second["chainPem"] == renewed["chain_pem"]
    assert second["privateKeyPem"] != first["privateKeyPem"]
    # The next one is planned by its own window, and asked about at once.
    ari.duo.wait_until_at_rest(mine.hostname)
    assert ari.duo.certificate(mine.hostname)["renew_at_ms"] > now_ms() + DAY_MS
    assert len(ari.ca.questions(mine.hostname)) == 3


def test_plan_moves_with_the_window_and_only_with_it(ari: AriLab) -> None:
    mine, held = ari.issued()
    ari.duo.ask_now(mine.hostname)
    ari.duo.wait_until_at_rest(mine.hostname)
    assert ari.duo.certificate(mine.hostname)["renew_at_ms"] == held["renew_at_ms"]

    window = (now_ms() + 20 * DAY_MS, now_ms() + 21 * DAY_MS)
    ari.ca.say(held, window)
    ari.duo.ask_now(mine.hostname)
    ari.duo.wait_until_at_rest(mine.hostname)
    moved = ari.duo.certificate(mine.hostname)
    assert window[0] - 1 <= moved["renew_at_ms"] <= window[1]
    told = mine.certificate()
    assert moved["renew_at_ms"] < told["renewAfter"] < told["validUntil"]
    assert told["chainPem"] == held["chain_pem"]
    assert len(ari.ca.orders(mine.hostname)) == 1


PAUSES = [
    ("120", 120_000),
    ("1", 60_000),
    ("604800", DAY_MS),
    (None, 6 * HOUR_MS),
]


@pytest.mark.parametrize(("retry_after", "pause_ms"), PAUSES)
def test_question_is_repeated_when_the_authority_says_within_bounds(
    ari: AriLab, retry_after: str | None, pause_ms: int
) -> None:
    mood: Mood = (
        Replace("no Retry-After", lambda answer: without_header(answer, "Retry-After"))
        if retry_after is None
        else Rewrite("another Retry-After", headers=(("Retry-After", retry_after),))
    )
    before_ms = now_ms()
    mine, held = ari.issued(ari.meeting(mood))
    assert len(ari.ca.questions(mine.hostname)) == 1
    assert before_ms <= held["ask_at_ms"] - pause_ms <= now_ms()


def test_question_is_repeated_at_the_date_that_the_authority_names(ari: AriLab) -> None:
    at_seconds = int(time.time()) + 7200
    date = (("Retry-After", formatdate(at_seconds, usegmt=True)),)
    _, held = ari.issued(ari.meeting(Rewrite("Retry-After as a date", headers=date)))
    # The CA's seconds are whole ones.
    assert abs(held["ask_at_ms"] - at_seconds * 1000) <= 1000


def other_window(start: object, end: object) -> Rewrite:
    window = {"start": start, "end": end}
    return Rewrite(
        f"a window from {start} to {end}", lambda body: body.update(suggestedWindow=window)
    )


def answer_as(make: Callable[[Answer], bytes], name: str) -> Replace:
    return Replace(name, lambda answer: Answer(answer.status, answer.headers, make(answer)))


BROKEN = [
    Refuse(500, "serverInternal"),
    Refuse(503),
    Refuse(404, "malformed"),
    Drop(),
    Truncate(),
    other_window("2027-01-02T00:00:00Z", "2027-01-01T00:00:00Z"),
    other_window("soon", "later"),
    other_window(None, 7),
    answer_as(lambda _: b"<h1>renew soon</h1>", "not JSON"),
    answer_as(lambda _: b'["2027-01-01T00:00:00Z"]', "not an object"),
    answer_as(lambda answer: json.dumps({"window": answer.json()}).encode(), "no window"),
]


@pytest.mark.parametrize("mood", BROKEN, ids=lambda mood: mood.name)
def test_answer_that_makes_no_sense_leaves_the_share_of_the_lifetime(
    ari: AriLab, mood: Mood
) -> None:
    before_ms = now_ms()
    mine, held = ari.issued(ari.meeting(mood, times=2))
    told = mine.certificate()
    lifetime_ms = held["valid_until_ms"] - held["valid_from_ms"]
    planned = (held["renew_at_ms"] - held["valid_from_ms"]) / lifetime_ms
    assert RENEW_AT * 0.9 - 1e-6 <= planned <= RENEW_AT
    assert held["window_ms"] is None
    assert before_ms <= held["ask_at_ms"] - 6 * HOUR_MS <= now_ms()
    # It is asked again, and what it says then is followed.
    ari.end_moods(mine)
    ari.duo.ask_now(mine.hostname)
    ari.duo.wait_until_at_rest(mine.hostname)
    after = ari.duo.certificate(mine.hostname)
    assert after["window_ms"] == list(ari.ca.window_of(held))
    assert mine.certificate()["chainPem"] == told["chainPem"]


LATE_WINDOW = {"start": "2030-01-01T00:00:00Z", "end": "2030-01-02T00:00:00Z"}


@dataclass(frozen=True)
class Late:
    """Answers with a window of its own, and only when the mood is over."""

    name: str = "a late answer"

    def __call__(self, exchange: Exchange) -> Answer:
        answer = exchange.pass_on()
        exchange.hold()
        return answer.with_json({"suggestedWindow": LATE_WINDOW})


def test_late_answer_hides_nothing_and_is_not_taken_for_another_certificate(ari: AriLab) -> None:
    mine = ari.duo.world.ownership()
    with ari.ca.proxy.on(Operation.RENEWAL_INFO, Late(), hostname=mine.hostname) as rule:
        first = mine.certificate()
        wait_until(lambda: bool(rule.hits), "the question about the first one is under way")
        assert mine.get()["status"] == "ready"
        # Other hostnames are issued meanwhile.
        assert ari.duo.world.ownership().certificate()
        assert mine.release() == "released"
        assert mine.get()["status"] == "pending"
    second = mine.certificate()
    assert second["chainPem"] != first["chainPem"]
    ari.duo.wait_until_at_rest(mine.hostname)
    held = ari.duo.certificate(mine.hostname)
    assert held["chain_pem"] == second["chainPem"]
    late_ms = datetime.fromisoformat(LATE_WINDOW["start"]).timestamp() * 1000
    assert (held["window_ms"] or [0])[0] != late_ms


def test_authority_that_leaves_questions_unanswered_holds_up_nothing_else(
    tmp_path: Path, bind: BindPair
) -> None:
    with (
        renewing_ca(tmp_path / "ca", bind) as ca,
        running_duo(tmp_path, bind, ca.proxy) as duo,
    ):
        caller = duo.world.client("*.example.test")
        asked_about = [Ownership(caller, f"asked-{number}.example.test") for number in range(8)]
        for mine in asked_about:
            mine.get()
        for mine in asked_about:
            mine.certificate()
            duo.wait_until_at_rest(mine.hostname)
        silent = ca.proxy.on(Operation.RENEWAL_INFO, Hang(after_acting=False), times=None)
        held = [duo.certificate(mine.hostname) for mine in asked_about]
        before_ms = now_ms()
        for mine in asked_about:
            duo.change_certificate(mine.hostname, lambda stored: {**stored, "ask_at_ms": 1})
        wait_until(lambda: bool(silent.hits), "a question is under way")
        # While questions hang, and as long as they do: the issuances have the CA to themselves.
        assert duo.world.ownership().certificate()
        for mine, before in zip(asked_about, held, strict=True):
            duo.wait_until_looked_at(mine.hostname)
            after = duo.certificate(mine.hostname)
            assert after == {**before, "ask_at_ms": after["ask_at_ms"]}
            assert before_ms <= after["ask_at_ms"] - 6 * HOUR_MS <= now_ms()
        # After the first ones had no answer, it was left alone.
        assert len(silent.hits) <= 2
        silent.end()
