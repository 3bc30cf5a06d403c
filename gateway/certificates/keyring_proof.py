"""Is this the keyring that the data in Redis was sealed with? Asked before a gateway does anything.

With another one it would start well and do harm: publish records under markers that are nobody's
tomorrow, and find every key it holds unopenable.

The first gateway leaves a *proof*, an empty value sealed with its first key. While everything is
moved to another key (`resealing`) there is one of each, so that neither a keyring without the old
key nor one without the new key passes; at the end only the new key's is left.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gateway.certificates.sealing import KeyringInvalid, SealBroken, key_id_of
from gateway.store import keys

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gateway.certificates.sealing import Keyring
    from gateway.store.connection import Store

_PURPOSE: Final = "keyring-proof"
_FIELD: Final = "proof"
_FIELD_OF_KEY: Final = "proof:"


async def prove_keyring(keyring: Keyring, store: Store) -> None:
    """Compare with what the first gateway on this Redis has left, or be the first.

    Raises:
        KeyringInvalid: the keyring lacks a key that data is sealed with.
        StoreUnavailable: nobody can tell.
    """
    await store.set_field_once(keys.KEYRING_KEY, _FIELD, _proof_of(keyring))
    missing = missing_keys(keyring, (await store.fields(keys.KEYRING_KEY)).values())
    if missing:
        text = f"does not hold the key {missing[0]} that this Redis's data is sealed with"
        raise KeyringInvalid([f"keyring_file {text}"])


def missing_keys(keyring: Keyring, proofs: Iterable[str]) -> list[str]:
    """The ids of the keys that some proofs were made with and that the keyring does not hold."""
    missing = set()
    for proof in proofs:
        try:
            keyring.open(proof, purpose=_PURPOSE, bound_to=())
        except SealBroken:
            missing.add(key_id_of(proof))
    return sorted(missing)


async def proven_keys(store: Store) -> frozenset[str]:
    """The ids of the keys that a keyring must hold to be taken. Raises `StoreUnavailable`."""
    proofs = await store.fields(keys.KEYRING_KEY)
    return frozenset(map(key_id_of, proofs.values()))


async def begin_moving(keyring: Keyring, store: Store) -> None:
    """Refuse, from now on, keyrings without the key that everything is being moved to; repeatable.

    Raises `StoreUnavailable`.
    """
    first = keyring.key_ids[0]
    if first not in await proven_keys(store):
        await store.set_field(keys.KEYRING_KEY, _FIELD_OF_KEY + first, _proof_of(keyring))


async def end_moving(keyring: Keyring, store: Store) -> None:
    """Take keyrings that hold the first key only: nothing is left under the others; repeatable.

    Raises `StoreUnavailable`.
    """
    await store.set_field(keys.KEYRING_KEY, _FIELD, _proof_of(keyring))
    for name in await store.fields(keys.KEYRING_KEY):
        if name != _FIELD:
            await store.delete_field(keys.KEYRING_KEY, name)


def _proof_of(keyring: Keyring) -> str:
    return keyring.seal(b"", purpose=_PURPOSE, bound_to=())
