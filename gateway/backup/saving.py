"""Saving: everything that Redis holds into one sealed file, while gateways run.

Each document is read in one atomic step, with its place in the due queue, and so is each client and
account; different keys at different moments of the run. What belongs together across keys is made
to agree: a client that holds one of the documents is in the backup, and all indices are made anew
from the documents by whoever restores. A record that is changed meanwhile is in it as before or as
after the change; what the zone says decides when it is next asked for.

Called by `gateway backup`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gateway.backup.contents import Tally, client_of, line_of, without_lease
from gateway.backup.sealed_file import BackupRefused, SealedWriter
from gateway.store import keys
from gateway.store.whole import READ_AT_ONCE, KeyUnknown, Sort, Whole

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from gateway.backup.sealed_file import Header
    from gateway.certificates.sealing import Keyring
    from gateway.store.connection import Store
    from gateway.store.whole import Piece


async def save(
    store: Store, keyring: Keyring, path: Path, header: Header, now_ms: Callable[[], int]
) -> Tally:
    """Write a backup to `path`, in place of a file that is there; answers what it holds.

    Raises:
        BackupRefused: the file can't be written, or Redis holds what is no gateway's.
        StoreUnavailable: Redis went away, or a primary was replaced. In each case nothing is left
            of this run, and a former file stays as it was.
    """
    try:
        with SealedWriter(path, header, keyring) as writer:
            saving = _Saving(Whole(store, now_ms), writer, now_ms)
            await saving.run()
            writer.finish()
    except OSError as fault:
        raise BackupRefused(f"{path} can't be written: {fault.strerror}.") from fault
    except KeyUnknown as fault:
        raise BackupRefused(f"{fault}.") from fault
    return saving.tally


class _Saving:
    def __init__(self, whole: Whole, writer: SealedWriter, now_ms: Callable[[], int]) -> None:
        self.tally = Tally()
        self._whole = whole
        self._writer = writer
        self._now_ms = now_ms
        self._saved_clients: set[str] = set()

    async def run(self) -> None:
        names = await self._whole.names()
        for some in _by_pages(sorted(names[Sort.DOCUMENT])):
            await self._save_documents(some)
        left = [key for key in names[Sort.CLIENT] if key not in self._saved_clients]
        for some in _by_pages(sorted(left)):
            self._keep(await self._whole.hashes(some))
        # `gw:schema` is not one of them: the header says it.
        sorts = (Sort.ACCOUNT, Sort.FIGURE, Sort.TRAIL, Sort.OTHER)
        others = [keys.KEYRING_KEY, *(key for sort in sorts for key in names[sort])]
        async for piece in self._whole.others(sorted(others)):
            self._keep([piece])
        self._writer.write(self.tally.line())

    async def _save_documents(self, document_keys: Sequence[str]) -> None:
        documents = await self._whole.documents(document_keys)
        absent = await self._save_holders(documents)
        if absent:
            # A client is removed only when it holds nothing any more: these have been released. (Or
            # they are the gateway's own, which is no client.)
            kept = [each for each in documents if client_of(each) not in absent]
            again = [each.key for each in documents if client_of(each) in absent]
            found = await self._whole.documents(again)
            await self._save_holders(found)
            documents = [*kept, *found]
        self._keep(
            [without_lease(each, self._now_ms()) for each in await self._with_entries(documents)]
        )

    async def _with_entries(self, documents: Sequence[Piece]) -> list[Piece]:
        """The documents, each that a client holds with its place in the client's index.

        One that was not entered yet when it was looked for, or not any more, is as if it was now.
        """
        holders = {
            each.key: holder
            for each in documents
            if (holder := client_of(each)) and _client_key(holder) in self._saved_clients
        }
        holdings = [(holder, keys.hostname_in(key)) for key, holder in holders.items()]
        found = await self._whole.entered(holdings)
        now = str(self._now_ms())
        entered = {key: place or now for key, place in zip(holders, found, strict=True)}
        return [replace(each, entered=entered.get(each.key)) for each in documents]

    async def _save_holders(self, documents: Sequence[Piece]) -> set[str]:
        """Save the clients that hold these, unless they are; answers the ids of those gone."""
        holders = {holder for each in documents if (holder := client_of(each))}
        by_key = {_client_key(holder): holder for holder in holders}
        clients = await self._whole.hashes(sorted(by_key.keys() - self._saved_clients))
        self._saved_clients.update(each.key for each in clients)
        self._keep(clients)
        return {client_id for key, client_id in by_key.items() if key not in self._saved_clients}

    def _keep(self, pieces: Sequence[Piece]) -> None:
        for piece in pieces:
            self.tally.add(piece)
            self._writer.write(line_of(piece))


def _client_key(client_id: str) -> str:
    return keys.client_key(keys.fingerprint(client_id))


def _by_pages(names: Sequence[str]) -> list[Sequence[str]]:
    return [names[start : start + READ_AT_ONCE] for start in range(0, len(names), READ_AT_ONCE)]
