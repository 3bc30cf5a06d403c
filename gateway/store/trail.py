"""The audit trail: deeds noted without waiting, written to a bounded Redis stream by one task.

Responsible for: never holding up or failing whoever notes something; keeping entries while Redis is
away, a bounded number; counting and telling those that are lost, in the log and in the trail
itself; and writing refusals that repeat once in a while only, so that a client in a loop does not
push everything else out of the trail. Must not: know what the deeds mean.

An entry is lost when its process is killed before it was written (a moment), when more than
`QUEUE_BOUND` wait for Redis (half as many of what is told once), or when Redis loses it: writes
here wait for no replica.

Built by `wiring`; noted in by every layer above; read by `gateway audit`.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import OrderedDict, deque
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeVar

import structlog

from gateway import measures
from gateway.ending import end
from gateway.store.deeds import Action, Actor, Deed, Entry, acting
from gateway.store.faults import StoreRefused, StoreUnavailable
from gateway.store.keys import AUDIT_KEY
from gateway.store.stream import Claim, Stream
from gateway.store.trail_writing import Numbered, TrailWriter
from gateway.underway import underway

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from gateway.store.connection import Store

QUEUE_BOUND: Final = 10_000
WRITTEN_AT_ONCE: Final = 100
RETRY_SECONDS: Final = 1.0

REPEATED_AFTER_MS: Final = 600_000
MOST_REFUSALS: Final = 60
"""How many refusals of one actor are told in `REPEATED_AFTER_MS`, whatever they are: a stolen
token must not be good for pushing the theft out of the trail."""

_REMEMBERED: Final = 16_384
_TOLD_EVERY_MS: Final = 60_000

_log = structlog.get_logger(__name__)


class Once(NamedTuple):
    """A deed that is told the first time only, by a key of its own in Redis, which ends."""

    key: str
    lifetime_ms: int


class Trail(Protocol):
    """Where deeds are noted."""

    def note(self, deed: Deed) -> None:
        """Note a deed of whoever acts in this context. Never waits, never raises."""

    def note_once(self, once: Once, deed: Callable[[], Deed]) -> None:
        """The same of a deed that is told the first time only: mostly none is made."""


class NoTrail:
    """Forgets every deed: for rehearsals, and where the trail is switched off."""

    def note(self, deed: Deed) -> None:
        """Forget it."""

    def note_once(self, once: Once, deed: Callable[[], Deed]) -> None:
        """Forget it."""


NO_TRAIL: Final = NoTrail()


@asynccontextmanager
async def open_trail(
    store: Store,
    process: Actor,
    *,
    entries: int,
    patience_seconds: float,
    now_ms: Callable[[], int],
    new_id: Callable[[], str],
) -> AsyncIterator[Trail]:
    """The trail of a process, of about so many entries; with 0 it forgets every deed.

    `patience_seconds`: how long its end may wait for what is not written yet.
    """
    if entries == 0:
        yield NO_TRAIL
        return
    writer = TrailWriter(store, new_id(), bound=entries)
    trail = WrittenTrail(writer, Stream(store, AUDIT_KEY), process, now_ms=now_ms, new_id=new_id)
    async with trail.writing(patience_seconds):
        yield trail


class Repeats:
    """Which refusals are told, and which are only counted. Pure but for its own bounded memory."""

    def __init__(self) -> None:
        self._same: OrderedDict[tuple[object, ...], _Count] = OrderedDict()
        self._of_actor: OrderedDict[Actor, _Count] = OrderedDict()

    def judge(self, actor: Actor, deed: Deed, now_ms: int) -> int | None:
        """How many were held back since the last one that was told; None to hold this one back.

        Held back is what the same actor was refused lately in the same way, and all beyond
        `MOST_REFUSALS` of one actor.
        """
        key = (actor, deed.action, deed.outcome, deed.hostname, deed.client_id, deed.after)
        same = _count(self._same, key, now_ms)
        if same.told:
            same.held_back += 1
            return None
        of_actor = _count(self._of_actor, actor, now_ms)
        if of_actor.told >= MOST_REFUSALS:
            of_actor.held_back += 1
            return None
        same.told, of_actor.told = 1, of_actor.told + 1
        held_back = same.held_back + of_actor.held_back
        same.held_back = of_actor.held_back = 0
        return held_back


@dataclass(slots=True)
class _Count:
    """What was told since a time, and what was held back since the last one that was told."""

    since_ms: int
    told: int = 0
    held_back: int = 0


_Key = TypeVar("_Key")


def _count(counts: OrderedDict[_Key, _Count], key: _Key, now_ms: int) -> _Count:
    """The count of this key, begun anew when its time has passed; the oldest one is forgotten."""
    count = counts.pop(key, None)
    if count is None:
        count = _Count(now_ms)
    elif not 0 <= now_ms - count.since_ms < REPEATED_AFTER_MS:
        count = _Count(now_ms, held_back=count.held_back)
    counts[key] = count
    if len(counts) > _REMEMBERED:
        counts.popitem(last=False)
    return count


class _Waiting(NamedTuple):
    """An entry on its way to Redis. `lost` is how many it tells of that were lost before it."""

    numbered: Numbered
    once: Once | None
    lost: int = 0


class WrittenTrail:
    """The trail of one process, as one of any number on one stream.

    `process` is who acts where nobody else does.
    """

    def __init__(
        self,
        writer: TrailWriter,
        stream: Stream,
        process: Actor,
        *,
        now_ms: Callable[[], int],
        new_id: Callable[[], str],
    ) -> None:
        self._writer = writer
        self._stream = stream
        self._process = process
        self._now_ms = now_ms
        self._new_id = new_id
        self._numbers = itertools.count(1)
        self._queue: deque[_Waiting] = deque()
        self._repeats = Repeats()
        self._told_once: OrderedDict[str, None] = OrderedDict()
        self._lost = 0
        self._complained_at_ms = -_TOLD_EVERY_MS
        self._is_closing = False
        self._has_work = asyncio.Event()

    def note(self, deed: Deed) -> None:
        """Note a deed of whoever acts in this context. Never waits, never raises."""
        repeated: int | None = 0
        if not deed.changed:
            repeated = self._repeats.judge(acting() or self._process, deed, self._now_ms())
        if repeated is not None:
            self._queue_up(deed, None, repeated)

    def note_once(self, once: Once, deed: Callable[[], Deed]) -> None:
        """The same of a deed that is told the first time only: mostly none is made."""
        if not self._was_told(once):
            self._queue_up(deed(), once, 0)

    def _queue_up(self, deed: Deed, once: Once | None, repeated: int) -> None:
        # Hand-outs come in thousands; changes find room behind them.
        if len(self._queue) >= (QUEUE_BOUND if once is None else QUEUE_BOUND // 2):
            self._lost += 1
            measures.audit_lost(1)
            self._complain("audit entries are lost: too many wait for Redis", lost=self._lost)
            return
        actor = acting() or self._process
        call = underway()
        entry = Entry(
            self._new_id(),
            self._now_ms(),
            actor,
            deed,
            remote=actor.remote if call is None else call.remote,
            request_id=None if call is None else call.request_id,
            repeated=repeated,
        )
        self._queue.append(_Waiting(Numbered(next(self._numbers), entry), once))
        self._has_work.set()

    @asynccontextmanager
    async def writing(self, patience_seconds: float) -> AsyncIterator[None]:
        """Write what is noted; at the end what is left, as far as patience goes."""
        task = asyncio.create_task(self._write_on(), name="audit")
        try:
            yield
        finally:
            self._is_closing = True
            self._has_work.set()
            await asyncio.wait({task}, timeout=patience_seconds)
            await end(task)
            if self._queue or self._lost:
                self._drop(list(self._queue))
                lost = self._lost
                _log.error("audit entries lost: Redis did not take them", lost=lost)

    async def _write_on(self) -> None:
        while True:
            await self._has_work.wait()
            self._has_work.clear()
            while self._queue:
                try:
                    await self._write_some()
                except (StoreUnavailable, StoreRefused) as fault:
                    if self._is_closing:
                        return
                    waiting = len(self._queue)
                    self._complain("audit entries wait", waiting=waiting, error=str(fault))
                    await asyncio.sleep(RETRY_SECONDS)
                except Exception:  # noqa: BLE001 (a fault of one entry must not end the trail)
                    _log.exception("audit entries broke")
                    self._drop(self._batch())
            if self._is_closing:
                return

    async def _write_some(self) -> None:
        """Write the first entries of the queue; they leave it once Redis has them."""
        if self._lost and len(self._queue) <= WRITTEN_AT_ONCE:
            self._queue.append(self._of_lost())
        batch = self._batch()
        told = await self._first_of(batch)
        if told:
            await self._writer.append(told)
            measures.audit_written(len(told))
        for _ in batch:
            self._queue.popleft()

    def _of_lost(self) -> _Waiting:
        """That entries were lost: behind all that waited meanwhile, and told once as they are."""
        lost, self._lost = self._lost, 0
        deed = Deed(Action.ENTRIES_LOST, "lost", detail=f"{lost} entries, before this one")
        entry = Entry(self._new_id(), self._now_ms(), self._process, deed)
        return _Waiting(Numbered(next(self._numbers), entry), None, lost)

    def _batch(self) -> list[_Waiting]:
        return list(itertools.islice(self._queue, WRITTEN_AT_ONCE))

    def _drop(self, batch: Sequence[_Waiting]) -> None:
        """Give up the first entries of the queue."""
        for _ in batch:
            self._queue.popleft()
        measures.audit_lost(sum(not each.lost for each in batch))
        self._lost += sum(each.lost or 1 for each in batch)

    async def _first_of(self, batch: Sequence[_Waiting]) -> list[Numbered]:
        """Those that are told: of what is told once, what nobody has told before."""
        claims = [
            Claim(each.once.key, each.numbered.entry.entry_id, each.once.lifetime_ms)
            for each in batch
            if each.once is not None
        ]
        are_first = iter(await self._stream.claim(claims) if claims else ())
        return [each.numbered for each in batch if each.once is None or next(are_first)]

    def _was_told(self, once: Once) -> bool:
        """Whether this process has noted it before; a key that is new is remembered."""
        was_told = once.key in self._told_once
        self._told_once[once.key] = None
        self._told_once.move_to_end(once.key)
        if len(self._told_once) > _REMEMBERED:
            self._told_once.popitem(last=False)
        return was_told

    def _complain(self, event: str, **said: object) -> None:
        """Warn, at most once a minute."""
        now_ms = self._now_ms()
        if now_ms - self._complained_at_ms >= _TOLD_EVERY_MS:
            self._complained_at_ms = now_ms
            _log.warning(event, **said)
