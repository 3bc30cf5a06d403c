"""Many spend at once, or Redis goes away meanwhile: nothing is granted twice."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from gateway.certificates.budget import HOUR_MS, Budget
from gateway.contract.names import Hostname
from gateway.store.connection import Store, StoreUnavailable, Swap
from gateway.store.documents import Contended
from tests.integration.ledger import spender
from tests.integration.ledger.asking import (
    NOW_MS,
    OTHER,
    held,
    new,
)
from tests.lab.redis import start_redis

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from gateway.certificates.ledger import (
        Ledger,
    )
    from tests.lab.redis import RedisProcess


def test_two_processes_at_once_grant_what_there_is_and_no_more(
    redis_server: RedisProcess, directory_url: str
) -> None:
    command = [sys.executable, "-m", spender.__name__, redis_server.url, directory_url]
    command += [str(NOW_MS), str(spender.ORDERS - 10)]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    printed = [process.communicate(timeout=60)[0] for process in processes]
    assert sum(int(text) for text in printed) == spender.ORDERS


async def test_tasks_of_two_ledgers_at_once_grant_what_there_is_and_no_more(
    store: Store, ledger_on: Callable[..., Ledger]
) -> None:
    one, two = (ledger_on(store, Budget(20, 0, 0, 0)) for _ in range(2))
    names = [Hostname(f"n{each}.example.com") for each in range(15)]
    answers = await asyncio.gather(*(new(each, name) for each in (one, two) for name in names))
    assert sum(answers) == 20


async def test_last_one_goes_to_the_process_that_was_first(
    redis_server: RedisProcess, store_elsewhere: Store, ledger_on: Callable[..., Ledger]
) -> None:
    class Overtaken(Store):
        """Lets another process spend between what was read and what is committed, once."""

        rival: Ledger | None = None

        async def compare_and_set(self, index_key: str, swaps: Sequence[Swap], now_ms: int) -> bool:
            rival, self.rival = self.rival, None
            if rival is not None:
                assert await new(rival, OTHER)
            return await super().compare_and_set(index_key, swaps, now_ms)

    store = Overtaken(redis_server.url)
    store.rival = ledger_on(store_elsewhere, Budget(1, 0, 0, 0))
    answer = await held(ledger_on(store, Budget(1, 0, 0, 0)))
    assert answer.until_ms == NOW_MS + 3 * HOUR_MS
    await store.close()


async def test_race_that_never_ends_is_given_up(
    redis_server: RedisProcess, ledger_on: Callable[..., Ledger]
) -> None:
    class AlwaysBeaten(Store):
        """Stands for rivals without end, which no real Redis can be made to show."""

        async def compare_and_set(self, index_key: str, swaps: Sequence[Swap], now_ms: int) -> bool:
            del index_key, swaps, now_ms
            return False

    store = AlwaysBeaten(redis_server.url)
    with pytest.raises(Contended, match=r"ca\.example"):
        await new(ledger_on(store))
    await store.close()


async def test_all_who_queue_learn_of_a_lost_redis_from_the_first(
    tmp_path: Path, ledger_on: Callable[..., Ledger]
) -> None:
    class Counted(Store):
        asked = 0

        async def values(self, keys: Sequence[str]) -> list[str | None]:
            self.asked += 1
            return await super().values(keys)

    server = start_redis(tmp_path)
    store = Counted(server.url)
    ledger = ledger_on(store)
    assert await new(ledger)
    server.kill()
    answers = await asyncio.gather(*(new(ledger) for _ in range(20)), return_exceptions=True)
    assert {type(answer) for answer in answers} == {StoreUnavailable}
    assert store.asked == 2
    server.start()
    assert await new(ledger)
    await store.close()
    server.stop()
