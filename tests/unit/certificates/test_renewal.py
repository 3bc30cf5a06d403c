"""Renewal times and the estimate of how long an issuance takes."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from gateway.certificates.renewal import renewal_times

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS

LIFETIMES_MS = st.integers(min_value=HOUR_MS, max_value=400 * DAY_MS)


@given(LIFETIMES_MS, st.floats(0.1, 0.9), st.floats(0, 1))
def test_renewal_starts_before_clients_ask_and_both_before_expiry(
    lifetime_ms: int, share: float, jitter: float
) -> None:
    times = renewal_times(1_000, 1_000 + lifetime_ms, share, jitter)
    assert 1_000 < times.renew_at_ms <= times.share_at_ms < times.renew_after_ms
    assert times.renew_after_ms < 1_000 + lifetime_ms


@pytest.mark.parametrize(
    ("lifetime_days", "earliest_days", "latest_days", "told_days"),
    [(90, 53, 60, 64), (6, 3.5, 4, 4.3)],
)
def test_renewal_fits_long_and_short_lifetimes(
    lifetime_days: int, earliest_days: float, latest_days: float, told_days: float
) -> None:
    for jitter in (0.0, 0.5, 1.0):
        times = renewal_times(0, lifetime_days * DAY_MS, 0.66, jitter)
        assert earliest_days * DAY_MS <= times.renew_at_ms <= latest_days * DAY_MS
        assert latest_days * DAY_MS <= times.renew_after_ms <= told_days * DAY_MS
