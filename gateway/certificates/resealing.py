"""Moves everything that depends on a key of the keyring to its first key, while gateways run.

Sealed are the private keys of certificates and issuances, and the keys of ACME accounts. Made with
the same keys are the owner markers in the zones: a record is nobody's once the key of its marker
has left the keyring. Each thing moves by one compare-and-swap of its own, so a run may be cut off
anywhere and begun again, beside any number of gateways and other runs.

At the end everything is looked at once more: what has come under an old key meanwhile was sealed by
a process that still has that key first. Called by `gateway reseal`, which says what came of it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final, Protocol

from gateway.certificates import keyring_proof
from gateway.certificates.accounts import PURPOSE, SEALED_FIELDS, RedisAccountStore
from gateway.certificates.sealing import SealBroken, key_id_of
from gateway.certificates.seals import (
    Found,
    Thing,
    look_at_document,
    look_at_value,
    move_document,
)
from gateway.store import keys
from gateway.store.documents import Contended, Unreadable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from gateway.certificates.sealing import Keyring
    from gateway.contract.names import Hostname
    from gateway.store.connection import Store
    from gateway.store.documents import Change, Document, Documents

READ_AT_ONCE: Final = 100
AT_ONCE: Final = 16
"""Documents in work at a time: more do not make a zone's server faster."""

BUSY_LOOK_SECONDS: Final = 0.5
BUSY_BOUND_SECONDS: Final = 180.0

_ACCOUNTS: Final = "ACME accounts"


class Marks(Protocol):
    """The owner markers in the zones, of the records that documents hold."""

    async def look(self, document: Document) -> Found:
        """The markers there are; changes nothing."""

    async def move(self, document: Document) -> Found:
        """Give the record the first key's marker; answers the markers of other keys it had."""


class Stage(StrEnum):
    """What a run is at."""

    LOOKING = "looking"
    MOVING = "moving"
    CHECKING = "checking"


@dataclass
class Report:
    """How far a run has come, in hostnames of the present stage, and what came of it.

    `counts` is what was moved, by the key that it depended on; when only looking, what there is.
    `late` is what was under an old key only when everything was looked at again.
    """

    stage: Stage = Stage.MOVING
    done: int = 0
    total: int = 0
    counts: Counter[tuple[Thing, str]] = field(default_factory=Counter)
    late: Counter[tuple[Thing, str]] = field(default_factory=Counter)
    unopened: set[str] = field(default_factory=set)
    failures: dict[str, tuple[str, ...]] = field(default_factory=dict)
    is_finished: bool = False

    @property
    def is_complete(self) -> bool:
        """Whether nothing depends on another key any more, as far as this run can tell."""
        return self.is_finished and not self.failures and not self.late


class AccountSeals:
    """The keys of all ACME accounts in Redis; `directories` are the URLs that are configured.

    An account's key is bound to its directory's URL, of which Redis has the fingerprint only: what
    belongs to no configured directory can be counted and not be moved.
    """

    def __init__(self, store: Store, keyring: Keyring, directories: Iterable[str]) -> None:
        self._store = store
        self._keyring = keyring
        self._directories = {keys.account_key(url): url for url in directories}

    async def look(self) -> Found:
        """What there is; changes nothing. Raises `StoreUnavailable`."""
        found = Found()
        for key in {key async for key in self._store.keys_like(keys.ACCOUNT_KEYS)}:
            found += await self._look_at(key)
        return found

    async def move(self) -> Found:
        """Move all to the first key; answers what depended on others. Raises `StoreUnavailable`."""
        found = (await self.look()).not_under(self._keyring.key_ids[0])
        if found.things:
            for url in self._directories.values():
                # What does not open was found and is told already.
                with contextlib.suppress(SealBroken):
                    await RedisAccountStore(self._store, self._keyring, url).reseal()
        return found

    async def _look_at(self, key: str) -> Found:
        fields, url = await self._store.fields(key), self._directories.get(key)
        found = Found()
        for sealed in (fields[name] for name in SEALED_FIELDS if name in fields):
            if url is None:
                found += self._of_nobody(key, key_id_of(sealed))
                continue
            what = f"the key of the account at {url}"
            found += look_at_value(
                sealed, self._keyring, PURPOSE, (url,), thing=Thing.ACCOUNT_KEY, what=what
            )
        return found

    def _of_nobody(self, key: str, key_id: str) -> Found:
        if key_id == self._keyring.key_ids[0]:
            return Found(things=((Thing.ACCOUNT_KEY, key_id),))
        text = (
            f"{key} in Redis, the account at a directory that is not configured, is sealed under "
            f"{key_id}: configure the directory, or delete the account from Redis"
        )
        return Found(failures=(text,))


