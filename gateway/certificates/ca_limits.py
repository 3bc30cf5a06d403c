"""Whom a CA's own "come back later" concerns, read from its words: a heuristic, and pure.

ACME says only `rateLimited` and Retry-After (RFC 8555 section 6.6); which limit was reached stands
in free text. So the answer is as wide as the words allow and the whole account where they say
nothing: asking too often prolongs some limits, waiting costs time only. Called by
`certificates.ledger`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from gateway.certificates.domains import registered_domain
from gateway.dns.names import CHALLENGE_LABEL


class Reach(StrEnum):
    """How wide a CA's refusal reaches. Part of the stored form."""

    ACCOUNT = "hold-account"
    UNDER = "hold-under"
    """A domain and all below it."""

    HOSTNAME = "hold-host"


@dataclass(frozen=True, slots=True)
class Scope:
    """Whom a refusal concerns; `subject` is a domain, a hostname, or nothing for the account."""

    reach: Reach
    subject: str = ""


_URL: Final = re.compile(r"\w+://\S+")
_NAME: Final = re.compile(r"(?:[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?\.)+[a-z](?:[a-z0-9-]*[a-z0-9])")
_ONE_HOSTNAME: Final = re.compile(
    r"exact set of (domains|identifiers)|prevented from requesting certificates for"
)
_ACCOUNT: Final = re.compile(
    r"\baccounts?\b|\bip\b|\bsubnet\b|\bquota\b|\bservice\b"
    r"|\bnew[ -]?orders\b|\bregistrations\b|\bpending authorizations\b"
)
"""Words for what all hostnames share, also where the refused one is named beside them."""

_CHALLENGE_PREFIX: Final = f"{CHALLENGE_LABEL}."


def scope_of(ca_words: str | None, hostname: str) -> Scope:
    """Whom the refusal of an order for `hostname` (lower case, A-labels) concerns.

    Without words it is not looked for: this hostname alone.
    """
    if ca_words is None:
        return Scope(Reach.HOSTNAME, hostname)
    words = _URL.sub(" ", ca_words.lower())
    if _ONE_HOSTNAME.search(words):
        return Scope(Reach.HOSTNAME, hostname)
    # A label of a hostname may be such a word too.
    if _ACCOUNT.search(_NAME.sub(" ", words)):
        return Scope(Reach.ACCOUNT)
    names = (name.removeprefix(_CHALLENGE_PREFIX) for name in _NAME.findall(words))
    named = [name for name in names if name in ancestry(hostname)]
    if not named:
        return Scope(Reach.ACCOUNT)
    widest = min(named, key=len)
    if widest != hostname:
        return Scope(Reach.UNDER, widest)
    if "certificates" in words and registered_domain(hostname) == hostname:
        return Scope(Reach.UNDER, hostname)
    return Scope(Reach.HOSTNAME, hostname)


def ancestry(hostname: str) -> list[str]:
    """The hostname and every domain above it, down to the top-level domain."""
    labels = hostname.split(".")
    return [".".join(labels[start:]) for start in range(len(labels))]
