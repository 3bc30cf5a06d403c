"""What can happen to an issuance, and what the machine can ask for: plain values.

Each event is the answer to one command (or `Due`: its time has come), so a step of the worker is
"carry out the command, tell the machine what came of it".
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from gateway.certificates.orders import AuthorizationView, FaultKind, OrderView
    from gateway.certificates.states import Reason, StoredCertificate


class Command(StrEnum):
    """The one thing to do next; all it needs to know stands in the issuance."""

    CHOOSE_AUTHORITY = "choose-authority"
    MAKE_KEY = "make-key"
    PLACE_ORDER = "place-order"
    READ_ORDER = "read-order"
    READ_AUTHORIZATION = "read-authorization"
    LOCATE_CHALLENGE = "locate-challenge"
    PUBLISH_CHALLENGE = "publish-challenge"
    CHECK_PROPAGATION = "check-propagation"
    ANSWER_CHALLENGE = "answer-challenge"
    FINALIZE = "finalize"
    FETCH_CERTIFICATE = "fetch-certificate"


REPEATABLE: Final = frozenset(
    {
        Command.MAKE_KEY,
        Command.READ_ORDER,
        Command.READ_AUTHORIZATION,
        Command.LOCATE_CHALLENGE,
        Command.CHECK_PROPAGATION,
        Command.FETCH_CERTIFICATE,
    }
)
"""Commands that change nothing outside: whoever does not know that they were carried out may carry
them out again. To have the CA validate is none: of a hostname that was released meanwhile, with its
record taken away, that would count as a failed validation."""


@dataclass(frozen=True, slots=True)
class Due:
    """The time for the next step has come, maybe in another process than the last step's."""


@dataclass(frozen=True, slots=True)
class AuthorityChosen:
    """An authority's budget granted the order; it is told what the order replaces if it may be."""

    directory_url: str
    takes_replaces: bool


@dataclass(frozen=True, slots=True)
class AuthoritiesHeld:
    """No authority may be asked for an order before `until_ms`; says why."""

    until_ms: int
    reason: Reason
    detail: str


@dataclass(frozen=True, slots=True)
class KeyMade:
    """A key pair was made: the private key sealed, the CSR as base64 DER."""

    sealed_key: str
    csr: str


@dataclass(frozen=True, slots=True)
class OrderSeen:
    """The CA answered with an order: placed or read."""

    order: OrderView


@dataclass(frozen=True, slots=True)
class Finalized:
    """The CA answered to the CSR with the order as it now is."""

    order: OrderView


@dataclass(frozen=True, slots=True)
class AuthorizationSeen:
    """The CA answered with an authorization."""

    authorization: AuthorizationView


@dataclass(frozen=True, slots=True)
class ChallengeLocated:
    """Where the challenge's TXT record belongs, aliases followed."""

    zone: str
    name: str


@dataclass(frozen=True, slots=True)
class ChallengePublished:
    """The primary server has the challenge's TXT record."""


@dataclass(frozen=True, slots=True)
class PropagationSeen:
    """Every authoritative server was asked for the TXT value; these do not answer it yet.

    `lagging` answer without it, `silent` do not answer. `silence_bound_ms` is how long after its
    publication the silent ones are waited for; None without end, and where no server has it yet.
    """

    lagging: tuple[str, ...]
    silent: tuple[str, ...] = ()
    silence_bound_ms: int | None = None


@dataclass(frozen=True, slots=True)
class ChallengeAnswered:
    """The CA was told to validate."""


@dataclass(frozen=True, slots=True)
class CertificateFetched:
    """A certificate came that fits the key and the hostname: what is to be stored."""

    certificate: StoredCertificate


@dataclass(frozen=True, slots=True)
class CertificateRejected:
    """A certificate came that must not be used; says why."""

    detail: str


@dataclass(frozen=True, slots=True)
class AuthorityFailed:
    """A call to the CA failed. `elsewhere`: there is another authority that may be tried.

    `may_be_done`: what was asked may have been done all the same.
    """

    kind: FaultKind
    detail: str
    retry_after_seconds: float | None = None
    elsewhere: bool = False
    may_be_done: bool = False


@dataclass(frozen=True, slots=True)
class ZoneFailed:
    """The challenge could not be placed. Without `retry_after_seconds` waiting will not help."""

    detail: str
    retry_after_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class StepBroke:
    """The step ended in a fault of the gateway itself, logged under the incident id."""

    incident_id: str


Event = (
    Due
    | AuthorityChosen
    | AuthoritiesHeld
    | KeyMade
    | OrderSeen
    | Finalized
    | AuthorizationSeen
    | ChallengeLocated
    | ChallengePublished
    | PropagationSeen
    | ChallengeAnswered
    | CertificateFetched
    | CertificateRejected
    | AuthorityFailed
    | ZoneFailed
    | StepBroke
)
