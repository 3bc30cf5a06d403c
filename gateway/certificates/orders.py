"""What a CA says about an order, as plain values: no `acme`, no JOSE, no I/O.

`certificates.authority` makes them, `certificates.machine` decides on them (RFC 8555 section 7.1).
Texts from the CA are one line, bounded and free of control characters.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class OrderView:
    """An order as last read. `status` is RFC 8555's: pending, ready, processing, valid, invalid."""

    url: str
    status: str
    authorization_urls: tuple[str, ...]
    finalize_url: str
    certificate_url: str | None = None
    problem: str | None = None
    retry_after_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class AuthorizationView:
    """An authorization as last read, with its dns-01 challenge (None where the CA offers none).

    `txt_value` is what the challenge's TXT record must hold (RFC 8555 section 8.4).
    """

    url: str
    hostname: str
    status: str
    challenge_url: str | None = None
    challenge_status: str | None = None
    txt_value: str | None = None
    problem: str | None = None
    retry_after_seconds: float | None = None


class FaultKind(StrEnum):
    """Why a call to the CA failed, as far as the next step depends on it."""

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


class AuthorityFault(Exception):
    """A call to the CA failed; `kind` says what follows from it, `detail` is for a person."""

    def __init__(
        self, kind: FaultKind, detail: str, retry_after_seconds: float | None = None
    ) -> None:
        super().__init__(detail)
        self.kind = kind
        self.detail = detail
        self.retry_after_seconds = retry_after_seconds
