"""What changes while a backup is read or written: clients that go and come, another restore."""

import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from gateway.backup.restoring import opened, restore
from gateway.backup.saving import save
from gateway.backup.sealed_file import Header
from gateway.certificates.sealing import Keyring
from gateway.store.connection import Store
from gateway.store.keys import (
    AUDIT_KEY,
    client_holdings_key,
    client_key,
    fingerprint,
    host_key,
)
from gateway.store.schema_version import StateRefused, settle
from gateway.store.whole import COMMANDS_AT_ONCE
from tests.integration.keeping.redises import connection, contents, seed

KEYRING = Keyring([("k1", bytes(32))])


def now_ms() -> int:
    return time.time_ns() // 1_000_000


class SeamedStore(Store):
    """Does something once, before or after documents are read."""

    before: Callable[[], None] | None = None
    after: Callable[[], None] | None = None

    async def answers_of_each(self, wanted: Sequence[tuple[str, Sequence[Any]]]) -> list[Any]:
        reads = any(commands[0][0] == "EVAL" for _, commands in wanted)
        if reads and self.before is not None:
            act, self.before = self.before, None
            act()
        answers = await super().answers_of_each(wanted)
        if reads and self.after is not None:
            act, self.after = self.after, None
            act()
        return answers


class OvertakenStore(Store):
    """Has something else done before the second batch is looked at."""

    def __init__(self, url: str, meanwhile: Callable[[], Awaitable[None]]) -> None:
        super().__init__(url)
        self.batches = 0
        self._meanwhile = meanwhile

    async def answers_of_each(self, wanted: Sequence[tuple[str, Sequence[Any]]]) -> list[Any]:
        answers = await super().answers_of_each(wanted)
        self.batches += 1
        if self.batches == 1:
            await self._meanwhile()
        return answers


@pytest.fixture
async def seamed(source: str) -> AsyncIterator[SeamedStore]:
    store = SeamedStore(source)
    yield store
    await store.close()


@pytest.fixture
async def kept(target: str) -> AsyncIterator[Store]:
    store = Store(target)
    yield store
    await store.close()


async def brought_over(seamed: Store, kept: Store, folder: Path) -> None:
    header = Header("b1", now_ms(), 1, "1.0")
    await save(seamed, KEYRING, folder / "backup", header, now_ms)
    with opened(folder / "backup", KEYRING) as backup:
        await restore(kept, backup, now_ms)


async def test_client_that_is_removed_meanwhile_holds_nothing_in_it(
    source: str, target: str, seamed: SeamedStore, kept: Store, tmp_path: Path
) -> None:
    """Its document was read while it was held still, itself a moment later."""
    (hostname,) = seed(source, 1)

    def remove() -> None:
        with connection(source) as client:
            mark = fingerprint("seeded")
            client.delete(host_key(hostname), client_holdings_key(mark), client_key(mark))
            client.srem("gw:clients", "seeded")

    seamed.after = remove
    await brought_over(seamed, kept, tmp_path)
    assert contents(target) == {}


async def test_client_that_is_made_meanwhile_is_there_with_what_it_holds(
    source: str, target: str, seamed: SeamedStore, kept: Store, tmp_path: Path
) -> None:
    """It was made after the names of all keys were read."""
    (hostname,) = seed(source, 1)
    mark = fingerprint("late")

    def hand_over() -> None:
        with connection(source) as client:
            stored = {"version": "w", "client": json.dumps({"clientId": "late"})}
            client.hset(client_key(mark), mapping=stored)
            client.sadd("gw:clients", "late")
            holder = json.dumps({"clientId": "late", "appId": "a"})
            client.hset(host_key(hostname), mapping={"version": "w", "holder": holder})

    seamed.before = hand_over
    await brought_over(seamed, kept, tmp_path)
    found = contents(target)
    assert found[client_key(mark)]["version"] == "w"
    assert found["gw:clients"] == {"late", "seeded"}
    # Its index did not have the hostname yet, and must.
    assert found[client_holdings_key(mark)].keys() == {hostname}


async def test_restore_that_was_overtaken_writes_nothing_over_a_state_at_work(
    source: str, target: str, seamed: Store, kept: Store, tmp_path: Path
) -> None:
    """It was stopped for a while: the same file was restored by another run, gateways started."""
    hostname = sorted(seed(source, 1_500))[-1]
    await save(seamed, KEYRING, tmp_path / "backup", Header("b1", now_ms(), 1, "1.0"), now_ms)

    async def meanwhile() -> None:
        with opened(tmp_path / "backup", KEYRING) as backup:
            await restore(kept, backup, now_ms)
        await settle(kept, now_ms)
        with connection(target) as client:
            client.hset(host_key(hostname), "fence", "77")

    overtaken = OvertakenStore(target, meanwhile)
    try:
        with (
            opened(tmp_path / "backup", KEYRING) as backup,
            pytest.raises(StateRefused, match="Another `gateway restore` has begun"),
        ):
            await restore(overtaken, backup, now_ms)
    finally:
        await overtaken.close()
    assert overtaken.batches == 1
    assert contents(target)[host_key(hostname)]["fence"] == "77"
    with connection(target) as client:
        assert client.hget("gw:schema", "schema") == "1"


async def test_large_stream_is_restored_in_small_exchanges(
    source: str, target: str, seamed: Store, tmp_path: Path
) -> None:
    with connection(source) as client:
        pipeline = client.pipeline(transaction=False)
        for number in range(5_000):
            pipeline.xadd(AUDIT_KEY, {"id": str(number), "entry": "{}"})
        pipeline.execute()
    await save(seamed, KEYRING, tmp_path / "backup", Header("b1", now_ms(), 1, "1.0"), now_ms)
    sizes: list[int] = []

    class Counting(Store):
        async def answers_of_each(self, wanted: Sequence[tuple[str, Sequence[Any]]]) -> list[Any]:
            sizes.append(sum(len(commands) for _, commands in wanted))
            return await super().answers_of_each(wanted)

    counting = Counting(target)
    try:
        with opened(tmp_path / "backup", KEYRING) as backup:
            await restore(counting, backup, now_ms)
    finally:
        await counting.close()
    assert sum(sizes) > 5_000
    assert max(sizes) <= COMMANDS_AT_ONCE
    assert contents(target) == contents(source)
