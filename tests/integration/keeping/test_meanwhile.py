"""What changes while a backup is read: clients that go and come with what they hold."""

import json
import time
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from gateway.backup.restoring import opened, restore
from gateway.backup.saving import save
from gateway.backup.sealed_file import Header
from gateway.certificates.sealing import Keyring
from gateway.store.connection import Store
from gateway.store.keys import client_holdings_key, client_key, fingerprint, host_key
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
