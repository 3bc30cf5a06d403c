"""The keyring and what it seals: nothing private lies in Redis in clear.

Responsible for reading the keyring file, for sealing and opening values, and for deriving the
subkeys that others sign with. Knows no Redis key and no certificate: callers say what a value is
for (`purpose`) and whose it is (`bound_to`), and a value opens only under exactly the same words.

Form of a sealed value: `v1:<key id>:<base64url of nonce and ciphertext>`, AES-256-GCM with a random
96-bit nonce. No key of the file encrypts anything itself: each purpose has its own subkey
(HKDF-SHA256), so that a value of one purpose can't be passed off as one of another.

Called by the stores of accounts and issuances, by the wiring (marker keys) and `gateway init`.
"""

import base64
import binascii
import os
import re
import secrets
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from gateway.files import open_file, reason_of

KEY_BYTES: Final = 32
NONCE_BYTES: Final = 12
VERSION: Final = "v1"
MAX_FILE_BYTES: Final = 65536

_KEY_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")

_FILE_HEADER: Final = """\
# Keyring of the gateway: one key a line, `key-id base64-of-32-bytes`.
# The first key seals; all of them open. To change keys: add the new one below, restart every
# gateway; move it to the top, restart again; run `gateway reseal`, which says when the old may go.
# Whoever reads this file reads every private key in the gateway's Redis. Back it up apart from it.
"""


class KeyringInvalid(Exception):
    """The keyring file can't be used; `faults` says everything that is wrong with it."""

    def __init__(self, faults: Sequence[str]) -> None:
        super().__init__("; ".join(faults))
        self.faults = tuple(faults)


class SealBroken(Exception):
    """A sealed value doesn't open: altered, moved to another place, or its key is gone."""


class KeyMissing(SealBroken):
    """A sealed value was not altered as far as anybody can tell, but its key is not in the keyring.

    Another process may hold that key; put back into the file, it opens the value again.
    """


class Sealed(NamedTuple):
    """A sealed value and what it needs to be opened; nothing of it is open."""

    cipher: AESGCM
    nonce: bytes
    ciphertext: bytes
    context: bytes

    def open(self) -> bytes:
        """The plaintext; raises SealBroken."""
        try:
            return self.cipher.decrypt(self.nonce, self.ciphertext, self.context)
        except (InvalidTag, ValueError):
            # ValueError: too short to hold a nonce and a tag.
            raise SealBroken("the value was altered or belongs elsewhere") from None


class Keyring:
    """The keys of one file, in its order."""

    def __init__(
        self, keys: Iterable[tuple[str, bytes]], *, permission_fault: str | None = None
    ) -> None:
        """Hold `(key id, 32 bytes)` pairs, the sealing one first.

        `permission_fault` is a sentence for the operator when others may read the file.
        """
        self._keys = dict(keys)
        self.permission_fault = permission_fault
        self._ciphers: dict[tuple[str, str], AESGCM] = {}

    def __repr__(self) -> str:
        return f"Keyring({', '.join(self._keys)})"

    def is_as(self, other: "Keyring") -> bool:
        """Whether both hold the same keys in the same order."""
        return list(self._keys.items()) == list(other._keys.items())

    @property
    def key_ids(self) -> tuple[str, ...]:
        """The ids of all keys, the sealing one first."""
        return tuple(self._keys)

    def seal(self, plaintext: bytes, *, purpose: str, bound_to: Sequence[str]) -> str:
        """Seal `plaintext` with the first key; two calls never give the same text."""
        key_id = next(iter(self._keys))
        nonce = secrets.token_bytes(NONCE_BYTES)
        context = _context(key_id, purpose, bound_to)
        ciphertext = self._cipher(key_id, purpose).encrypt(nonce, plaintext, context)
        return f"{VERSION}:{key_id}:{_encode(nonce + ciphertext)}"

    def open(self, sealed: str, *, purpose: str, bound_to: Sequence[str]) -> bytes:
        """Answer the plaintext that `seal` was given with the same purpose and binding.

        Raises SealBroken for everything else, whatever the text is: KeyMissing for a value of a
        key that the keyring does not hold.
        """
        return self.read(sealed, purpose=purpose, bound_to=bound_to).open()

    def read(self, sealed: str, *, purpose: str, bound_to: Sequence[str]) -> "Sealed":
        """Take a sealed value apart without opening it; `open` it as often as is needed.

        Raises as `open`, where the value shows what is wrong with it.
        """
        version, _, rest = sealed.partition(":")
        key_id, _, text = rest.partition(":")
        if version != VERSION:
            raise SealBroken("not a sealed value of this version")
        if key_id not in self._keys:
            raise KeyMissing("sealed under a key that is not in the keyring")
        raw = _decode(text)
        return Sealed(
            self._cipher(key_id, purpose),
            raw[:NONCE_BYTES],
            raw[NONCE_BYTES:],
            _context(key_id, purpose, bound_to),
        )

    def reseal(self, sealed: str, *, purpose: str, bound_to: Sequence[str]) -> str:
        """Answer the same value sealed with the first key; as it is when that key sealed it.

        Raises SealBroken, as `open`; nothing is opened that need not be.
        """
        if key_id_of(sealed) == self.key_ids[0]:
            return sealed
        plaintext = self.open(sealed, purpose=purpose, bound_to=bound_to)
        return self.seal(plaintext, purpose=purpose, bound_to=bound_to)

    def derive(self, purpose: str) -> list[tuple[str, bytes]]:
        """Answer one 32-byte subkey of each key, `(key id, subkey)`, in the keyring's order.

        For other uses than sealing; never equal to a subkey that seals.
        """
        return [(key_id, _subkey(key, "derive", purpose)) for key_id, key in self._keys.items()]

    def _cipher(self, key_id: str, purpose: str) -> AESGCM:
        cipher = self._ciphers.get((key_id, purpose))
        if cipher is None:
            cipher = AESGCM(_subkey(self._keys[key_id], "seal", purpose))
            self._ciphers[key_id, purpose] = cipher
        return cipher


