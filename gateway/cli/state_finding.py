"""Whether this release can work with what Redis holds, for `gateway check`: else no start."""

from __future__ import annotations

from gateway.cli.finding import Finding, State
from gateway.store.connection import Store
from gateway.store.schema_version import StateRefused, examine


async def state_finding(url: str) -> Finding | None:
    """What keeps every gateway of this release from starting; None when nothing does.

    Raises `StoreUnavailable` and `StoreRefused`.
    """
    store = Store(url)
    try:
        await examine(store)
    except StateRefused as refused:
        return Finding("redis", State.FAILED, str(refused))
    finally:
        await store.close()
    return None
