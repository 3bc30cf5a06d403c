"""A ledger on the session's Redis, for an account that no other test uses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gateway.certificates.budget import Budget
from gateway.certificates.ledger import Ledger
from gateway.store.connection import Store
from tests.integration.ledger.asking import Clients, Clock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from tests.lab.redis import RedisProcess


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def clients() -> Clients:
    return Clients()


@pytest.fixture
async def store(redis_server: RedisProcess) -> AsyncIterator[Store]:
    opened = Store(redis_server.url)
    yield opened
    await opened.close()


@pytest.fixture
async def store_elsewhere(redis_server: RedisProcess) -> AsyncIterator[Store]:
    """The same Redis, as another process has it."""
    opened = Store(redis_server.url)
    yield opened
    await opened.close()


@pytest.fixture
def directory_url(fresh_label: str) -> str:
    """A directory that no other test's ledger is for."""
    return f"https://{fresh_label}.example/directory"


@pytest.fixture
def ledger_on(clock: Clock, clients: Clients, directory_url: str) -> Callable[..., Ledger]:
    """Makes ledgers of this test's account, each as another process would have it."""

    def make(store: Store, budget: Budget | None = None) -> Ledger:
        return Ledger(
            store,
            directory_url,
            budget or Budget(),
            name="ca.example",
            count_clients=clients,
            now_ms=clock,
        )

    return make


@pytest.fixture
def ledger(store: Store, ledger_on: Callable[..., Ledger]) -> Ledger:
    return ledger_on(store)
