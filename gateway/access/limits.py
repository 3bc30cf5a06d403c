"""How many calls a client may make: counted in Redis, for all processes and credentials together.

Responsible for taking a call of the client's rate, once its token was found right, and for the wait
of whoever has none left. Must not: judge a token, or count what was refused for one (`http.flood`
does). Called by `access.gate`, and for how much is used by the operator's page.

A rate is kept under the hash tag of its client, and is forgotten once it is whole: a client that
rests leaves nothing behind. A Redis that lost it begins anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gateway import measures
from gateway.access.clients import CLIENT_FIELD
from gateway.access.gcra import MINUTE_US, Rate, in_ms
from gateway.contract import Overloaded
from gateway.store import keys
from gateway.store.connection import As

if TYPE_CHECKING:
    from collections.abc import Callable

    from gateway.contract.names import ClientId
    from gateway.store.connection import Store


class RateUse(NamedTuple):
    """How many calls of those that a client may make in a minute are used; 0 is no limit."""

    used: int
    per_minute: int


class ClientSwapped(Exception):
    """A client is not as it was when it was seen last."""


class Seen(NamedTuple):
    """A client as Redis had it, and its rate: what there is to know of it before the next call."""

    stored: As
    calls_key: str
    per_minute: int
    interval_us: int


class CallRates:
    """The rates of all clients. `per_minute_of` says how many calls one has; 0 is no limit."""

    def __init__(
        self,
        store: Store,
        per_minute_of: Callable[[ClientId], int],
        now_ms: Callable[[], int],
    ) -> None:
        self._store = store
        self._per_minute_of = per_minute_of
        self._now_ms = now_ms

    async def take(self, client_id: ClientId) -> Overloaded | None:
        """Take one call of a client; where there is none left, the refusal that says until when.

        Raises:
            StoreUnavailable: nobody can tell.
        """
        per_minute = self._per_minute_of(client_id)
        if per_minute == 0:
            return None
        rate = Rate(per_minute, MINUTE_US)
        key = keys.client_calls_key(keys.fingerprint(client_id))
        now_us = self._now_ms() * 1_000
        wait_us = await self._store.take_call(key, now_us, rate.interval_us, rate.count)
        return _refusal(wait_us, per_minute)

    async def take_if(self, seen: Seen, now_ms: int) -> Overloaded | None:
        """The same of a client that was seen before, if it is the same: known and counted at once.

        `now_ms` is the time, epoch milliseconds.

        Raises:
            ClientSwapped: it is not the same any more; none was taken.
            StoreUnavailable: nobody can tell.
        """
        wait_us = await self._store.take_call(
            seen.calls_key, now_ms * 1_000, seen.interval_us, seen.per_minute, seen.stored
        )
        if wait_us < 0:
            raise ClientSwapped
        return None if wait_us == 0 else _refusal(wait_us, seen.per_minute)

    def seen(self, client_id: ClientId, text: str) -> Seen:
        """A client of which Redis had this text, for `take_if`."""
        per_minute, mark = self._per_minute_of(client_id), keys.fingerprint(client_id)
        return Seen(
            As(keys.client_key(mark), CLIENT_FIELD, text),
            keys.client_calls_key(mark),
            per_minute,
            Rate(max(per_minute, 1), MINUTE_US).interval_us,
        )

    async def use_of(self, client_id: ClientId) -> RateUse:
        """How much of its rate a client has used by now; takes none of it.

        Raises:
            StoreUnavailable: nobody can tell.
        """
        per_minute = self._per_minute_of(client_id)
        if per_minute == 0:
            return RateUse(0, 0)
        rate = Rate(per_minute, MINUTE_US)
        key = keys.client_calls_key(keys.fingerprint(client_id))
        (stored,) = await self._store.values([key])
        return RateUse(rate.used(_microseconds(stored), self._now_ms() * 1_000), per_minute)


def _refusal(wait_us: int, per_minute: int) -> Overloaded | None:
    if wait_us == 0:
        return None
    measures.limit_reached("rate")
    text = f"The client has made as many calls as it may ({per_minute} in a minute)."
    return Overloaded(in_ms(wait_us), text)


def _microseconds(stored: str | None) -> int:
    """A stored moment; what is no number counts as absent, as for the script that takes a call."""
    try:
        return int(stored or 0)
    except ValueError:
        return 0
