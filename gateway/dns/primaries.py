"""Several primaries for one zone: whom to ask first, and going on to the next one.

All primaries of a zone answer for the same data at any time (as servers on one database do), so
what one cannot tell another can, and a question asked of one may be repeated to the next. One that
was not heard of lately is asked last, so a dead one costs its time limit now and then and not with
every call.

For a change, `settle` moves from one to the next itself: it must read again before it sends again.
Called by all of `dns` that asks a zone's primary.
"""

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from gateway.dns.errors import (
    DnsFault,
    NoReply,
    OutcomeUnknown,
    ReplyInvalid,
    ServerFailed,
    ServerRefused,
    TsigRejected,
    Unreachable,
)
from gateway.dns.exchange import Exchange
from gateway.dns.zones import Zone

_Answer = TypeVar("_Answer")

SERVERS_OWN: Final = (
    Unreachable,
    NoReply,
    ReplyInvalid,
    ServerFailed,
    ServerRefused,
    TsigRejected,
    OutcomeUnknown,
)
"""Faults of one server, which another may not have; what the zone holds is none of them."""


def in_turn(exchange: Exchange, zone: Zone) -> list[Zone]:
    """The zone at each of its primaries, those that were silent lately last."""
    if not zone.standbys:
        return [zone]
    return sorted(zone.at_each_primary(), key=lambda at: exchange.is_silent(at.primary))


class Turns:
    """A walk over a zone's primaries as they are `in_turn`, round and round.

    `zone` is the zone at the primary whose turn it is.
    """

    def __init__(self, exchange: Exchange, zone: Zone) -> None:
        self._at = in_turn(exchange, zone)
        self._turn = 0
        self._faults: list[DnsFault] = []

    def __len__(self) -> int:
        return len(self._at)

    @property
    def zone(self) -> Zone:
        """Where to ask now; it has no standbys."""
        return self._at[self._turn]

    def move_on(self) -> None:
        """It is the next one's turn, though nothing is known to be wrong with this one."""
        self._turn = (self._turn + 1) % len(self._at)

    def pass_on(self, fault: DnsFault) -> None:
        """It is the next one's turn, for what went wrong at this one.

        Raises: the round's first fault, with the words of all, when each had its turn.
        """
        self._faults.append(fault)
        self.move_on()
        if len(self._faults) == len(self._at):
            first = self._faults[0]
            first.detail = " ".join(dict.fromkeys(fault.detail for fault in self._faults))
            self._faults = []
            raise first

    async def ask(self, ask: Callable[[Zone], Awaitable[_Answer]]) -> _Answer:
        """What `ask` answers at the first primary without a fault of its own; repeatable only.

        Raises: what `ask` raises, and as `pass_on` does.
        """
        while True:
            try:
                return await ask(self.zone)
            except SERVERS_OWN as fault:
                self.pass_on(fault)


def at_a_primary(
    exchange: Exchange, zone: Zone, ask: Callable[[Zone], Awaitable[_Answer]]
) -> Awaitable[_Answer]:
    """One question, as `Turns.ask` has it."""
    return Turns(exchange, zone).ask(ask) if zone.standbys else ask(zone)
