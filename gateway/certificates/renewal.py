"""When a certificate is renewed, and when its client is told to ask again: pure.

Where the CA offers renewal information (ARI, RFC 9773), the moment is a random one inside the
window that it suggests, drawn anew only when the window changes. Else, and until it has answered,
it is a share of the lifetime, so one rule is right for certificates of an hour, of 6 days and of a
year, spread over a tenth of that time so that certificates issued together are not renewed
together.

The renewal starts before the time clients are told, so that it is normally done when they ask.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from gateway.certificates.budget import Renewal

if TYPE_CHECKING:
    from gateway.certificates.moves import Moment
    from gateway.certificates.orders import RenewalInfo
    from gateway.certificates.states import Issuance, StoredCertificate

SPREAD: Final = 0.1
"""Share of the time until renewal over which renewals are spread, towards earlier."""

GRACE: Final = 0.15
"""Share of the time from renewal to expiry that a renewal gets before clients ask."""

LATEST: Final = 0.9
"""Share of the lifetime after which no window delays a renewal any further."""

EARLIEST: Final = 0.1
"""Share of the lifetime before which no window starts a renewal, unless a sane one came before.

A CA whose windows all lie in the past, another one at each question, would else have one
certificate issued after the other. One that moves there from the future, as before a revocation,
is followed at once.
"""

ASK_EVERY_MS: Final = 6 * 3_600_000
ASK_SELDOM_MS: Final = 24 * 3_600_000
ASK_OFTEN_MS: Final = 60_000
ASKS_A_LIFETIME: Final = 40
"""A short-lived certificate is asked about, and its policy looked at, more often than
`ASK_EVERY_MS`."""


@dataclass(frozen=True, slots=True)
class RenewalTimes:
    """When the worker starts, when clients ask again, and when the share of the lifetime is over.

    All in epoch milliseconds.
    """

    renew_at_ms: int
    renew_after_ms: int
    share_at_ms: int


def renewal_times(
    valid_from_ms: int, valid_until_ms: int, share: float, jitter: float
) -> RenewalTimes:
    """The times for one certificate of whose renewal its CA says nothing.

    `share` (0 to 1, exclusive) is the part of the lifetime after which renewal starts at the
    latest, `jitter` (0 to 1) a random number.
    """
    latest_ms = (valid_until_ms - valid_from_ms) * share
    start_ms = valid_from_ms + int(latest_ms * (1 - SPREAD * jitter))
    share_at_ms = valid_from_ms + int(latest_ms)
    return RenewalTimes(start_ms, _told_ms(share_at_ms, valid_until_ms), share_at_ms)


def first_ask_ms(now_ms: int, *, is_offered: bool) -> int:
    """When to ask a CA for the first time about a new certificate."""
    return now_ms if is_offered else now_ms + ASK_SELDOM_MS


def asked(
    certificate: StoredCertificate,
    info: RenewalInfo | None,
    moment: Moment,
    *,
    is_offered: bool,
    retry_after_seconds: float | None = None,
) -> StoredCertificate:
    """The certificate after its CA was asked; `info` is None when it gave no window.

    An answer that did not come changes no time but that of the next question, for which a CA that
    refused to answer may have named a time (`retry_after_seconds`).
    """
    lifetime_ms = certificate.valid_until_ms - certificate.valid_from_ms
    told_seconds = retry_after_seconds if info is None else info.retry_after_seconds
    ask_at_ms = moment.now_ms + _pause_ms(told_seconds, lifetime_ms, is_offered=is_offered)
    certificate = replace(certificate, ask_at_ms=ask_at_ms)
    if info is None:
        return certificate
    window_ms = (info.window_start_ms, info.window_end_ms)
    if window_ms == certificate.window_ms:
        return certificate
    length_ms = info.window_end_ms - info.window_start_ms
    wanted_ms = info.window_start_ms + int(length_ms * moment.jitter)
    was_sane = certificate.window_ms is not None and certificate.window_ms[1] > moment.now_ms
    if not was_sane:
        wanted_ms = max(wanted_ms, certificate.valid_from_ms + int(lifetime_ms * EARLIEST))
    renew_at_ms = min(wanted_ms, certificate.valid_from_ms + int(lifetime_ms * LATEST))
    return replace(
        certificate,
        window_ms=window_ms,
        renew_at_ms=renew_at_ms,
        renew_after_ms=_told_ms(max(renew_at_ms, moment.now_ms), certificate.valid_until_ms),
    )


def policy_pause_ms(certificate: StoredCertificate | None) -> int:
    """How long until it is looked again whether a holder that may not renew may do so."""
    if certificate is None:
        return ASK_EVERY_MS
    return _own_pause_ms(certificate.valid_until_ms - certificate.valid_from_ms)


def _told_ms(renew_at_ms: int, valid_until_ms: int) -> int:
    return renew_at_ms + int((valid_until_ms - renew_at_ms) * GRACE)


def _pause_ms(told_seconds: float | None, lifetime_ms: int, *, is_offered: bool) -> int:
    if not is_offered:
        return ASK_SELDOM_MS
    if told_seconds is None:
        return _own_pause_ms(lifetime_ms)
    return min(max(int(told_seconds * 1000), ASK_OFTEN_MS), ASK_SELDOM_MS)


def _own_pause_ms(lifetime_ms: int) -> int:
    return max(min(ASK_EVERY_MS, lifetime_ms // ASKS_A_LIFETIME), ASK_OFTEN_MS)


def kind_of(issuance: Issuance, now_ms: int) -> Renewal:
    """What an order of the issuance is for, to whoever counts it."""
    if not issuance.renewal:
        return Renewal.NEW
    if issuance.overdue_at_ms is None or issuance.overdue_at_ms <= now_ms:
        return Renewal.DUE
    is_by_hand = issuance.early_until_ms is not None and issuance.early_until_ms > now_ms
    return Renewal.BY_HAND if is_by_hand else Renewal.EARLY
