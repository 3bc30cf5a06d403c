"""Takes the census: a paced walk over all documents, by one process of all at a time.

Responsible for whose turn it is, for the pages and the pauses between them, and for the result in
Redis, which every process shows. On its way the walk enters hostnames in their lists that are not
there: of documents of a release that had no lists, or where somebody deleted one; behind it, the
lists are sifted of names without a document (`store.name_index`). A hundred thousand documents take
about a minute and never more of the event loop than one page; Redis gives a few thousand of them a
second, and answers others in between. No more than a few pages of names are kept in memory: a
hostname that Redis lists twice, as it may while its table of keys grows, is counted twice until the
next census. Whoever dies in the middle is followed by the next one when its turn has lapsed.
Must not: know what is counted; `census` does, nor what all fields of a document mean, which
`require_readable` judges. Called by `gateway.figures`.

To keep the figures with every change of a document was the alternative: each writer would have to
know them all, and one forgotten branch, or a key deleted by hand, would leave them wrong for ever.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import structlog

from gateway.certificates.census import COUNTED_FIELDS, Census, CensusUnreadable, Tally
from gateway.store import keys
from gateway.store.documents import READ_AT_ONCE, Unreadable, as_document

if TYPE_CHECKING:
    from collections.abc import Callable

    from gateway.contract.names import Hostname
    from gateway.store.clock import SharedClock
    from gateway.store.connection import Store
    from gateway.store.documents import Document, Documents
    from gateway.store.name_index import NameIndex

KEPT_MS: Final = 7 * 24 * 3_600_000
PAUSE_SECONDS: Final = 0.1
EXTEND_EVERY_PAGES: Final = 20
"""A page and its pause take a fifth of a second at worst: well within a turn of 15 seconds."""

LEAST_TURN_MS: Final = 15_000

ENTERED_AT_ONCE: Final = 5 * READ_AT_ONCE
"""How many hostnames are entered in their lists at once: a few for each bucket."""

_log = structlog.get_logger(__name__)


class KeptCensus:
    """The last census in Redis. Every method raises StoreUnavailable and StoreRefused."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._is_told_unreadable = False

    async def keep(self, census: Census) -> None:
        """Have every process show this one from now on."""
        await self._store.put(keys.CENSUS_KEY, census.to_text(), KEPT_MS)

    async def last(self) -> Census | None:
        """What was last counted, by whichever process; None where nothing was, lately."""
        (stored,) = await self._store.values([keys.CENSUS_KEY])
        if stored is None:
            return None
        try:
            return Census.from_text(stored)
        except CensusUnreadable:
            if not self._is_told_unreadable:
                _log.warning("the stored census is unreadable, the next one takes its place")
                self._is_told_unreadable = True
            return None


class Enumerator:
    """Counts all documents, `interval_seconds` after the last count by anybody ended at the least.

    `require_readable` raises `Unreadable` of a document that calls can't read. Every method raises
    StoreUnavailable and StoreRefused.
    """

    def __init__(
        self,
        store: Store,
        documents: Documents,
        names: NameIndex,
        clock: SharedClock,
        *,
        interval_seconds: int,
        require_readable: Callable[[Document], None],
    ) -> None:
        self._store = store
        self._documents = documents
        self._names = names
        self._kept = KeptCensus(store)
        self._clock = clock
        self._interval_ms = interval_seconds * 1000
        self._require_readable = require_readable
        self._pages = 0

    async def take_if_due(self) -> Census | None:
        """Count, if it is worth it by now and nobody else does: what was counted, else None."""
        if not await self._store.take_turn(keys.CENSUS_TURN_KEY, self._turn_ms):
            return None
        census = await self._walk()
        await self._kept.keep(census)
        await self._store.put(keys.CENSUS_TURN_KEY, "1", self._interval_ms)
        _log.debug("census taken", documents=census.documents, ms=census.took_ms)
        return census

    async def last(self) -> Census | None:
        """As `KeptCensus.last`."""
        return await self._kept.last()

    @property
    def _turn_ms(self) -> int:
        return max(self._interval_ms, LEAST_TURN_MS)

    async def _walk(self) -> Census:
        tally = Tally(self._clock.now_ms())
        self._pages = 0
        page: list[Hostname] = []
        listed: list[Hostname] = []
        async for hostname in self._documents.listed_hostnames():
            page.append(hostname)
            if len(page) == READ_AT_ONCE:
                await self._count(page, tally)
                listed += page
                page = []
                if len(listed) >= ENTERED_AT_ONCE:
                    await self._names.put_right(listed)
                    listed = []
                await self._rest()
        await self._count(page, tally)
        await self._names.put_right([*listed, *page])
        census = tally.census(self._clock.now_ms())
        await self._sift()
        return census

    async def _sift(self) -> None:
        judged = 0
        async for some in self._names.sift():
            judged += some
            if judged >= READ_AT_ONCE:
                judged = 0
                await self._rest()

    async def _rest(self) -> None:
        """Let others have Redis after a page, and keep the turn while there are more."""
        self._pages += 1
        if self._pages % EXTEND_EVERY_PAGES == 0:
            await self._store.put(keys.CENSUS_TURN_KEY, "1", self._turn_ms)
        await asyncio.sleep(PAUSE_SECONDS)

    async def _count(self, page: list[Hostname], tally: Tally) -> None:
        hosts = [keys.host_key(hostname) for hostname in page]
        each_found = await self._store.some_fields_of_each(hosts, COUNTED_FIELDS)
        for hostname, found in zip(page, each_found, strict=True):
            tally.add(hostname, None if found is None else self._read(hostname, found))

    def _read(self, hostname: Hostname, found: dict[str, str]) -> Document | None:
        try:
            document = as_document(hostname, found)
            self._require_readable(document)
        except Unreadable:
            return None
        return document
