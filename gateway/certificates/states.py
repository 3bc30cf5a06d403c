"""An issuance, a certificate and a debt as they are stored: plain frozen values and their JSON.

The machine (`certificates.machine`) moves issuances from state to state, the worker stores them in
the hostname's document. Nothing here decides anything.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


class State(StrEnum):
    """How far an issuance has come; in the order in which a smooth one passes through them."""

    REQUESTED = "requested"
    ORDERED = "ordered"
    PUBLISHED = "published"
    PROPAGATED = "propagated"
    VALIDATING = "validating"
    READY = "ready"
    FINALIZING = "finalizing"
    ISSUED = "issued"
    WAITING = "waiting"
    FAILED = "failed"


class Reason(StrEnum):
    """Why an issuance waits or failed: the `reason` of a refused certificate on the wire."""

    ZONE_UNAVAILABLE = "zone-unavailable"
    AUTHORITY_REFUSED = "authority-refused"
    RATE_LIMITED = "rate-limited"
    ISSUANCE_FAILED = "issuance-failed"
    AUTHORITY_UNAVAILABLE = "authority-unavailable"


@dataclass(frozen=True, slots=True)
class Issuance:
    """One attempt after another to get one certificate. Times are epoch milliseconds.

    `begun_at_ms` is when it was requested or, after a wait, went on: its pace counts from it.
    `resume` is the state that a waiting issuance goes on in. `failures` counts orders that came to
    nothing, `faults` the passing faults in a row, `looks` the polls in the present state.
    `sealed_key` and `csr` (DER, base64) exist from before the order on, the challenge's zone and
    name from before its TXT is published.
    """

    issuance_id: str
    state: State
    begun_at_ms: int
    changed_at_ms: int
    due_at_ms: int
    renewal: bool = False
    failures: int = 0
    faults: int = 0
    looks: int = 0
    sealed_key: str | None = None
    csr: str | None = None
    order_url: str | None = None
    finalize_url: str | None = None
    authorization_url: str | None = None
    certificate_url: str | None = None
    challenge_url: str | None = None
    challenge_zone: str | None = None
    challenge_name: str | None = None
    challenge_value: str | None = None
    resume: State | None = None
    reason: Reason | None = None
    message: str | None = None

    def to_json(self) -> dict[str, Any]:
        """As JSON, without the fields that say nothing."""
        return {name: value for name, value in asdict(self).items() if value not in (None, False)}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Issuance:
        """The inverse of `to_json`; unknown fields (of a newer release) are left out."""
        known = {field.name for field in fields(cls)}
        values = {name: value for name, value in stored.items() if name in known}
        values["state"] = State(values["state"])
        if "resume" in values:
            values["resume"] = State(values["resume"])
        if "reason" in values:
            values["reason"] = Reason(values["reason"])
        return cls(**values)


@dataclass(frozen=True, slots=True)
class StoredCertificate:
    """A certificate with its sealed private key. Times are epoch milliseconds.

    `renew_at_ms` is when the worker starts its renewal, `renew_after_ms`, which is later, is what
    clients are told.
    """

    issuance_id: str
    chain_pem: str
    sealed_key: str
    valid_from_ms: int
    valid_until_ms: int
    renew_at_ms: int
    renew_after_ms: int
    serial: str
    issuer: str
    directory_url: str

    def to_json(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> StoredCertificate:
        """The inverse of `to_json`; unknown fields are left out."""
        known = {field.name for field in fields(cls)}
        return cls(**{name: value for name, value in stored.items() if name in known})

    def may_be_served_at(self, now_ms: int) -> bool:
        """Whether it has not expired; its start was checked when it was stored."""
        return now_ms < self.valid_until_ms


class DebtKind(StrEnum):
    """What a debt is to be cleaned up as."""

    CHALLENGE_RECORD = "challenge-record"
    AUTHORIZATION = "authorization"
    ORDER = "order"


@dataclass(frozen=True, slots=True)
class Debt:
    """Something left outside that must be cleaned up, whatever becomes of its issuance.

    A challenge record is named by zone, name and TXT value; an authorization is deactivated by its
    URL; of an order, each authorization is.
    """

    kind: DebtKind
    zone: str | None = None
    name: str | None = None
    value: str | None = None
    url: str | None = None
    tries: int = 0
    due_at_ms: int = 0

    def to_json(self) -> dict[str, Any]:
        """As JSON, without the fields that say nothing."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Debt:
        """The inverse of `to_json`."""
        return cls(**{**stored, "kind": DebtKind(stored["kind"])})

    def is_same_as(self, other: Debt) -> bool:
        """Whether both name the same thing, however often each was tried."""
        mine = (self.kind, self.zone, self.name, self.value, self.url)
        return mine == (other.kind, other.zone, other.name, other.value, other.url)
