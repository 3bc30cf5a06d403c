"""Which moments there are, and how a person reads them."""

from datetime import UTC, datetime

import pytest

from gateway.moments import (
    LATEST_MS,
    is_epoch_ms,
    moment_words,
    nearest_epoch_ms,
    rfc3339_moment,
)


def test_time_is_told_in_utc() -> None:
    assert moment_words(datetime(2026, 11, 30, 3, 4, 5, tzinfo=UTC)) == "2026-11-30 03:04:05 UTC"


def test_every_time_that_may_be_stored_can_be_told() -> None:
    assert (rfc3339_moment(0), rfc3339_moment(LATEST_MS)) == (
        "1970-01-01T00:00:00Z",
        "9999-12-31T23:59:59Z",
    )
    assert is_epoch_ms(0)
    assert is_epoch_ms(LATEST_MS)


@pytest.mark.parametrize("value", [-1, LATEST_MS + 1, 10**17, True, 1.0, "1", None])
def test_nothing_else_is_a_time(value: object) -> None:
    assert not is_epoch_ms(value)


def test_time_out_of_the_calendar_becomes_its_nearest() -> None:
    assert [nearest_epoch_ms(at_ms) for at_ms in (-1, 5, 10**17)] == [0, 5, LATEST_MS]
