"""The clock that all processes of one Redis share: Redis's own.

Leases, due times and the ledger are times that one process writes and another compares with now.
Machines differ by seconds, and by hours where one has lost its time; then a process whose clock is
ahead takes leases over that hold, and what it has leased itself waits for hours when it dies. So
`now_ms` is the time that Redis last told, and what has passed since then by a counter of this
process that no setting of the machine's clock moves.

Called by `wiring`, which gives `now_ms` to every part; told to look at Redis by the worker and by
the readiness probe.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from gateway import measures
from gateway.store.faults import StoreRefused

if TYPE_CHECKING:
    from collections.abc import Callable

    from gateway.store.connection import Store

_log = logging.getLogger(__name__)


class SharedClock:
    """Redis's time between two looks at it; this machine's until it could be asked.

    `local_now_ms` is the machine's clock (epoch milliseconds); `steady_ms` counts milliseconds in
    this process and is never set.
    """

    def __init__(
        self, store: Store, local_now_ms: Callable[[], int], steady_ms: Callable[[], int]
    ) -> None:
        self._store = store
        self._local_now_ms = local_now_ms
        self._ahead_ms: int | None = None
        self._is_refused = False
        self.steady_ms = steady_ms

    @property
    def is_set(self) -> bool:
        """Whether Redis was asked; before that, the time is this machine's."""
        return self._ahead_ms is not None or self._is_refused

    def now_ms(self) -> int:
        """The time: epoch milliseconds. May go back by what Redis's own clock does."""
        if self._ahead_ms is None:
            return self._local_now_ms()
        return self.steady_ms() + self._ahead_ms

    async def sync(self) -> None:
        """Ask Redis for its time.

        Where Redis's user may not ask (an ACL without `+time`), the machine's clock stays.

        Raises:
            StoreUnavailable: Redis cannot be reached; the clock goes on as it was.
        """
        began_ms = self.steady_ms()
        try:
            told_ms = await self._store.time_ms()
        except StoreRefused as refused:
            if not self._is_refused:
                _log.warning("%s (TIME): the clocks of all machines must agree", refused)
            self._is_refused = True
            return
        measures.clock_differs((told_ms - self._local_now_ms()) / 1000)
        # It was read somewhere on the way there and back.
        self._ahead_ms = told_ms - (began_ms + self.steady_ms()) // 2
