"""Restoring: a backup's file, looked through to its end first, into a Redis that holds nothing.

The file is read twice. The first time changes nothing and ends with every chunk opened, every line
understood and every count compared; only then is written. A mark in `gw:schema` keeps gateways from
starting meanwhile: a restore that was cut off is finished by the same command with the same file,
which writes everything once more. Whoever begins last goes on: a run that another has taken over
from, since it was stopped for a while, or started twice, writes nothing more.

Called by `gateway restore`, and for `gateway backup --verify`.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, BinaryIO

from gateway.backup.contents import Tally, counted, index_entries, pieces_in
from gateway.backup.sealed_file import BackupRefused, SealedReader
from gateway.certificates.keyring_proof import missing_keys
from gateway.files import open_file
from gateway.store import keys, schema_version
from gateway.store.whole import Sort, Whole, batches, sort_of

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from gateway.certificates.sealing import Keyring
    from gateway.store.connection import Store
    from gateway.store.whole import Piece


class RedisUsed(BackupRefused):
    """The Redis to restore into holds keys of a gateway."""

    def __init__(self, counts: Counter[Sort]) -> None:
        numbers = [counted(counts[sort], sort.value) for sort in Sort if counts[sort]]
        super().__init__(
            "This Redis is not empty: it holds keys of a gateway"
            f" ({', '.join(numbers) or 'just being written'}),"
            " and nothing of it is overwritten. Stop its gateways, and restore into an empty one."
        )


class Backup:
    """An open backup file that was looked through to its end."""

    def __init__(self, reader: SealedReader, name: str, keyring: Keyring) -> None:
        """Look the file through.

        Raises:
            BackupRefused: nothing of it may be used.
        """
        self.header = reader.header
        self.tally = Tally()
        self._reader = reader
        self._name = name
        if self.header.schema > schema_version.SCHEMA_VERSION:
            raise BackupRefused(
                f"{name} holds a state of form {self.header.schema}, and this release knows forms"
                f" up to {schema_version.SCHEMA_VERSION}: use the release that made it"
                f" ({self.header.release})."
            )
        for piece in pieces_in(reader.lines(), self.tally, name):
            if piece.key == keys.KEYRING_KEY:
                self._require_keys(piece, keyring)

    def pieces(self) -> Iterator[Piece]:
        """Everything in it once more, with the indices that follow from it.

        One that the file holds itself, as a key that its release did not know, is left out.
        """
        for piece in pieces_in(self._reader.lines(), Tally(), self._name):
            if sort_of(piece.key) is not Sort.INDEX:
                yield piece
            yield from index_entries(piece)

    def _require_keys(self, proofs: Piece, keyring: Keyring) -> None:
        missing = missing_keys(keyring, proofs.fields().values())
        if missing:
            raise BackupRefused(
                f"What {self._name} holds is sealed with {', '.join(missing)}, and the keyring"
                f" holds {', '.join(keyring.key_ids)} only: put back the keyring_file of that time."
            )


@contextlib.contextmanager
def opened(path: Path, keyring: Keyring) -> Iterator[Backup]:
    """A backup, looked through; open as long as the block lasts.

    Raises:
        BackupRefused: it can't be read, or nothing of it may be used.
    """
    with _open(path) as file:
        yield Backup(SealedReader(file, str(path), keyring), str(path), keyring)


def _open(path: Path) -> BinaryIO:
    try:
        return open_file(path)
    except OSError as fault:
        raise BackupRefused(f"{path} can't be read: {fault.strerror}.") from fault
    except ValueError:
        raise BackupRefused(f"{path} can't be read: it must be a regular file.") from None


async def restore(store: Store, backup: Backup, now_ms: Callable[[], int]) -> None:
    """Write all of a backup; may be repeated after whatever ended it.

    Raises:
        RedisUsed: nothing was changed.
        StateRefused: another backup's restore was cut off here, and nothing was changed; or another
            run of this backup's has begun meanwhile, and goes on instead of this one.
        BackupRefused: not all that was written is there; gateways are still kept from starting.
        StoreUnavailable: the same command finishes it.
    """
    whole = Whole(store, now_ms)
    turn = await schema_version.begin_restoring(store, backup.header.backup_id)
    if turn is None:
        raise RedisUsed(await whole.count())
    for batch in batches(backup.pieces()):
        # Whoever has taken over may be done by now, and gateways at work.
        await schema_version.demand_restoring(store, turn)
        await whole.write(batch)
    _compare(backup.tally, await whole.count())
    await schema_version.end_restoring(store, backup.header.schema, turn)


def _compare(wanted: Tally, found: Counter[Sort]) -> None:
    """See that what was written is there: a failover may have taken some of it away.

    Of what expires, some has by now.
    """
    for sort in (Sort.DOCUMENT, Sort.CLIENT, Sort.ACCOUNT):
        if found[sort] != wanted.counts[sort.value]:
            raise BackupRefused(
                f"Redis holds {found[sort]} of {wanted.counts[sort.value]} {sort.value}s that were"
                " written: did it fail over, or does a gateway still run on it? Restore again."
            )
