"""What an HTTP answer says about itself: Retry-After, problem documents, foreign words."""

import base64
import unicodedata
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, strategies as st

from gateway.certificates.authority.replies import (
    HIDDEN,
    MAX_RETRY_AFTER_SECONDS,
    MAX_WORDS_CHARACTERS,
    Reply,
    one_line,
    read_problem,
    read_retry_after,
    without_secrets,
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


TOKEN = "evaGxfADs6pSRb2LAv9IZf17Dt3juxGJ-PCt92wr-oA"
THUMBPRINT = "9jg46WB3rR_AHD-EBXdN7cBkH1WOu0tA3M9fm21mqTI"


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        (f"Expected {TOKEN}, got nothing", f"Expected {HIDDEN}, got nothing"),
        (f'"{TOKEN}.{THUMBPRINT}"', f'"{HIDDEN}"'),
        (f"value={THUMBPRINT};", f"value={HIDDEN};"),
        ("invalid anti-replay nonce: 0a1b2c3d4e", f"invalid anti-replay nonce: {HIDDEN}"),
        ("nonce=abcdef+/=", f"nonce={HIDDEN}"),
        ('Nonce "abcdef" was used', f'Nonce "{HIDDEN}" was used'),
        ('{"nonce":"abcdef"}', f'{{"nonce":"{HIDDEN}"}}'),
        ("token QmFzZVNpeHR5Rm91cldpdGhvdXREaWdpdHM", f"token {HIDDEN}"),
    ],
)
def test_words_hide_what_looks_like_a_secret(text: str, clean: str) -> None:
    assert without_secrets(text) == clean


@pytest.mark.parametrize(
    "text",
    [
        "",
        "JWS has no anti-replay nonce",
        "the nonce was rejected",
        "CAA record for relay.cluster-a.example prevents issuance",
        f"{'a1-' * 20}b.{'x' * 63}.example.test is blocked",
        "3f9c0c0a7e3b4d1f9b1e7d6c5b4a39282716051f.example.test has no TXT record",
        "certificate with serial 04A1B2C3D4E5F60718293A4B5C6D7E8F9001 is replaced",
        "urn:ietf:params:acme:error:externalAccountRequired",
        "unsupportedIdentifier or badSignatureAlgorithm",
        "see https://ca.example.test/docs/rate-limits/#new-certificates-per-registered-domain",
        "too many certificates (5) already issued for this exact set of identifiers in the last "
        "168h0m0s, retry after 2026-12-01 07:08:09 UTC",
    ],
)
def test_words_keep_what_an_operator_needs(text: str) -> None:
    assert without_secrets(text) == text


# 256 bits are what CAs make tokens and nonces of; a run of them without any capital is impossible.
@untimed
@given(st.binary(min_size=32, max_size=48))
def test_words_hide_secrets_of_any_bytes_unless_they_are_plain_words(raw: bytes) -> None:
    secret = base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
    capitals = sum(one.isupper() for one in secret)
    small = sum(one.islower() for one in secret)
    digits = sum(one.isdigit() for one in secret)
    is_plain = not capitals or not small or (not digits and capitals < 5)
    assert (secret in without_secrets(f"got {secret}.")) is is_plain


def test_words_hide_given_secrets_before_they_are_cut() -> None:
    problem = read_problem({"detail": "x" * (MAX_WORDS_CHARACTERS - 3) + " plain-secret"})
    assert problem is not None
    told = problem.told(["plain-secret"])
    assert "pla" not in told
    assert len(told) == MAX_WORDS_CHARACTERS