def key_id_of(sealed: str) -> str:
    """The id of the key that a sealed value names, if it names any; nothing is opened."""
    version, _, rest = sealed.partition(":")
    return rest.partition(":")[0] if version == VERSION else ""


def load_keyring(path: Path) -> Keyring:
    """Read the keyring file at `path`.

    A file that others than its owner may read is usable; the keyring's `permission_fault` says so.
    Raises KeyringInvalid with every fault of the file. No fault ever quotes key material.
    """
    try:
        with open_file(path) as file:
            raw = file.read(MAX_FILE_BYTES + 1)
            mode = os.fstat(file.fileno()).st_mode
    except (OSError, ValueError) as fault:
        raise KeyringInvalid([f"{path}: cannot be read ({reason_of(fault)})"]) from None
    if len(raw) > MAX_FILE_BYTES:
        raise KeyringInvalid([f"{path}: larger than {MAX_FILE_BYTES} bytes"])
    keys, faults = _parse(raw.decode("utf-8", errors="replace"))
    if faults:
        raise KeyringInvalid([f"{path}: {fault}" for fault in faults])
    permission_fault = None
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        permission_fault = f"{path}: others than its owner have access to it; use mode 0600"
    return Keyring(keys, permission_fault=permission_fault)


def new_keyring_text() -> str:
    """Make the text of a new keyring file with one fresh key."""
    key = base64.b64encode(secrets.token_bytes(KEY_BYTES)).decode()
    return f"{_FILE_HEADER}k{secrets.token_hex(4)} {key}\n"


def _parse(text: str) -> tuple[list[tuple[str, bytes]], list[str]]:
    keys: dict[str, bytes] = {}
    faults = []
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        key, fault = _parse_key(words)
        if fault is None and words[0] in keys:
            fault = "this key id is there already"
        if fault is None and key in keys.values():
            fault = "this key is there already under another id"
        if fault is not None:
            faults.append(f"line {number}: {fault}")
        else:
            keys[words[0]] = key
    if not keys and not faults:
        faults.append("holds no key")
    return list(keys.items()), faults


def _parse_key(words: Sequence[str]) -> tuple[bytes, str | None]:
    if len(words) != 2:
        return b"", "must be `key-id base64`"
    if not _KEY_ID.fullmatch(words[0]):
        return b"", "the key id must be 1 to 64 of A-Z a-z 0-9 . _ -"
    try:
        key = base64.b64decode(words[1], validate=True)
    except (binascii.Error, ValueError):
        return b"", "the key is not base64"
    if len(key) != KEY_BYTES:
        return b"", f"the key must be {KEY_BYTES} bytes, it has {len(key)}"
    return key, None


def _subkey(key: bytes, use: str, purpose: str) -> bytes:
    info = _join(["gateway", use, purpose])
    return HKDF(algorithm=SHA256(), length=KEY_BYTES, salt=None, info=info).derive(key)


def _context(key_id: str, purpose: str, bound_to: Sequence[str]) -> bytes:
    return _join([VERSION, key_id, purpose, *bound_to])


def _join(parts: Sequence[str]) -> bytes:
    # Each part is preceded by its length, so ("a", "bc") and ("ab", "c") never give the same bytes.
    encoded = [part.encode("utf-8", errors="surrogatepass") for part in parts]
    return b"".join(len(part).to_bytes(4, "big") + part for part in encoded)


def _encode(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _decode(text: str) -> bytes:
    try:
        raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise SealBroken("not a sealed value") from None
    # A last character may differ in bits that carry nothing; one value has one spelling.
    if _encode(raw) != text:
        raise SealBroken("not a sealed value")
    return raw
