"""Looks after the figures that have to be read: the census, budgets, the queue.

Responsible for reading them on a beat, so that a scrape finds them in memory, and for a turn at the
census whenever one is due. A Redis that is away leaves them as they were; that it is away, other
figures say. Must not: show anything. Called by `gateway.generation`, for each set of parts.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import structlog

from gateway import measures
from gateway.certificates.census_figures import FIGURES
from gateway.certificates.enumerator import Enumerator
from gateway.certificates.ledger import HeldBy
from gateway.holdings.remembered import require_readable
from gateway.store.connection import StoreRefused, StoreUnavailable
from gateway.store.name_index import NameIndex

if TYPE_CHECKING:
    from gateway.config import Settings
    from gateway.wiring import Gateway

READ_EVERY_SECONDS: Final = 5.0

_log = structlog.get_logger(__name__)


async def look_after(gateway: Gateway, settings: Settings) -> None:
    """Read the figures until cancelled, and count all hostnames when that is due."""
    measures.known_ahead(
        (zone.name for zone in gateway.zones.all),
        (each.authority.name for each in gateway.authorities),
    )
    enumerator = Enumerator(
        gateway.store,
        gateway.documents,
        NameIndex(gateway.store),
        gateway.clock,
        interval_seconds=settings.metrics.census_seconds,
        require_readable=require_readable,
    )
    beat = min(READ_EVERY_SECONDS, settings.metrics.census_seconds)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(_count(gateway, enumerator, beat))
        tasks.create_task(_read(gateway, enumerator, beat))


async def _count(gateway: Gateway, enumerator: Enumerator, beat_seconds: float) -> None:
    while True:
        try:
            census = await enumerator.take_if_due()
            if census is not None:
                FIGURES.tell(census, gateway.clock.now_ms)
        except StoreUnavailable:
            pass  # the next process, or this one later
        except StoreRefused as refused:
            _log.warning("no census can be taken", error=str(refused))
        except Exception:  # noqa: BLE001 (a figure is not worth the process)
            _log.exception("census broke")
        await asyncio.sleep(beat_seconds)


async def _read(gateway: Gateway, enumerator: Enumerator, beat_seconds: float) -> None:
    while True:
        try:
            FIGURES.tell(await enumerator.last(), gateway.clock.now_ms)
            await _read_queue(gateway)
            await _read_budgets(gateway)
        except StoreUnavailable:
            pass  # they stay as they were
        except StoreRefused as refused:
            _log.warning("figures cannot be read", error=str(refused))
        except Exception:  # noqa: BLE001 (as above)
            _log.exception("figures broke")
        await asyncio.sleep(beat_seconds)


async def _read_queue(gateway: Gateway) -> None:
    now_ms = gateway.clock.now_ms()
    first_due_ms = await gateway.documents.first_due_ms(now_ms)
    late_ms = 0 if first_due_ms is None else max(0, now_ms - first_due_ms)
    measures.queue_seen(late_ms / 1000)


async def _read_budgets(gateway: Gateway) -> None:
    budgets, held = [], []
    for each in gateway.authorities:
        name = each.ledger.name
        state = await each.ledger.state(of_account=True)
        budgets += [(name, use.limit.value, use.of - use.used, use.of) for use in state.uses]
        by = {hold.by for hold in state.holds}
        held.append((name, "authority", HeldBy.AUTHORITY in by))
        held.append((name, "suspended", HeldBy.SUSPENDED in by))
    measures.budgets_seen(budgets)
    measures.orders_held(held)
