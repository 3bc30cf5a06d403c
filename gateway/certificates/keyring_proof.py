"""Is this the keyring that the data in Redis was sealed with? Asked before a gateway does anything.

With another one it would start well and do harm: publish records under markers that are nobody's
tomorrow, and find every key it holds unopenable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gateway.certificates.sealing import KeyringInvalid, SealBroken
from gateway.store import keys

if TYPE_CHECKING:
    from gateway.certificates.sealing import Keyring
    from gateway.store.connection import Store

_PURPOSE: Final = "keyring-proof"
_FIELD: Final = "proof"


async def prove_keyring(keyring: Keyring, store: Store) -> None:
    """Compare with what the first gateway on this Redis has left, or be the first.

    Raises:
        KeyringInvalid: the keyring lacks the key.
        StoreUnavailable: nobody can tell.
    """
    proof = keyring.seal(b"", purpose=_PURPOSE, bound_to=())
    await store.set_field_once(keys.KEYRING_KEY, _FIELD, proof)
    fields = await store.fields(keys.KEYRING_KEY)
    try:
        keyring.open(fields[_FIELD], purpose=_PURPOSE, bound_to=())
    except SealBroken as broken:
        key_id = fields[_FIELD].split(":")[1]
        raise KeyringInvalid(
            [f"keyring_file does not hold the key {key_id} that this Redis's data is sealed with"]
        ) from broken
