"""One caller that comes again: errand after errand, one at a time, and the median of each kind.

Unlike the callers of `load` it remembers over rounds what it has changed, so rounds may take turns.
Called by `growth`, `cluster`.
"""

import asyncio
import statistics
import time
from collections.abc import Sequence

from tests.bench.lanes import Ground, Lane
from tests.bench.tally import Tally


class Visitor:
    """A lane with an event loop of its own, until it is closed.

    It calls for every `every`th holding only: for as many of a large stock as of a small one, so
    that both remember alike what was handed out to whom.
    """

    def __init__(self, ground: Ground, *, every: int = 1) -> None:
        self.seen = Tally()
        self._runner = asyncio.Runner()
        self._lane = Lane(ground, 0, every, "visitor")

    def close(self) -> None:
        """Close both."""
        self._lane.close()
        self._runner.close()

    def medians_ms(self, errands: Sequence[str], seconds: float) -> dict[str, float]:
        """Run all errands in turns, for that long; the median of each kind of call."""
        self._lane.tally = tally = Tally()
        self._runner.run(self._call(errands, time.monotonic() + seconds))
        self.seen.add(tally)
        return {kind: statistics.median(took) * 1000 for kind, took in tally.seconds.items()}

    def faults(self) -> list[str]:
        """What was not answered as it should be."""
        if not self.seen.all_failed:
            return []
        return [f"{self.seen.all_failed} calls failed: {self.seen.failures[0]}"]

    async def _call(self, errands: Sequence[str], end: float) -> None:
        while True:
            for errand in errands:
                await self._lane.errands[errand]()
            if time.monotonic() >= end:
                break
        # Until its next turn the gateway would have closed a connection that nobody uses.
        self._lane.close()