class Resealing:
    """One run. `told` is called whenever `report` says something new; `now_ms` is the clock."""

    def __init__(
        self,
        store: Store,
        documents: Documents,
        keyring: Keyring,
        accounts: AccountSeals,
        marks: Marks,
        *,
        now_ms: Callable[[], int],
        told: Callable[[Report], None],
    ) -> None:
        self.report = Report()
        self._store = store
        self._documents = documents
        self._keyring = keyring
        self._accounts = accounts
        self._marks = marks
        self._now_ms = now_ms
        self._told = told
        self._failed_before: frozenset[str] = frozenset()

    async def look(self) -> None:
        """Count what depends on which key; changes nothing. Raises `StoreUnavailable`."""
        await self._sweep(Stage.LOOKING, self._look_at)
        self._take(_ACCOUNTS, await self._accounts.look())
        self.report.is_finished = True

    async def run(self) -> None:
        """Move everything and look again; may be cut off anywhere, and repeated.

        Raises:
            StoreUnavailable: what was moved until then stays moved.
        """
        await keyring_proof.begin_moving(self._keyring, self._store)
        await self._move_all(Stage.MOVING)
        self._failed_before = frozenset(self.report.failures)
        self.report.failures = {}
        await self._move_all(Stage.CHECKING)
        if not self.report.failures and not self.report.late:
            await keyring_proof.end_moving(self._keyring, self._store)
        self.report.is_finished = True

    async def _move_all(self, stage: Stage) -> None:
        await self._wait_for(await self._sweep(stage, self._move))
        self._take(_ACCOUNTS, await self._accounts.move())

    async def _sweep(
        self, stage: Stage, visit: Callable[[Document], Awaitable[Found]]
    ) -> list[Hostname]:
        """Visit every document; returns those that a worker has."""
        hostnames = [hostname async for hostname in self._documents.all_hostnames()]
        self.report.stage, self.report.done, self.report.total = stage, 0, len(hostnames)
        self._told(self.report)
        busy: list[Hostname] = []
        for start in range(0, len(hostnames), READ_AT_ONCE):
            busy += await self._visit(hostnames[start : start + READ_AT_ONCE], visit)
        return busy

    async def _visit(
        self, hostnames: list[Hostname], visit: Callable[[Document], Awaitable[Found]]
    ) -> list[Hostname]:
        places = asyncio.Semaphore(AT_ONCE)
        busy = []

        async def visit_one(document: Document | Unreadable) -> None:
            async with places:
                found = await _visited(document, visit)
            if found.is_busy:
                busy.append(document.hostname)
            self._take(document.hostname, found)
            self.report.done += 1
            self._told(self.report)

        documents = await self._documents.read_many(hostnames)
        tasks = [asyncio.create_task(visit_one(document)) for document in documents]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        return busy

    async def _wait_for(self, busy: list[Hostname]) -> None:
        """Come back to documents that a worker had, until it has given them up."""
        loop = asyncio.get_running_loop()
        end = loop.time() + BUSY_BOUND_SECONDS
        while busy and loop.time() < end:
            await asyncio.sleep(BUSY_LOOK_SECONDS)
            self.report.done -= len(busy)
            busy = await self._visit(busy, self._move)
        for hostname in busy:
            text = f"{hostname}: a worker has had its issuance for {BUSY_BOUND_SECONDS:.0f} s"
            self._take(hostname, Found(failures=(text,)))

    async def _look_at(self, document: Document) -> Found:
        return look_at_document(document, self._keyring) + await self._marks.look(document)

    async def _move(self, document: Document) -> Found:
        found = Found()

        def decide(current: Document) -> Change | None:
            nonlocal found
            change, found = move_document(current, self._keyring, self._now_ms())
            return change

        # Most documents need nothing, and that one is known without another read.
        if decide(document) is not None:
            try:
                await self._documents.change(document.hostname, decide)
            except Contended as fault:
                found = Found(failures=(str(fault),))
        return found + await self._marks.move(document)

    def _take(self, subject: str, found: Found) -> None:
        report = self.report
        report.counts.update(found.things)
        if report.stage is Stage.CHECKING and subject not in self._failed_before:
            report.late.update(found.things)
        report.unopened.update(found.unopened)
        if found.failures:
            report.failures[subject] = found.failures


async def _visited(
    document: Document | Unreadable, visit: Callable[[Document], Awaitable[Found]]
) -> Found:
    """What a visit finds; a document that cannot be read is a failure, and the next one's turn."""
    try:
        if isinstance(document, Unreadable):
            raise document
        return await visit(document)
    except Unreadable as fault:
        return Found(failures=(str(fault),))
