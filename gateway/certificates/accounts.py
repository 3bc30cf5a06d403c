"""The ACME account of one directory, kept in Redis with its key sealed.

The first process to store a key wins and all others use that key; newAccount with a key the CA
knows answers the account it has (RFC 8555 section 7.3.1), so registering needs no lock.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from gateway.store import keys

if TYPE_CHECKING:
    from gateway.certificates.sealing import Keyring
    from gateway.store.connection import Store

_PURPOSE = "acme-account-key"


@dataclass(frozen=True, slots=True)
class StoredAccount:
    """An account key (PKCS#8 PEM), and the account's URL once the CA has told it."""

    key_pem: bytes
    url: str | None

    def __repr__(self) -> str:
        """Without the key."""
        return f"StoredAccount(url={self.url!r})"


class AccountStore(Protocol):
    """Where an authority keeps its account."""

    async def load(self) -> StoredAccount | None:
        """The account, if one was stored."""

    async def add_key(self, key_pem: bytes) -> StoredAccount:
        """Store a key unless there is one; returns what is stored now."""

    async def set_url(self, url: str | None) -> None:
        """Remember the account's URL, or forget it."""


class RedisAccountStore:
    """The account of one directory in Redis. Methods raise `StoreUnavailable` and `SealBroken`."""

    def __init__(self, store: Store, keyring: Keyring, directory_url: str) -> None:
        self._store = store
        self._keyring = keyring
        self._directory_url = directory_url
        self._key = keys.account_key(directory_url)

    async def load(self) -> StoredAccount | None:
        """The account, if one was stored."""
        fields = await self._store.fields(self._key)
        if "sealedKey" not in fields:
            return None
        key_pem = self._keyring.open(
            fields["sealedKey"], purpose=_PURPOSE, bound_to=(self._directory_url,)
        )
        return StoredAccount(key_pem, fields.get("url"))

    async def add_key(self, key_pem: bytes) -> StoredAccount:
        """Store a key unless there is one; returns what is stored now."""
        sealed = self._keyring.seal(key_pem, purpose=_PURPOSE, bound_to=(self._directory_url,))
        await self._store.set_field_once(self._key, "sealedKey", sealed)
        stored = await self.load()
        if stored is None:
            raise LookupError("the account key was deleted while it was being stored")
        return stored

    async def set_url(self, url: str | None) -> None:
        """Remember the account's URL, or forget it."""
        if url is None:
            await self._store.delete_field(self._key, "url")
        else:
            await self._store.set_field(self._key, "url", url)
