"""Which ownerships met a conflict in this process, so that its end is told as well.

A record that is found as it should be is no entry of the audit trail; the first one after a
conflict is, or nobody could tell that what was in the way is gone. Bounded, and one process's own:
where another process met the conflict, this one tells nothing. Must not: ask anybody anything.
Called by `records`.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from gateway.dns.outcome import OutcomeKind
from gateway.holdings.record_answers import PUBLISHED

if TYPE_CHECKING:
    from gateway.dns.owner import Owner

REMEMBERED: Final = 10_000


class ConflictsMet:
    """The latest of them."""

    def __init__(self) -> None:
        self._owners: OrderedDict[Owner, None] = OrderedDict()

    def is_ended_by(self, owner: Owner, kind: OutcomeKind) -> bool:
        """Note what came of a call; whether a conflict that was met before is over with it."""
        if kind is OutcomeKind.CONFLICT:
            self._owners[owner] = None
            if len(self._owners) > REMEMBERED:
                self._owners.popitem(last=False)
            return False
        if not self._owners or kind not in PUBLISHED:
            return False
        had_met = owner in self._owners
        self._owners.pop(owner, None)
        return had_met
