import pytest
from hypothesis import given, strategies as st

from gateway.contract import (
    compile_patterns,
    is_gateway_hostname_allowed,
    is_gateway_hostname_pattern,
)
from gateway.contract.patterns import hostname_patterns_faults, pattern_fault
from tests.unit.contract.strategies import patterns, short_hostnames


def reads(pattern: list[str], hostname: list[str]) -> bool:
    """What a pattern says, label by label from the left."""
    if not pattern:
        return not hostname
    first, *rest = pattern
    if first == "**":
        return any(reads(rest, hostname[taken:]) for taken in range(1, len(hostname) + 1))
    if not hostname:
        return False
    return first in ("*", hostname[0]) and reads(rest, hostname[1:])


@given(patterns, short_hostnames)
def test_pattern_matches_what_reading_it_by_labels_says(pattern: str, hostname: str) -> None:
    expected = reads(pattern.split("."), hostname.split("."))
    assert is_gateway_hostname_allowed(hostname, [pattern]) is expected


@given(st.lists(patterns, max_size=6, unique=True), short_hostnames)
def test_patterns_together_match_what_any_of_them_matches(
    several: list[str], hostname: str
) -> None:
    expected = any(reads(pattern.split("."), hostname.split(".")) for pattern in several)
    assert is_gateway_hostname_allowed(hostname, several) is expected
    assert is_gateway_hostname_allowed(hostname, tuple(several)) is expected


def test_no_patterns_allow_nothing() -> None:
    assert not compile_patterns([]).allows("a.example")
    assert not is_gateway_hostname_allowed("a.example", [])


def test_match_is_false_when_another_pattern_of_the_list_is_invalid() -> None:
    assert is_gateway_hostname_allowed("a.example", ["a.example"])
    assert not is_gateway_hostname_allowed("a.example", ["a.example", "*"])
    assert not is_gateway_hostname_allowed("a.example", ["a.example", "a.example"])


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("*.Example.COM.", 'must be spelled "*.example.com", not "*.Example.COM."'),
        ("*.com", 'must be a hostname pattern, and "*.com" does not end with two labels'),
        ("a*.example.com", '"a*": * must be a whole label, and ** only the first one'),
        ("a.**.example.com", '"**": * must be a whole label, and ** only the first one'),
        ("-a.*.example.com", 'the label "-a", which begins or ends with a hyphen'),
        ("*.10.1", "ends with a label of digits only"),
        (f"*.{'a.' * 126}aa", "has more than 253 characters"),
        ("*.xn--99999999999.example", "does not decode as IDNA 2008"),
    ],
)
def test_refused_pattern_is_told_what_is_wrong(text: str, sentence: str) -> None:
    assert sentence in (pattern_fault(text) or "")


def test_pattern_of_253_characters_is_accepted_and_of_254_refused() -> None:
    pattern = f"**.{'a.' * 123}bbbb"
    assert len(pattern) == 253
    assert is_gateway_hostname_pattern(pattern)
    assert not is_gateway_hostname_pattern(f"{pattern}b")


def test_list_of_64_patterns_is_accepted_and_of_65_refused() -> None:
    several = [f"h{number}.example" for number in range(65)]
    assert hostname_patterns_faults(several[:64]) == []
    assert list(map(str, hostname_patterns_faults(several))) == [
        " must hold at most 64 hostname patterns, not 65"
    ]
