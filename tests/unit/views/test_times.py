"""Times and lengths of time in words."""

import pytest
from hypothesis import given, strategies as st

from gateway.views.times import duration, past_words, time_words

AT_MS = 1_700_000_000_001


@pytest.mark.parametrize(
    ("length_ms", "words"),
    [
        (0, "0.0 s"),
        (-5, "0.0 s"),
        (1_999, "2.0 s"),
        (2_000, "2 s"),
        (119_999, "119 s"),
        (120_000, "2 min"),
        (7_200_000, "2 h"),
        (2 * 86_400_000, "2 days"),
        (90 * 86_400_000, "90 days"),
    ],
)
def test_duration_is_told_in_its_largest_unit(length_ms: int, words: str) -> None:
    assert duration(length_ms) == words


def test_time_is_told_in_its_second_and_as_a_line_of_the_trail_has_it() -> None:
    assert time_words(AT_MS) == "2023-11-14 22:13:20 UTC"
    assert time_words(AT_MS + 998) == "2023-11-14 22:13:20 UTC"
    assert past_words(AT_MS) == "2023-11-14T22:13:20Z"


@given(st.integers())
def test_any_number_that_stands_for_a_past_time_has_words(at_ms: int) -> None:
    assert past_words(at_ms)
    assert time_words(at_ms)
