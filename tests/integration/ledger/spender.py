"""A process of its own that spends from a ledger: `python -m … REDIS_URL DIRECTORY NOW_MS TIMES`.

Spends `TIMES` orders at once for hostnames of its own, under a budget of 50 orders, and prints how
many were granted. Started by `test_races`.
"""

import asyncio
import os
import sys

from gateway.certificates.budget import Budget, Renewal
from gateway.certificates.ledger import Granted, Ledger
from gateway.contract.names import ClientId, Hostname
from gateway.store.connection import Store

ORDERS = 50
BUDGET = Budget(ORDERS, 0, 0, 0)


async def only_client() -> int:
    return 1


async def spend(redis_url: str, directory_url: str, now_ms: int, times: int) -> int:
    store = Store(redis_url)
    ledger = Ledger(
        store,
        directory_url,
        BUDGET,
        name="ca",
        count_clients=only_client,
        now_ms=lambda: now_ms,
    )
    hostnames = [Hostname(f"n{each}.p{os.getpid()}.example.com") for each in range(times)]
    answers = await asyncio.gather(
        *(ledger.spend(name, ClientId("blue"), renewal=Renewal.NEW) for name in hostnames)
    )
    await store.close()
    return sum(isinstance(answer, Granted) for answer in answers)


if __name__ == "__main__":
    url, directory, clock, count = sys.argv[1:]
    sys.stdout.write(str(asyncio.run(spend(url, directory, int(clock), int(count)))))
