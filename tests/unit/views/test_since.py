"""What a person writes as a time."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given, strategies as st

from gateway.views.since import since_of

NOW = datetime(2026, 9, 14, 11, 20, tzinfo=UTC)
NOW_MS = int(NOW.timestamp() * 1000)


@pytest.mark.parametrize(
    ("text", "seconds_ago"),
    [
        ("0s", 0),
        ("90s", 90),
        ("5m", 300),
        ("2h", 7_200),
        ("7d", 604_800),
        ("1w", 604_800),
        ("2026-09-14T11:20:00Z", 0),
        ("2026-09-14 11:20:00 UTC", 0),
        ("2026-09-14T13:20:00+02:00", 0),
        ("2026-09-14T11:19:00", 60),
        ("2026-09-14", 40_800),
    ],
)
def test_time_is_read_as_a_person_means_it(text: str, seconds_ago: int) -> None:
    assert since_of(text, NOW) == NOW_MS - seconds_ago * 1000


@pytest.mark.parametrize("text", ["", "2", "h", "2y", "-2h", "yesterday", "2026-13-01", "2h ago"])
def test_other_text_is_no_time(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        since_of(text, NOW)


@given(st.from_regex(r"[0-9]{1,9}[smhdw]", fullmatch=True))
def test_any_length_ago_is_a_time_before_now(text: str) -> None:
    assert since_of(text, NOW) <= NOW_MS
