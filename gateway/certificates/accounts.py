"""The ACME account of one directory, kept in Redis with its keys sealed.

The first process to store a key wins and all others use that key; newAccount with a key the CA
knows answers the account it has (RFC 8555 section 7.3.1), so registering needs no lock.

A key that is to take the place of the account's lies beside it as the *next key*, from before the
CA hears of it until it is the account's: whichever of the two the CA goes by, it is stored.

Every change is a compare-and-swap of the whole hash by its version.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

import structlog

from gateway.certificates.sealing import KeyMissing, SealBroken
from gateway.store import keys
from gateway.store.connection import StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gateway.certificates.sealing import Keyring
    from gateway.store.connection import Store

PURPOSE: Final = "acme-account-key"
KEY_FIELD: Final = "sealedKey"
NEXT_KEY_FIELD: Final = "sealedNextKey"
SEALED_FIELDS: Final = (KEY_FIELD, NEXT_KEY_FIELD)

_URL_FIELD: Final = "url"
_VERSION_FIELD: Final = "version"
_MOST_ATTEMPTS: Final = 20

_T = TypeVar("_T")

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class StoredAccount:
    """An account key (PKCS#8 PEM), and the account's URL once the CA has told it.

    `next_key_pem` is a key that is on its way to take the other one's place.
    """

    key_pem: bytes
    url: str | None
    next_key_pem: bytes | None = None

    def __repr__(self) -> str:
        """Without the keys."""
        return f"StoredAccount(url={self.url!r})"


class AccountStore(Protocol):
    """Where an authority keeps its account."""

    async def load(self) -> StoredAccount | None:
        """The account, if one was stored."""

    async def add_key(self, key_pem: bytes) -> StoredAccount:
        """Store a key unless there is one; returns what is stored now."""

    async def set_url(self, url: str | None, *, key_pem: bytes | None = None) -> None:
        """Remember the account's URL, or forget it; with a key, only if that is the account's."""

    async def add_next_key(self, key_pem: bytes) -> StoredAccount:
        """Store a next key unless there is one; returns what is stored now."""

    async def drop_next_key(self, next_key_pem: bytes) -> None:
        """Forget this next key; does nothing when there is another or none."""

    async def promote_next_key(self, next_key_pem: bytes, url: str) -> None:
        """Make this next key the account's, at `url`; does nothing when it is not the next key."""


class RedisAccountStore:
    """The account of one directory in Redis.

    A key that was altered or belongs elsewhere is as good as none: a warning tells of it, and
    another one takes its place. A key that is sealed under a key that this process's keyring does
    not hold may still serve others, and stays: methods raise `KeyMissing` then. All methods raise
    `StoreUnavailable`.
    """

    def __init__(self, store: Store, keyring: Keyring, directory_url: str) -> None:
        self._store = store
        self._keyring = keyring
        self._directory_url = directory_url
        self._key = keys.account_key(directory_url)

    async def load(self) -> StoredAccount | None:
        """The account, if one was stored."""
        return self._read(await self._store.fields(self._key))

    async def add_key(self, key_pem: bytes) -> StoredAccount:
        """Store a key unless there is one that opens; returns what is stored now."""

        def decide(account: StoredAccount | None) -> dict[str, str | None] | None:
            if account is not None:
                return None
            return {KEY_FIELD: self._seal(key_pem), NEXT_KEY_FIELD: None, _URL_FIELD: None}

        return await self._change(decide)

    async def set_url(self, url: str | None, *, key_pem: bytes | None = None) -> None:
        """Remember the account's URL, or forget it; with a key, only if that is the account's."""

        def decide(account: StoredAccount | None) -> dict[str, str | None] | None:
            if account is None or key_pem not in (None, account.key_pem) or account.url == url:
                return None
            return {_URL_FIELD: url}

        await self._change_if_any(decide)

    async def add_next_key(self, key_pem: bytes) -> StoredAccount:
        """Store a next key unless there is one that opens; returns what is stored now.

        Raises LookupError without an account.
        """

        def decide(account: StoredAccount | None) -> dict[str, str | None] | None:
            if account is None or account.next_key_pem is not None:
                return None
            return {NEXT_KEY_FIELD: self._seal(key_pem)}

        return await self._change(decide)

    async def drop_next_key(self, next_key_pem: bytes) -> None:
        """Forget this next key; does nothing when there is another or none."""

        def decide(account: StoredAccount | None) -> dict[str, str | None] | None:
            if account is None or account.next_key_pem != next_key_pem:
                return None
            return {NEXT_KEY_FIELD: None}

        await self._change_if_any(decide)

    async def promote_next_key(self, next_key_pem: bytes, url: str) -> None:
        """Make this next key the account's, at `url`; does nothing when it is not the next key."""

        def decide(account: StoredAccount | None) -> dict[str, str | None] | None:
            if account is None or account.next_key_pem != next_key_pem:
                return None
            return {KEY_FIELD: self._seal(next_key_pem), NEXT_KEY_FIELD: None, _URL_FIELD: url}

        await self._change_if_any(decide)

    async def reseal(self) -> int:
        """Seal what is stored with the keyring's first key; returns how many values it moved.

        May be repeated and run beside everything else. Raises `SealBroken` for a value that does
        not open; the others were moved.
        """

        def moved(fields: Mapping[str, str]) -> tuple[dict[str, str | None], SealBroken | None]:
            change: dict[str, str | None] = {}
            broken: SealBroken | None = None
            for name in SEALED_FIELDS:
                try:
                    sealed = self._resealed(fields.get(name))
                except SealBroken as fault:
                    broken = fault
                else:
                    if sealed != fields.get(name):
                        change[name] = sealed
            return change, broken

        change, broken = await self._swap(moved)
        if broken is not None:
            raise broken
        return len(change)

    def _resealed(self, sealed: str | None) -> str | None:
        if sealed is None:
            return None
        return self._keyring.reseal(sealed, purpose=PURPOSE, bound_to=(self._directory_url,))

    def _read(self, fields: Mapping[str, str]) -> StoredAccount | None:
        key_pem = self._open(fields, KEY_FIELD)
        if key_pem is None:
            return None
        return StoredAccount(key_pem, fields.get(_URL_FIELD), self._open(fields, NEXT_KEY_FIELD))

    def _open(self, fields: Mapping[str, str], name: str) -> bytes | None:
        sealed = fields.get(name)
        if sealed is None:
            return None
        try:
            return self._keyring.open(sealed, purpose=PURPOSE, bound_to=(self._directory_url,))
        except KeyMissing:
            raise
        except SealBroken as fault:
            _log.warning(
                "account key does not open and will be replaced",
                directory=self._directory_url,
                field=name,
                detail=str(fault),
            )
            return None

    def _seal(self, key_pem: bytes) -> str:
        return self._keyring.seal(key_pem, purpose=PURPOSE, bound_to=(self._directory_url,))

    async def _change(
        self, decide: Callable[[StoredAccount | None], dict[str, str | None] | None]
    ) -> StoredAccount:
        account = await self._change_if_any(decide)
        if account is None:
            raise LookupError("there is no account, or it was deleted at this moment")
        return account

    async def _change_if_any(
        self, decide: Callable[[StoredAccount | None], dict[str, str | None] | None]
    ) -> StoredAccount | None:
        """Carry out what `decide` makes of the account; returns what is stored afterwards."""

        def decided(
            fields: Mapping[str, str],
        ) -> tuple[dict[str, str | None], StoredAccount | None]:
            account = self._read(fields)
            change = decide(account)
            if change is None:
                return {}, account
            # Only ever what is committed: another process may change it afterwards.
            merged = {**fields, **change}
            left = {name: text for name, text in merged.items() if text is not None}
            return change, self._read(left)

        _, account = await self._swap(decided)
        return account

    async def _swap(
        self, decide: Callable[[Mapping[str, str]], tuple[dict[str, str | None], _T]]
    ) -> tuple[dict[str, str | None], _T]:
        """Commit the change that `decide` makes of the fields, if any; returns its last answer."""
        for _ in range(_MOST_ATTEMPTS):
            fields = await self._store.fields(self._key)
            change, answer = decide(fields)
            if not change or await self._commit(fields, change):
                return change, answer
        raise StoreUnavailable("the stored account keeps changing")

    async def _commit(self, fields: Mapping[str, str], change: Mapping[str, str | None]) -> bool:
        # The script's index is not touched without a score: the hash itself stands in for it, being
        # in the right slot of a Cluster.
        version = await self._store.commit(
            self._key,
            self._key,
            expected_version=fields.get(_VERSION_FIELD, ""),
            member="",
            sets={name: text for name, text in change.items() if text is not None},
            deletes=[name for name, text in change.items() if text is None],
        )
        return version is not None
