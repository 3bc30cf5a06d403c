"""What the tests of this folder ask a ledger for, on a clock of their own.

So no test waits for an hour or a week; Redis's expiry runs by Redis's clock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import redis

from gateway.certificates.budget import Renewal
from gateway.certificates.ledger import Granted, Held, Ledger
from gateway.contract.names import ClientId, Hostname

if TYPE_CHECKING:
    from tests.lab.redis import RedisProcess

NOW_MS = 1_796_119_200_000
"""2026-12-01T10:00:00Z."""

HOSTNAME = Hostname("relay.a.example.com")
OTHER = Hostname("relay.b.example.com")
BLUE, GREEN = ClientId("blue"), ClientId("green")


class Clock:
    def __init__(self) -> None:
        self.now_ms = NOW_MS

    def __call__(self) -> int:
        return self.now_ms


class Clients:
    """How many clients there are, and how often that was asked."""

    def __init__(self) -> None:
        self.count = 1
        self.asked = 0

    async def __call__(self) -> int:
        self.asked += 1
        return self.count


class Watched:
    """The ledgers' keys in Redis, seen past the gateway's own code."""

    def __init__(self, server: RedisProcess) -> None:
        self._connection = redis.Redis.from_url(server.url, decode_responses=True)

    def keys(self) -> set[str]:
        return set(self._connection.scan_iter(match="gw:{a*"))

    def milliseconds_left(self, key: str) -> int:
        return int(self._connection.pttl(key))

    def put(self, key: str, value: object) -> None:
        """Put what no ledger writes under a key: a string or bytes, or None for a hash."""
        self._connection.delete(key)
        if value is None:
            self._connection.hset(key, "field", "value")
        else:
            assert isinstance(value, str | bytes)
            self._connection.set(key, value)

    def delete(self, keys: set[str]) -> None:
        self._connection.delete(*keys)

    def close(self) -> None:
        self._connection.close()


async def new(ledger: Ledger, hostname: Hostname = HOSTNAME, client: ClientId = BLUE) -> bool:
    return isinstance(await ledger.spend(hostname, client, renewal=Renewal.NEW), Granted)


async def held(
    ledger: Ledger, hostname: Hostname = HOSTNAME, renewal: Renewal = Renewal.NEW
) -> Held:
    answer = await ledger.spend(hostname, BLUE, renewal=renewal)
    assert isinstance(answer, Held)
    return answer
