"""What a process notes beside its work: its deeds in the audit trail, and the use of credentials.

Responsible for opening both with the settings, and for how long their end may take. A rehearsal
keeps neither. Called by `gateway.wiring`.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, NamedTuple

from gateway.access.last_use import LastUses
from gateway.actors import operator, this_process
from gateway.store.trail import NO_TRAIL, Trail, open_trail

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from gateway.config import Settings
    from gateway.store.connection import Store

COMMAND_PATIENCE: Final = 5.0
STOP_PATIENCE: Final = 1.0
"""How many seconds a command, or a process that stops, waits to have its deeds written."""

USES_PATIENCE: Final = 0.5
"""How many seconds either waits to have the use of credentials written."""


class Notes(NamedTuple):
    """Where deeds and uses are noted."""

    trail: Trail
    last_uses: LastUses


@asynccontextmanager
async def open_notes(
    settings: Settings,
    store: Store,
    *,
    is_command: bool,
    rehearses: bool,
    now_ms: Callable[[], int],
    new_id: Callable[[], str],
) -> AsyncIterator[Notes]:
    """The notes of one process, written until the end."""
    last_uses = LastUses(store, now_ms)
    if rehearses:
        yield Notes(NO_TRAIL, last_uses)
        return
    trail = open_trail(
        store,
        operator() if is_command else this_process(),
        entries=settings.audit.entries,
        patience_seconds=COMMAND_PATIENCE if is_command else STOP_PATIENCE,
        now_ms=now_ms,
        new_id=new_id,
    )
    async with trail as opened, last_uses.writing(USES_PATIENCE):
        yield Notes(opened, last_uses)
