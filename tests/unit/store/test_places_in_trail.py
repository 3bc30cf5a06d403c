"""Places in the trail that come from a URL: taken as Redis takes them, or refused in a sentence."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from gateway.store.trail_reading import place_in

NUMBERS = st.integers(0, 2**63 - 1)


@given(NUMBERS, NUMBERS.filter(bool))
def test_place_that_redis_gives_is_taken(at_ms: int, number: int) -> None:
    assert place_in(f"{at_ms}-{number}") == f"{at_ms}-{number}"


@pytest.mark.parametrize(
    "text",
    [
        *("", "-", "+", "0-0", "$", "(1-1", "1", "1-", "-1", "1-1-1", "1-1\n", " 1-1", "01-1"),
        *(
            "1-01",
            "\u0661-\u0661",
            "9223372036854775808-0",
            "1-99999999999999999999",
            "<b>",
            "1" * 10_000,
        ),
    ],
)
def test_anything_else_is_refused_in_a_sentence(text: str) -> None:
    with pytest.raises(
        ValueError, match="A place in the audit trail is as 1795000000000-0"
    ) as told:
        place_in(text)
    assert str(told.value).isascii()
    assert len(str(told.value)) < 200


@given(st.text())
def test_no_text_is_taken_that_redis_would_not(text: str) -> None:
    try:
        place_in(text)
    except ValueError:
        return
    numbers = [int(each) for each in text.split("-")]
    assert len(numbers) == 2
    assert text == "-".join(map(str, numbers))
