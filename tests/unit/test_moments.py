"""Moments as a person reads them."""

from datetime import UTC, datetime

from gateway.moments import moment_words


def test_time_is_told_in_utc() -> None:
    assert moment_words(datetime(2026, 11, 30, 3, 4, 5, tzinfo=UTC)) == "2026-11-30 03:04:05 UTC"
