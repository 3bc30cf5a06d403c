"""When a certificate is renewed whose CA suggests a window (RFC 9773)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from gateway.certificates.moves import Moment
from gateway.certificates.orders import RenewalInfo
from gateway.certificates.renewal import asked, first_ask_ms, policy_pause_ms
from gateway.certificates.states import StoredCertificate

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS
LIFE_MS = 90 * DAY_MS

HELD = StoredCertificate(
    issuance_id="i",
    chain_pem="chain",
    sealed_key="sealed",
    valid_from_ms=0,
    valid_until_ms=LIFE_MS,
    renew_at_ms=58 * DAY_MS,
    renew_after_ms=64 * DAY_MS,
    share_at_ms=60 * DAY_MS,
    serial="01",
    issuer="ca",
    directory_url="directory",
    ask_at_ms=0,
)


def window(start_ms: int, end_ms: int, retry_after_seconds: float | None = None) -> RenewalInfo:
    return RenewalInfo(start_ms, end_ms, retry_after_seconds=retry_after_seconds)


@given(st.integers(10, 80), st.integers(1, 24 * 5), st.floats(0, 1))
def test_renewal_lies_in_the_window_and_clients_ask_later(
    start_days: int, hours: int, jitter: float
) -> None:
    start_ms, end_ms = start_days * DAY_MS, start_days * DAY_MS + hours * HOUR_MS
    info = window(start_ms, end_ms)
    after = asked(HELD, info, Moment(DAY_MS, jitter), is_offered=True)
    assert start_ms <= after.renew_at_ms <= min(end_ms, int(0.9 * LIFE_MS)) or (
        start_ms > int(0.9 * LIFE_MS)
    )
    assert after.renew_at_ms < after.renew_after_ms < LIFE_MS
    assert after.window_ms == (start_ms, end_ms)


def test_moment_is_drawn_once_for_a_window() -> None:
    info = window(30 * DAY_MS, 40 * DAY_MS)
    first = asked(HELD, info, Moment(DAY_MS, 0.2), is_offered=True)
    again = asked(first, info, Moment(2 * DAY_MS, 0.9), is_offered=True)
    assert again == replace(first, ask_at_ms=again.ask_at_ms)
    moved = asked(first, window(30 * DAY_MS, 41 * DAY_MS), Moment(DAY_MS, 0.9), is_offered=True)
    assert moved.renew_at_ms > first.renew_at_ms


def test_window_after_most_of_the_lifetime_is_not_waited_for() -> None:
    late = window(LIFE_MS - 1, LIFE_MS + DAY_MS)
    after = asked(HELD, late, Moment(DAY_MS, 1.0), is_offered=True)
    assert after.renew_at_ms == int(0.9 * LIFE_MS)


def test_window_that_moves_into_the_past_is_followed_at_once() -> None:
    calm = asked(HELD, window(50 * DAY_MS, 60 * DAY_MS), Moment(DAY_MS, 0.5), is_offered=True)
    revoked = asked(calm, window(-2 * DAY_MS, -DAY_MS), Moment(2 * DAY_MS, 0.5), is_offered=True)
    assert revoked.renew_at_ms < 2 * DAY_MS
    assert revoked.renew_after_ms > 2 * DAY_MS


def test_first_window_in_the_past_does_not_renew_a_fresh_certificate() -> None:
    after = asked(HELD, window(-2 * DAY_MS, -DAY_MS), Moment(0, 0.5), is_offered=True)
    assert after.renew_at_ms == 9 * DAY_MS


def test_windows_that_are_in_the_past_each_time_do_not_renew_a_fresh_certificate() -> None:
    held = HELD
    for minute in range(1, 20):
        moment = Moment(minute * MINUTE_MS, 0.5)
        past = window(moment.now_ms - 2 * HOUR_MS, moment.now_ms - HOUR_MS)
        held = asked(held, past, moment, is_offered=True)
        assert held.renew_at_ms == 9 * DAY_MS


def test_answer_that_did_not_come_changes_nothing_but_the_next_question() -> None:
    after = asked(HELD, None, Moment(DAY_MS, 0.5), is_offered=True)
    assert after == replace(HELD, ask_at_ms=DAY_MS + 6 * HOUR_MS)


PAUSES = [
    (LIFE_MS, None, True, 6 * HOUR_MS),
    (LIFE_MS, 21_600.0, True, 6 * HOUR_MS),
    (LIFE_MS, 1.0, True, MINUTE_MS),
    (LIFE_MS, 0.0, True, MINUTE_MS),
    (LIFE_MS, 30 * 86_400.0, True, DAY_MS),
    (HOUR_MS, None, True, 90_000),
    (6 * DAY_MS, None, True, int(3.6 * HOUR_MS)),
    (LIFE_MS, None, False, DAY_MS),
    (HOUR_MS, None, False, DAY_MS),
]


@pytest.mark.parametrize(("life_ms", "retry_after", "is_offered", "pause_ms"), PAUSES)
def test_next_question_comes_when_the_authority_says_within_bounds(
    life_ms: int, retry_after: float | None, is_offered: bool, pause_ms: int
) -> None:
    held = replace(HELD, valid_until_ms=life_ms)
    info = None if retry_after is None else window(1, 2, retry_after)
    after = asked(held, info, Moment(1_000, 0.5), is_offered=is_offered)
    assert after.ask_at_ms == 1_000 + pause_ms


@pytest.mark.parametrize(("told", "pause_ms"), [(7200.0, 2 * HOUR_MS), (1.0, MINUTE_MS)])
def test_refusal_to_answer_may_name_the_time_too(told: float, pause_ms: int) -> None:
    after = asked(HELD, None, Moment(7, 0.5), is_offered=True, retry_after_seconds=told)
    assert after == replace(HELD, ask_at_ms=7 + pause_ms)


LOOKS = [
    (None, 6 * HOUR_MS),
    (HELD, 6 * HOUR_MS),
    (replace(HELD, valid_until_ms=HOUR_MS), 90_000),
    (replace(HELD, valid_until_ms=MINUTE_MS), MINUTE_MS),
]


@pytest.mark.parametrize(("certificate", "pause_ms"), LOOKS)
def test_policy_is_looked_at_again_well_within_the_lifetime(
    certificate: StoredCertificate | None, pause_ms: int
) -> None:
    assert policy_pause_ms(certificate) == pause_ms


def test_first_question_comes_at_once_where_it_can_be_answered() -> None:
    assert first_ask_ms(7, is_offered=True) == 7
    assert first_ask_ms(7, is_offered=False) == 7 + DAY_MS


@pytest.mark.parametrize("certificate", [HELD, replace(HELD, window_ms=(1, 2))])
def test_certificate_survives_its_stored_form(certificate: StoredCertificate) -> None:
    assert StoredCertificate.from_json(certificate.to_json()) == certificate
