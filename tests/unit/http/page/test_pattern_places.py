"""Which patterns match nothing in the configured zones."""

import pytest

from gateway.http.page.pattern_places import outside

ZONES = ("example.com", "relay.example.net")


@pytest.mark.parametrize(
    "pattern",
    [
        "a.example.com",
        "*.example.com",
        "**.example.com",
        "a.*.example.com",
        "*.relay.example.net",
        "**.example.net",
        "x.*.example.net",
    ],
)
def test_pattern_that_may_match_a_name_of_a_zone_is_within(pattern: str) -> None:
    assert outside([pattern], ZONES) == ()


@pytest.mark.parametrize(
    "pattern",
    [
        "example.com",
        "a.example.org",
        "*.example.org",
        "*.example.net",
        "a.notexample.com",
        "**.other.example.net",
        "relay.example.net",
    ],
)
def test_pattern_that_matches_no_name_of_a_zone_is_told(pattern: str) -> None:
    assert outside(["a.example.com", pattern], ZONES) == (pattern,)


def test_without_a_zone_all_are_outside() -> None:
    assert outside(["a.example.com"], ()) == ("a.example.com",)
