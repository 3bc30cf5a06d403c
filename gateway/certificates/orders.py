"""What a CA says about an order, as plain values: no `acme`, no JOSE, no I/O.

`certificates.authority` makes them, `certificates.machine` decides on them (RFC 8555 section 7.1).
Texts from the CA are one line, bounded and free of control characters.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


@dataclass(frozen=True, slots=True)
class OrderView:
    """An order as last read. `status` is RFC 8555's: pending, ready, processing, valid, invalid.

    `hostnames` are the names it is for, as the CA lists them, in lower case.
    """

    url: str
    status: str
    authorization_urls: tuple[str, ...]
    finalize_url: str
    certificate_url: str | None = None
    problem: str | None = None
    retry_after_seconds: float | None = None
    hostnames: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AuthorizationView:
    """An authorization as last read, with its dns-01 challenge (None where the CA offers none).

    `txt_value` is what the challenge's TXT record must hold (RFC 8555 section 8.4), and
    `key_thumbprint` the account key that it was computed with: under another key it is void.
    `is_refused`: it is invalid since the CA will not issue for the name (CAA, policy), not since
    it could not validate it.
    """

    url: str
    hostname: str
    status: str
    challenge_url: str | None = None
    txt_value: str | None = None
    problem: str | None = None
    retry_after_seconds: float | None = None
    key_thumbprint: str | None = None
    is_refused: bool = False


@dataclass(frozen=True, slots=True)
class RenewalInfo:
    """When a CA wants a certificate renewed (RFC 9773), in epoch milliseconds; end after start.

    `retry_after_seconds` is how long the CA wants to be left alone before it is asked again.
    """

    window_start_ms: int
    window_end_ms: int
    explanation_url: str | None = None
    retry_after_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class AccountView:
    """Our account at a CA: `url` is None before it is registered, `status` when nobody asked.

    `status` is RFC 8555's: valid, deactivated, revoked. The thumbprint is the public half's (RFC
    7638) and names the key without showing it.
    """

    url: str | None
    key_type: str
    key_thumbprint: str
    status: str | None = None
    contact: tuple[str, ...] = ()
    orders_url: str | None = None


class FaultKind(StrEnum):
    """Why a call to the CA failed, as far as the next step depends on it.

    Three are nothing that a CA said. STALE_CHALLENGE: the account's key was replaced since the
    challenge's TXT value was computed, so the authorization must be read again and the new value
    published. BUSY: too many calls were under way here, and nothing was asked. NOT_CONFIGURED: this
    process does not know the authority; another one may.
    """

    UNREACHABLE = "unreachable"
    SERVER_ERROR = "server-error"
    RATE_LIMITED = "rate-limited"
    REFUSED = "refused"
    ACCOUNT_MISSING = "account-missing"
    ACCOUNT_REFUSED = "account-refused"
    GONE = "gone"
    NOT_READY = "not-ready"
    BAD_CSR = "bad-csr"
    MALFORMED = "malformed"
    STALE_CHALLENGE = "stale-challenge"
    BUSY = "busy"
    NOT_CONFIGURED = "not-configured"


PASSING: Final = frozenset({FaultKind.UNREACHABLE, FaultKind.SERVER_ERROR})
"""The authority is away or broken, and may be back at any moment."""

LATER: Final = PASSING | {FaultKind.RATE_LIMITED, FaultKind.BUSY}
"""What says nothing against what was asked: it may be asked at another time."""


class AuthorityFault(Exception):
    """A call to the CA failed; `kind` says what follows from it, `detail` is for a person.

    `problem_type` is the CA's own name for it (RFC 8555 section 6.7), without the URN prefix; `""`
    when the CA named nothing. `http_status` is that of the answer, None where there was none.
    `is_unsent`: what was to be asked never reached the CA, whatever went there before.
    """

    def __init__(
        self,
        kind: FaultKind,
        detail: str,
        retry_after_seconds: float | None = None,
        *,
        problem_type: str = "",
        http_status: int | None = None,
        is_unsent: bool = False,
    ) -> None:
        super().__init__(detail)
        self.kind = kind
        self.detail = detail
        self.retry_after_seconds = retry_after_seconds
        self.problem_type = problem_type
        self.http_status = http_status
        self.is_unsent = is_unsent or kind is FaultKind.BUSY

    @property
    def may_be_done(self) -> bool:
        """Whether the CA may have done what was asked of it: its answer was lost."""
        return self.http_status is None and not self.is_unsent
