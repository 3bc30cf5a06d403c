"""Tokens: making them, taking them apart, and the digests that are stored instead of them.

A client's token is `gwc_<credentialId>_<secret>`, an admin's `gwa_<secret>`; the secret is 256
random bits in base64url. A credential id is 24 hex digits that name its client's document and 12
that name the credential in it, so that one read of Redis tells everything about a token.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from dataclasses import dataclass
from itertools import islice
from typing import Final

from gateway.contract.names import CredentialId
from gateway.store.keys import fingerprint

CALLER_KEY: Final = "apiToken"
"""The key of a call's `request` that has the caller's token."""

_CLIENT_TOKEN = re.compile(r"gwc_([0-9a-f]{24})([0-9a-f]{12})_([A-Za-z0-9_-]{43})")
_ADMIN_TOKEN = re.compile(r"gwa_[A-Za-z0-9_-]{43}")
_ANY_TOKEN = re.compile(rb"gw(?:c_[0-9a-f]{36}_|a_)[A-Za-z0-9_-]{43}")
_MOST_IN_BODY = 4
_SECRET_BYTES = 32
_CREDENTIAL_BYTES = 6
_CREDENTIAL_DIGITS = 2 * _CREDENTIAL_BYTES


@dataclass(frozen=True, slots=True)
class ClientToken:
    """A well-formed client token, taken apart; the secret itself is not kept."""

    client_fingerprint: str
    credential_id: CredentialId
    digest: str


@dataclass(frozen=True, slots=True)
class NewToken:
    """A token just made: shown once, then only its digest lives on."""

    token: str
    credential_id: CredentialId
    digest: str

    def __repr__(self) -> str:
        """Without the token."""
        return f"NewToken(credential_id={self.credential_id!r})"


def new_client_token(client_id: str) -> NewToken:
    """A fresh token and credential id for a client."""
    credential_id = CredentialId(fingerprint(client_id) + secrets.token_hex(_CREDENTIAL_BYTES))
    token = f"gwc_{credential_id}_{secrets.token_urlsafe(_SECRET_BYTES)}"
    return NewToken(token, credential_id, digest_of(token))


def parse_client_token(token: object) -> ClientToken | None:
    """Take a client token apart; None when it is not of that form."""
    found = _CLIENT_TOKEN.fullmatch(token) if isinstance(token, str) else None
    if found is None:
        return None
    client_fingerprint, credential, _ = found.groups()
    return ClientToken(
        client_fingerprint, CredentialId(client_fingerprint + credential), digest_of(found[0])
    )


def fingerprint_in(credential_id: CredentialId) -> str:
    """The fingerprint of the client that a credential is of."""
    return credential_id[:-_CREDENTIAL_DIGITS]


def parse_admin_token(token: object) -> str | None:
    """The digest of an admin token; None when it is not of that form."""
    if isinstance(token, str) and _ADMIN_TOKEN.fullmatch(token):
        return digest_of(token)
    return None


def digest_of(token: str) -> str:
    """SHA-256 of a whole token in hex: enough for a secret of 256 random bits."""
    return hashlib.sha256(token.encode("ascii")).hexdigest()


def digests_in(body: bytes) -> list[str]:
    """The digests of the first few tokens that are written somewhere in a call's body.

    For whoever must tell a known token without reading the call.
    """
    found = islice(_ANY_TOKEN.finditer(body), _MOST_IN_BODY)
    return [hashlib.sha256(each[0]).hexdigest() for each in found]
