"""The words of `gateway client certificate wait` while it waits."""

import pytest

from gateway.cli.client_progress import (
    PLAIN_LINES_EVERY_SECONDS,
    PlainLines,
    ProgressShower,
    clock_words,
    live_line,
    plain_line,
    state_words,
)
from gateway.client import Pending, Progress, Refused, Unreachable

PENDING = Pending(retry_after_ms=1500)


def at(waited: float, answer: Pending | Refused | Unreachable = PENDING) -> Progress:
    return Progress(answer, waited_seconds=waited, next_in_seconds=1.5, left_seconds=300 - waited)


def test_live_line_has_the_times_the_state_and_a_bar() -> None:
    line = live_line("|", 75.2, 300.0, 1.5, "issuance under way", 80)
    assert line == "| [###---------] 1:15 waited, 3:44 left, asks in 2 s: issuance under way"


def test_live_line_before_the_first_answer_names_no_next_question() -> None:
    line = live_line("|", 0.0, 300.0, None, "asking", 80)
    assert line == "| [------------] 0:00 waited, 5:00 left: asking"


@pytest.mark.parametrize("columns", [0, 1, 20, 80])
def test_live_line_never_wraps(columns: int) -> None:
    line = live_line("|", 900.0, 300.0, -1.0, "界" * 100, columns)
    assert len(line) <= max(columns - 1, 0)
    assert line.isascii()


def test_plain_line_names_the_hostname() -> None:
    assert plain_line("relay.example.test", at(12)) == (
        "relay.example.test: issuance under way; 0:12 waited, asks in 1.5 s, 4:48 left"
    )


def test_states_are_one_line_each() -> None:
    refused = Refused(reason="rate-limited", message="No\nmore.", retry_after_ms=1)
    assert state_words(at(1, refused)) == r"rate-limited: No\nmore"
    unreachable = Unreachable("It can't be\x1b reached.", may_have_arrived=False)
    assert state_words(at(1, unreachable)) == r"It can't be\x1b reached"


def test_plain_lines_are_told_at_first_on_news_and_now_and_then(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines = PlainLines("relay.example.test")
    gone = Unreachable("It is gone.", may_have_arrived=False)
    steps = [at(0), at(1), at(2, gone), at(3, gone), at(4), at(4 + PLAIN_LINES_EVERY_SECONDS)]
    for step in steps:
        lines.tell(step)
    told = capsys.readouterr()
    assert told.out == ""
    assert [line.split("; ")[1].split(" waited")[0] for line in told.err.splitlines()] == [
        "0:00",
        "0:02",
        "0:04",
        "0:34",
    ]


def test_plain_lines_tell_a_failure_once_while_it_is_tried_again(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines = PlainLines("relay.example.test")
    gone = Unreachable("It is gone.", may_have_arrived=False)
    lines.tell_failure(gone)
    lines.tell_failure(gone)
    lines.tell(at(1, gone))
    assert capsys.readouterr().err == "relay.example.test: It is gone; trying again\n"


@pytest.mark.parametrize(
    ("answers", "is_under_way"),
    [
        ([], False),
        ([Unreachable("It is gone.", may_have_arrived=False)], False),
        ([PENDING, Unreachable("It is gone.", may_have_arrived=True)], True),
        ([PENDING, Refused(reason="rate-limited", message="No.", retry_after_ms=1)], False),
    ],
    ids=["nothing", "failure", "pending", "refused"],
)
def test_issuance_is_under_way_after_the_gateway_has_said_so(
    answers: list[Pending | Refused | Unreachable], is_under_way: bool
) -> None:
    shower = ProgressShower()
    for answer in answers:
        shower.tell(at(1, answer))
    assert shower.is_under_way is is_under_way


@pytest.mark.parametrize(
    ("seconds", "words"), [(-1, "0:00"), (59.9, "0:59"), (600, "10:00"), (3_661, "1:01:01")]
)
def test_stopwatch_counts_whole_seconds(seconds: float, words: str) -> None:
    assert clock_words(seconds) == words
