"""What a lease means: how long one holds, and whether the one at hand still does.

A lease keeps others from a hostname only as long as it lasts. A process that was stopped, or whose
calls waited long for others, goes on in the middle of a call when another one has long taken
over. So whatever changes something outside asks here, at the last moment before it does: `check`
raises when the lease has lapsed by the clock that all share. The guard is a context variable, so
that a layer in between need not know of it.

Called by `leaseholder`, which sets the guard, and by whatever sends requests.
"""

from __future__ import annotations

import contextlib
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gateway.store.clock import SharedClock
    from gateway.store.documents import Lease

LEASE_MS: Final = 12_000
"""How long a dead worker's hostnames wait for another. Renewed while a step runs."""

LONGEST_AHEAD_MS: Final = LEASE_MS + 1_000
"""No lease ends later than this from now; one that does is from before the clock was set back."""

MARGIN_MS: Final = 1_000
"""How long before its lease ends a process lets nothing more go out: for the way to the server,
and for what the clocks differ by."""

RENEW_EVERY_MS: Final = LEASE_MS // 3
GRACE_MS: Final = 3_000
GRACE_AFTER_JUMP_MS: Final = 2 * RENEW_EVERY_MS
JUMP_MS: Final = 1_000
"""A clock that moves by more, beyond the errors of measuring it, was set."""


class LeaseLost(Exception):
    """The hostname is another worker's now, or its issuance was released."""


class LeaseOver(LeaseLost):
    """The lease ran out before this could be done; another worker may be at it already."""


_guard: ContextVar[Callable[[], None] | None] = ContextVar("lease_guard", default=None)


def check() -> None:
    """Ask, right before something is changed outside, whether the lease at hand still holds.

    Does nothing where there is none: for an operator's command, or a question about health.

    Raises:
        LeaseOver: it has lapsed; nothing is to be sent.
    """
    guard = _guard.get()
    if guard is not None:
        guard()


@contextlib.contextmanager
def guarded_by(guard: Callable[[], None]) -> Iterator[None]:
    """Have `check` call `guard` within the block, and in the tasks that are created there."""
    token = _guard.set(guard)
    try:
        yield
    finally:
        _guard.reset(token)


def has_lapsed(lease: Lease, now_ms: int) -> bool:
    """Whether a lease keeps nobody away any more at `now_ms` (epoch milliseconds)."""
    return not now_ms < lease.until_ms <= now_ms + LONGEST_AHEAD_MS


class Grace:
    """The time for which lapsed leases of others are left alone all the same.

    A lease also lapses while Redis is away, and then its owner is alive and may have in its hands
    what nobody else knows: an order that the CA has just answered. It stores that within a second
    of Redis's return, if nobody is faster. Until the first contact a process cannot know of that.
    Nor does a lease mean anything just after Redis's clock was set: its owner has to notice first.
    """

    def __init__(self, clock: SharedClock) -> None:
        self._clock = clock
        self._is_away = True
        self._ends_steady_ms = 0
        self._ahead_ms: int | None = None

    def note_outage(self) -> None:
        """Redis did not answer: the grace begins with its return."""
        self._is_away = True

    def note_contact(self) -> None:
        """Redis answered."""
        if self._is_away:
            self._is_away = False
            self._begin(GRACE_MS)

    def is_over(self) -> bool:
        """Whether a lapsed lease is free for anybody now."""
        steady_ms = self._clock.steady_ms()
        ahead_ms = self._clock.now_ms() - steady_ms
        if self._ahead_ms is not None and abs(ahead_ms - self._ahead_ms) > JUMP_MS:
            self._begin(GRACE_AFTER_JUMP_MS)
        self._ahead_ms = ahead_ms
        return not self._is_away and steady_ms >= self._ends_steady_ms

    def _begin(self, length_ms: int) -> None:
        self._ends_steady_ms = max(self._ends_steady_ms, self._clock.steady_ms() + length_ms)
