"""Writing the audit trail, and beside it what is asked for often: the notable, and days' counts.

Responsible for the one script that does all of it at once, so that an entry is once in each of
them: entries are numbered by their writer, and Redis knows an hour long how far each writer has
come. A batch whose answer was lost is sent again, and comes to nothing where it was taken. What is
beside the trail never holds up the trail: where Redis does not take it, it is missing there. What a
failover forgets, it forgets of all of them alike: they lie in one slot.

The counts could be made from the trail when they are asked for, which would read all of it each
time, and only as far as it reaches. Must not: wait, or decide what is told. Called by
`store.trail`.
"""

from __future__ import annotations

from datetime import UTC, datetime
from importlib import resources
from typing import TYPE_CHECKING, Final, NamedTuple

from gateway.store import keys
from gateway.store.notable import Apart, counted_as, kept_apart

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gateway.store.connection import Store
    from gateway.store.deeds import Entry

BESIDE_BOUND: Final = 1_000
"""About how many entries each stream beside the trail keeps."""

DAYS_KEPT: Final = 100

_DAY_MS: Final = 86_400_000
_KNOWN_MS: Final = 3_600_000
_STREAMS: Final = {Apart.NOTABLE: keys.NOTABLE_KEY, Apart.CONFLICT: keys.CONFLICTS_KEY}
_SCRIPT: Final = (
    resources.files("gateway.store").joinpath("lua", "append_entries.lua").read_text("utf-8")
)


class Numbered(NamedTuple):
    """An entry with the number that its writer gave it: higher with each."""

    number: int
    entry: Entry


class TrailWriter:
    """One writer of the trail, as one of any number. `writer_id` is its alone.

    `bound` is about how many entries the trail keeps; `key` is where it lies, in the slot of what
    is beside it.
    """

    def __init__(
        self, store: Store, writer_id: str, *, bound: int, key: str = keys.AUDIT_KEY
    ) -> None:
        self._store = store
        self._key = key
        self._writer_key = keys.audit_writer_key(writer_id)
        self._bound = bound

    async def append(self, entries: Sequence[Numbered]) -> None:
        """Append entries in this order; repeatable, with others behind them. Awaits no replica.

        Raises:
            StoreUnavailable: some or all may have been appended.
            StoreRefused: Redis's user may not, or something else lies there.
        """
        days = sorted({day_of(entry.at_ms) for _, entry in entries})
        of_days = [keys.audit_day_key(day) for day in days]
        all_keys = [self._key, self._writer_key, *_STREAMS.values(), *of_days]
        arguments: list[str | int] = [
            *(self._bound, BESIDE_BOUND),
            *(_KNOWN_MS, DAYS_KEPT * _DAY_MS),
        ]
        for number, entry in entries:
            apart, counted = kept_apart(entry.actor, entry.deed), counted_as(entry.deed)
            arguments += (number, entry.entry_id, entry.to_text())
            arguments.append("" if apart is None else 1 + all_keys.index(_STREAMS[apart]))
            if counted is None:
                arguments += ("", "")
            else:
                day = keys.audit_day_key(day_of(entry.at_ms))
                arguments += (1 + all_keys.index(day), counted.value)
        command = ("EVAL", _SCRIPT, len(all_keys), *all_keys, *arguments)
        await self._store.answers_of_each([(self._key, [command])])


def day_of(at_ms: int) -> str:
    """The date (ISO 8601, UTC) of a time in epoch milliseconds."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).date().isoformat()
