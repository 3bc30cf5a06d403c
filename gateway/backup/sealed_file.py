"""The file that a backup is: a line in clear, and behind it one sealed stream.

    gateway-backup {"format": 1, "backupId": …, "madeAtMs": …, "schema": …, "release": …,
                    "keyId": …, "salt": …}
    chunk, chunk, … last chunk

The stream is cut into chunks of 64 KiB, each sealed by AES-256-GCM under a key of this file alone
(HKDF-SHA256 of the keyring's key and a random salt), so counting nonces never meet another file's.
A nonce is the number of the chunk and whether it is the last; the line in clear is sealed with
each. So a chunk that was altered, left out, repeated, put elsewhere or taken from another file does
not open, nor does a file that was cut at any place or has anything behind it. (The construction is
STREAM of Hoang, Reyhanitabar, Rogaway and Vizár, 2015.) Memory holds two chunks, whatever the size.

Knows nothing of what the stream says. Called by `backup.saving` and `backup.restoring`.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import stat
import tempfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from gateway.contract.faults import quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from gateway.certificates.sealing import Keyring

FORMAT: Final = 1
CHUNK_BYTES: Final = 65_536
PURPOSE: Final = "backup"

_TAG_BYTES: Final = 16
_MAGIC: Final = b"gateway-backup "
_MAX_HEADER_BYTES: Final = 4_096
_SALT_BYTES: Final = 32


class BackupRefused(Exception):
    """A backup can't be used, or made; one sentence says why."""


@dataclass(frozen=True, slots=True)
class Header:
    """What a backup says of itself in clear. `made_at_ms` is when it was begun, epoch ms."""

    backup_id: str
    made_at_ms: int
    schema: int
    release: str


class SealedWriter:
    """Writes one backup beside its place, and puts it there when it is whole.

    A link is followed: the file that it names is what is replaced, or made.

    A context: whatever ends it before `finish`, nothing is left, and a former file stays. Only a
    process that is killed leaves its `.NAME.….partial` behind.
    """

    def __init__(self, path: Path, header: Header, keyring: Keyring) -> None:
        """Judge the place. Raises BackupRefused, and OSError where it can't be looked at."""
        with contextlib.suppress(FileNotFoundError):
            if not stat.S_ISREG(path.stat().st_mode):
                raise BackupRefused(f"{path} is there and is no regular file: it is left alone.")
        self._path = path.resolve()
        salt = secrets.token_hex(_SALT_BYTES)
        key_id, key = keyring.derive(PURPOSE)[0]
        stated = {
            "format": FORMAT,
            "backupId": header.backup_id,
            "madeAtMs": header.made_at_ms,
            "schema": header.schema,
            "release": header.release,
            "keyId": key_id,
            "salt": salt,
        }
        self._clear = _MAGIC + json.dumps(stated).encode() + b"\n"
        self._cipher = _cipher(key, salt)
        self._buffer = bytearray()
        self._number = 0

    def __enter__(self) -> SealedWriter:
        """Begin the file, readable for its owner only."""
        folder, name = self._path.parent, self._path.name
        descriptor, self._partial = tempfile.mkstemp(".partial", f".{name}.", folder)
        self._file = os.fdopen(descriptor, "wb")
        self._file.write(self._clear)
        return self

    def write(self, data: bytes) -> None:
        """Add to the stream."""
        self._buffer += data
        # The last chunk is known as such only at the end, so one is always kept back.
        while len(self._buffer) > CHUNK_BYTES:
            self._seal(bytes(self._buffer[:CHUNK_BYTES]), is_last=False)
            del self._buffer[:CHUNK_BYTES]

    def finish(self) -> None:
        """Write the rest, and put the file in its place: on the disk, or not at all."""
        self._seal(bytes(self._buffer), is_last=True)
        self._file.flush()
        os.fsync(self._file.fileno())
        os.replace(self._partial, self._path)
        folder = os.open(self._path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def __exit__(self, *_: object) -> None:
        """Close it; what was not finished goes."""
        # A full disk fails at what is still buffered, too, and the first fault is the one to tell.
        with contextlib.suppress(OSError):
            self._file.close()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._partial)

    def _seal(self, chunk: bytes, *, is_last: bool) -> None:
        nonce = _nonce(self._number, is_last=is_last)
        self._file.write(self._cipher.encrypt(nonce, chunk, self._clear))
        self._number += 1


