"""The gate before the gateway: closed while no call can work, and tried by one caller at a time.

Responsible for the decisions of `contact`: who may call now, and how long the others wait. Pure:
the time and randomness come in. Must not: make a call.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from gateway.agent.clocks import SECOND_MS
from gateway.agent.rounds import backoff_ms

if TYPE_CHECKING:
    from gateway.agent.rounds import Fault

_WHILE_TRIED_MS: Final = 5 * SECOND_MS
"""How long those wait that come while another one tries; a gate that opens wakes them."""


@dataclass(frozen=True, slots=True)
class Gate:
    """Open while there is no `fault`. Closed, it lets one caller try at `try_at_ms` (steady)."""

    fault: Fault | None = None
    try_at_ms: int = 0
    failures: int = 0
    is_tried: bool = False

    def wait_ms(self, steady_ms: int) -> int:
        """0 for who may call now; else how long to wait before asking here again."""
        if self.fault is None:
            return 0
        if self.is_tried:
            return _WHILE_TRIED_MS
        return max(self.try_at_ms - steady_ms, 0)

    def entered(self) -> Gate:
        """The gate once somebody has begun a call."""
        return self if self.fault is None else replace(self, is_tried=True)

    def left(self) -> Gate:
        """The gate after a call that was given up, of which nobody knows what came."""
        return replace(self, is_tried=False)

    def shut(
        self,
        fault: Fault,
        steady_ms: int,
        jitter: float,
        *,
        least_ms: int,
        first_ms: int,
    ) -> Gate:
        """The gate after a call that no other call would fare better than."""
        if self.fault is not None and not self.is_tried:
            # Several were under way when the first of them shut it: that is one failure.
            return self
        failures = self.failures + 1
        pause_ms = max(backoff_ms(failures, jitter, first_ms=first_ms), least_ms)
        return Gate(fault, steady_ms + pause_ms, failures)
