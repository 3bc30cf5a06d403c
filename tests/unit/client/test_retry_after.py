"""Both forms of `Retry-After`, and what is none."""

from datetime import UTC, datetime

import pytest
from hypothesis import given, strategies

from gateway.client.retry_after import wait_ms

NOW = datetime(2026, 11, 2, 10, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("retry_after", "date", "waits_ms"),
    [
        ("0", "", 0),
        ("120", "", 120_000),
        ("99999999", "", 99_999_999_000),
        ("Mon, 02 Nov 2026 10:02:00 GMT", "", 120_000),
        ("Monday, 02-Nov-26 10:02:00 GMT", "", 120_000),
        ("Mon Nov  2 10:02:00 2026", "", 120_000),
        ("Mon, 02 Nov 2026 11:02:00 +0100", "", 120_000),
        ("Mon, 02 Nov 2026 09:59:00 GMT", "", 0),
        ("Mon, 02 Nov 2026 10:02:00 GMT", "Mon, 02 Nov 2026 10:01:00 GMT", 60_000),
        ("Mon, 02 Nov 2026 10:02:00 GMT", "garbage", 120_000),
    ],
)
def test_wait_is_read(retry_after: str, date: str, waits_ms: int) -> None:
    assert wait_ms(retry_after, date, NOW) == waits_ms


@pytest.mark.parametrize(
    "retry_after",
    [
        *("", "-1", "soon", "1.5", "100000000", "9" * 5_000, "\u00b2"),
        *("Mon, 02 Nov 9999 10:00:00 GMT", "Mon, 02 Nov 99999999999 10:00:00 GMT", "Mon, 02 Nov"),
    ],
)
def test_wait_that_cannot_be_meant_is_none(retry_after: str) -> None:
    assert wait_ms(retry_after, "", NOW) is None


@given(strategies.text(), strategies.text())
def test_whatever_is_said_is_a_wait_or_none(retry_after: str, date: str) -> None:
    waits_ms = wait_ms(retry_after, date, NOW)
    assert waits_ms is None or 0 <= waits_ms <= 99_999_999_000


DIGITS = strategies.integers(-(10**12), 10**12)


@given(DIGITS, DIGITS, DIGITS, DIGITS)
def test_odd_date_is_a_wait_or_none(day: int, year: int, hour: int, zone: int) -> None:
    waits_ms = wait_ms(f"Mon, {day} Nov {year} {hour}:00:00 {zone:+05}", "", NOW)
    assert waits_ms is None or 0 <= waits_ms <= 99_999_999_000
