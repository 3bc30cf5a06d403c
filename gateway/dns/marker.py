"""The owner marker: a TXT value that proves whose address record lies beside it.

    gateway-owner=v1:<key id>:<mac>

The MAC is HMAC-SHA-256 cut to 128 bits, base64url without padding, over client, appId, hostname,
type and value, each preceded by its length, so that no two different owners or records give the
same input. It names nobody, and without the key nobody can make or check one.

Responsible for making and checking the text. Must not read a zone, nor decide what follows from a
marker (`proof`, `plan`). The keys are derived from the sealing keyring by the caller.
"""

import base64
import hashlib
import hmac
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from gateway.dns.owner import Owner

MARKER_PREFIX: Final = "gateway-owner="
MOST_KEPT: Final = 2048
"""How many markers are kept that were made: a sync makes its own twice, each for 0.008 ms."""

_VERSION: Final = "v1"
_MAC_BYTES: Final = 16
_KEY_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")
_FORM: Final = re.compile(
    rf"{MARKER_PREFIX}{_VERSION}:{_KEY_ID.pattern}:[A-Za-z0-9_-]{{{(_MAC_BYTES * 4 + 2) // 3}}}"
)


@dataclass(frozen=True, slots=True)
class MarkerKey:
    """One key of the ring; `key_id` is public: 1 to 64 of `A-Z a-z 0-9 . _ -`."""

    key_id: str
    secret: bytes = field(repr=False)

    def __post_init__(self) -> None:
        if not _KEY_ID.fullmatch(self.key_id):
            raise ValueError("a marker's key id is 1 to 64 of A-Z a-z 0-9 . _ -")


class Markers:
    """Signs with the first key, recognises what any of them signed."""

    def __init__(self, keys: Sequence[MarkerKey]) -> None:
        if not keys:
            raise ValueError("a marker needs at least one key")
        self._keys = tuple(keys)
        self._marker = lru_cache(MOST_KEPT)(_marker)

    def sign(self, owner: Owner, type_: str, value: str) -> str:
        """The TXT text to publish beside the record. `value` in its canonical spelling."""
        return self._marker(self._keys[0], owner, type_, value)

    def proves(self, text: str, owner: Owner, type_: str, value: str) -> bool:
        """Was exactly this record published by the gateway for exactly this owner?

        Takes the same time whatever `text` is.
        """
        given = text.encode()
        proven = False
        for key in self._keys:
            proven |= hmac.compare_digest(given, self._marker(key, owner, type_, value).encode())
        return proven

    @staticmethod
    def is_marker(text: str) -> bool:
        """Is it a marker of any kind: of any owner, key or version, intact or not?"""
        return text.startswith(MARKER_PREFIX)

    @staticmethod
    def is_well_formed(text: str) -> bool:
        """Has it the version and the form that `sign` gives to markers?"""
        return _FORM.fullmatch(text) is not None

    def knows_key_of(self, text: str) -> bool:
        """Is it well-formed, and is there a key of the id that it names, whatever its secret?"""
        key_id = self.key_id_of(text)
        return any(key.key_id == key_id for key in self._keys)

    @staticmethod
    def key_id_of(text: str) -> str:
        """The id of the key that a marker names; empty when it is not well-formed."""
        if not Markers.is_well_formed(text):
            return ""
        return text.removeprefix(f"{MARKER_PREFIX}{_VERSION}:").partition(":")[0]


def _marker(key: MarkerKey, owner: Owner, type_: str, value: str) -> str:
    fields = (MARKER_PREFIX, _VERSION, owner.client_id, owner.app_id, owner.hostname, type_, value)
    message = bytearray()
    for text in fields:
        encoded = text.encode()
        message += len(encoded).to_bytes(4, "big") + encoded
    mac = hmac.digest(key.secret, bytes(message), hashlib.sha256)[:_MAC_BYTES]
    encoded_mac = base64.urlsafe_b64encode(mac).rstrip(b"=").decode()
    return f"{MARKER_PREFIX}{_VERSION}:{key.key_id}:{encoded_mac}"