class SealedReader:
    """One backup file, open: its header, and its lines as often as they are asked for."""

    def __init__(self, file: BinaryIO, name: str, keyring: Keyring) -> None:
        """Read the header, and open the first chunk: nobody else can have written either.

        Raises:
            BackupRefused: it is no backup, a newer one, or sealed with a key that is not there.
        """
        self._file = file
        self._name = name
        self._clear = self._read(file.readline, _MAX_HEADER_BYTES)
        stated = _stated(self._clear, name)
        self._key_id = str(stated["keyId"])
        held = dict(keyring.derive(PURPOSE))
        if self._key_id not in held:
            raise BackupRefused(
                f"{name} is sealed with the key {quoted(self._key_id)}, and the keyring holds"
                f" {', '.join(keyring.key_ids)} only: put that key into keyring_file."
            )
        try:
            self._cipher = _cipher(held[self._key_id], str(stated["salt"]))
            self.header = Header(
                str(stated["backupId"]),
                int(stated["madeAtMs"]),
                int(stated["schema"]),
                str(stated["release"]),
            )
        except (KeyError, TypeError, ValueError, OverflowError):
            raise BackupRefused(_altered(name)) from None
        next(self._chunks())

    def lines(self) -> Iterator[bytes]:
        """The stream from its beginning, line by line, each with its newline.

        Raises:
            BackupRefused: the file was altered or cut. What came before it is as it was sealed, but
                not whole: use nothing of it before the end has come.
        """
        rest = b""
        for chunk in self._chunks():
            *whole, rest = (rest + chunk).split(b"\n")
            for line in whole:
                yield line + b"\n"
        if rest:
            raise BackupRefused(f"{self._name} ends in the middle of a line.")

    def _chunks(self) -> Iterator[bytes]:
        self._file.seek(len(self._clear))
        number, sealed = 0, self._read(self._file.read, CHUNK_BYTES + _TAG_BYTES)
        while True:
            following = self._read(self._file.read, CHUNK_BYTES + _TAG_BYTES)
            is_last = not following
            try:
                chunk = self._cipher.decrypt(_nonce(number, is_last=is_last), sealed, self._clear)
            except (InvalidTag, ValueError):
                # ValueError: too short to hold a tag.
                raise BackupRefused(self._does_not_open(number)) from None
            yield chunk
            if is_last:
                return
            number, sealed = number + 1, following

    def _read(self, read: Callable[[int], bytes], size: int) -> bytes:
        try:
            return read(size)
        except OSError as fault:
            raise BackupRefused(f"{self._name} can't be read: {fault.strerror}.") from fault

    def _does_not_open(self, number: int) -> str:
        place = len(self._clear) + number * (CHUNK_BYTES + _TAG_BYTES)
        other = (
            f" or the key {quoted(self._key_id)} of the keyring is not the one that it was sealed"
            " with"
        )
        what = f"{self._name} does not open from byte {place} on: it was altered or cut"
        return f"{what}{other if number == 0 else ''}."


def _stated(clear: bytes, name: str) -> dict[str, Any]:
    if not clear.startswith(_MAGIC) or not clear.endswith(b"\n"):
        raise BackupRefused(f"{name} is no backup of a gateway.")
    try:
        stated = json.loads(clear[len(_MAGIC) :])
    except (ValueError, RecursionError):
        stated = None
    if not isinstance(stated, dict) or not {"format", "keyId"} <= stated.keys():
        raise BackupRefused(_altered(name))
    if stated["format"] != FORMAT:
        raise BackupRefused(_altered(name))
    return stated


def _altered(name: str) -> str:
    """Of a first line that nothing vouches for yet; what it says is not repeated."""
    return (
        f"{name} is no backup that this release reads: its first line was altered, or is of another"
        " release."
    )


def _cipher(key: bytes, salt: str) -> AESGCM:
    info = b"gateway backup file"
    return AESGCM(HKDF(SHA256(), length=32, salt=bytes.fromhex(salt), info=info).derive(key))


def _nonce(number: int, *, is_last: bool) -> bytes:
    return number.to_bytes(11, "big") + bytes([is_last])
