"""What an HTTP answer says about itself: Retry-After, problem documents, foreign words."""

import unicodedata
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, strategies as st

from gateway.certificates.authority.replies import (
    MAX_RETRY_AFTER_SECONDS,
    MAX_WORDS_CHARACTERS,
    Reply,
    one_line,
    read_problem,
    read_retry_after,
)
from tests.unit.certificates.properties import untimed

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)
PROBLEM_KEYS = st.sampled_from(["type", "detail", "title", "subproblems"])


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0),
        ("120", 120),
        (" 120 ", 120),
        ("Sun, 29 Nov 2026 12:01:30 GMT", 90),
        ("Sunday, 29-Nov-26 12:01:30 GMT", 90),
        ("Sun Nov 29 12:01:30 2026", 90),
        ("Sun, 29 Nov 2026 12:01:30 -0000", 90),
        ("Sun, 29 Nov 2026 14:01:30 +0200", 90),
        ("Sun, 29 Nov 2026 11:59:59 GMT", 0),
        ("Fri, 31 Dec 1999 23:59:59 GMT", 0),
        ("Sat, 01 Jan 2028 00:00:00 GMT", MAX_RETRY_AFTER_SECONDS),
        ("99999999999", MAX_RETRY_AFTER_SECONDS),
        ("9" * 10_000, MAX_RETRY_AFTER_SECONDS),
        (None, None),
        ("", None),
        ("soon", None),
        ("-5", None),
        ("1.5", None),
        ("٣", None),
        ("Sun, 29 Nov 2026", None),
        ("Sun, 99 Nov 2026 12:00:00 GMT", None),
        ("Sun, 29 Nov 2026 12:00:00 +9999999999", None),
    ],
)
def test_retry_after_is_read(text: str | None, seconds: float | None) -> None:
    assert read_retry_after(text, NOW) == seconds


def test_retry_after_date_does_not_depend_on_the_zone_of_the_clock() -> None:
    far_away = NOW.astimezone(timezone(timedelta(hours=-11)))
    assert read_retry_after("Sun, 29 Nov 2026 12:01:30 GMT", far_away) == 90


@untimed
@given(st.text())
def test_retry_after_never_raises_and_is_bounded(text: str) -> None:
    seconds = read_retry_after(text, NOW)
    assert seconds is None or 0 <= seconds <= MAX_RETRY_AFTER_SECONDS


@untimed
@given(st.text(max_size=3000))
def test_line_is_bounded_and_visible(text: str) -> None:
    line = one_line(text)
    assert len(line) <= MAX_WORDS_CHARACTERS
    assert all(one == " " or unicodedata.category(one)[0] not in "CZ" for one in line)
    assert line == line.strip()


def test_line_keeps_ordinary_words() -> None:
    assert one_line(" Zürich\t\x1b[31mred\r\n\u202etfel ") == "Zürich [31mred tfel"


def test_line_is_cut_where_it_is_too_long() -> None:
    assert one_line("x" * 501) == "x" * 499 + "…"
    assert one_line("x" * 500) == "x" * 500
    assert one_line("x" * 10_000_000) == "x" * 499 + "…"


@untimed
@given(JSON | st.dictionaries(PROBLEM_KEYS, JSON))
def test_problem_never_raises(value: object) -> None:
    problem = read_problem(value)
    assert (problem is not None) == isinstance(value, dict)
    assert problem is None or len(problem.words) <= MAX_WORDS_CHARACTERS


def test_problem_keeps_a_type_that_is_not_of_acme() -> None:
    problem = read_problem({"type": "https://ca.example.test/quota", "title": "Quota"})
    assert problem is not None
    assert problem.words == "https://ca.example.test/quota: Quota"


def test_problem_has_no_more_than_ten_parts() -> None:
    problem = read_problem({"subproblems": [{"detail": str(number)} for number in range(100)]})
    assert problem is not None
    assert len(problem.subproblems) == 10


@pytest.mark.parametrize(
    ("status", "is_success"), [(199, False), (200, True), (299, True), (300, False)]
)
def test_success_is_2xx(status: int, is_success: bool) -> None:
    assert Reply(status, {}, b"").is_success is is_success
