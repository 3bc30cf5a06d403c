"""What a ledger needs of its store, in memory and by a simulated clock.

A fake, since no Redis can be told that a year has passed: it forgets by the machine's own clock. It
has no other process, so no race is ever lost. Called by `simulation`.
"""

from collections.abc import Callable, Sequence

from gateway.store.connection import Swap


class ClockedStore:
    """Values with their ends, by key; `now_ms` is the simulated clock."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._kept: dict[str, tuple[str, int]] = {}

    async def values(self, keys: Sequence[str]) -> list[str | None]:
        """The values under these keys; None where there is none, or none any more."""
        now_ms = self._now_ms()
        found = (self._kept.get(key) for key in keys)
        return [None if kept is None or kept[1] <= now_ms else kept[0] for kept in found]

    async def compare_and_set(self, index_key: str, swaps: Sequence[Swap], now_ms: int) -> bool:
        """Change all of these values, or none if one is not as expected."""
        del index_key
        read = await self.values([swap.key for swap in swaps])
        if any((there or "") != swap.expected for there, swap in zip(read, swaps, strict=True)):
            return False
        for swap in swaps:
            if swap.value:
                self._kept[swap.key] = (swap.value, now_ms + swap.lifetime_ms)
            else:
                self._kept.pop(swap.key, None)
        return True

    def forget(self) -> None:
        """Drop what is over, as Redis does by itself."""
        now_ms = self._now_ms()
        self._kept = {key: kept for key, kept in self._kept.items() if kept[1] > now_ms}
