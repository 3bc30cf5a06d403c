"""What Redis holds of a ledger, how long, and what an operator is shown of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway.certificates.budget import HOUR_MS, WEEK_MS, Limit, Renewal
from gateway.certificates.ledger import (
    HeldBy,
    Ledger,
)
from gateway.store.connection import Store
from tests.integration.ledger.asking import (
    BLUE,
    HOSTNAME,
    NOW_MS,
    OTHER,
    Clients,
    Watched,
    held,
    new,
)
from tests.lab.process import wait_until
from tests.lab.redis_cluster import start_redis_cluster

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.lab.redis import RedisProcess


async def test_state_tells_every_figure_and_hold(ledger: Ledger, clients: Clients) -> None:
    clients.count = 2
    assert await new(ledger)
    await ledger.record_failed_validation(OTHER)
    await ledger.hold(HOSTNAME, NOW_MS + HOUR_MS, "later", ca_words="")
    await ledger.suspend(NOW_MS + HOUR_MS, "gone")
    state = await ledger.state()
    assert {(use.limit, use.subject, use.client_id, use.used, use.of) for use in state.uses} == {
        (Limit.ORDERS, "", "", 1, 300),
        (Limit.CLIENT_ORDERS, "", "blue", 1, 150),
        (Limit.DOMAIN, "example.com", "", 1, 50),
        (Limit.CLIENT_DOMAIN, "example.com", "blue", 1, 25),
        (Limit.HOSTNAME, HOSTNAME, "", 1, 5),
        (Limit.FAILED_VALIDATIONS, OTHER, "", 1, 5),
    }
    (host,) = (use for use in state.uses if use.limit is Limit.HOSTNAME)
    assert (host.next_free_ms, host.unused_ms) == (NOW_MS, NOW_MS + WEEK_MS // 5)
    assert {(hold.by, hold.subject, hold.hostname, hold.detail) for hold in state.holds} == {
        (HeldBy.AUTHORITY, "", HOSTNAME, "later"),
        (HeldBy.SUSPENDED, "", "", "gone"),
    }


async def test_state_of_an_unused_ledger_tells_the_orders(ledger: Ledger) -> None:
    (use,) = (await ledger.state()).uses
    assert (use.limit, use.used, use.of, use.next_free_ms) == (Limit.ORDERS, 0, 300, NOW_MS)


async def test_figures_end_when_they_are_unused_and_share_one_slot(
    redis_server: RedisProcess, ledger: Ledger
) -> None:
    seen = Watched(redis_server)
    before = seen.keys()
    assert await new(ledger)
    await ledger.hold(HOSTNAME, NOW_MS + HOUR_MS, "later", ca_words="")
    made = {key: seen.milliseconds_left(key) for key in seen.keys() - before}
    assert len(made) == 7
    assert len({key.partition("}")[0] for key in made}) == 1
    lifetimes = {
        "orders": 3 * HOUR_MS // 300,
        "orders-of:/blue": 3 * HOUR_MS // 150,
        "domain:example.com": WEEK_MS // 50,
        "domain-of:example.com/blue": WEEK_MS // 25,
        f"host:{HOSTNAME}": WEEK_MS // 5,
        "hold-account": HOUR_MS,
        "ledger": WEEK_MS // 5,
    }
    for key, left_ms in made.items():
        lifetime_ms = lifetimes.pop(key.partition("}:")[2])
        assert lifetime_ms - 30_000 < left_ms <= lifetime_ms
    seen.close()


async def test_hold_is_gone_from_redis_after_its_time(
    redis_server: RedisProcess, ledger: Ledger
) -> None:
    seen = Watched(redis_server)
    before = seen.keys()
    await ledger.hold(HOSTNAME, NOW_MS + 200, "later", ca_words="")
    wait_until(lambda: not seen.keys() - before, "the hold and its index are gone")
    assert await new(ledger)
    seen.close()


async def test_emptied_redis_is_an_empty_ledger(redis_server: RedisProcess, ledger: Ledger) -> None:
    seen = Watched(redis_server)
    before = seen.keys()
    for _ in range(5):
        assert await new(ledger)
    await held(ledger)
    seen.delete(seen.keys() - before)
    assert await new(ledger)
    seen.close()


async def test_ledger_works_on_a_cluster(
    tmp_path: Path, ledger_on: Callable[..., Ledger], clients: Clients
) -> None:
    clients.count = 2
    cluster = start_redis_cluster(tmp_path)
    try:
        store = Store(cluster.url)
        ledger = ledger_on(store)
        for _ in range(5):
            assert await new(ledger)
        await held(ledger)
        await ledger.give_back(HOSTNAME, BLUE, renewal=Renewal.NEW)
        await ledger.record_failed_validation(HOSTNAME)
        await ledger.hold(OTHER, NOW_MS + HOUR_MS, "later", ca_words="")
        assert (await held(ledger)).by is HeldBy.AUTHORITY
        state = await ledger.state()
        assert (len(state.uses), len(state.holds)) == (6, 1)
        await store.close()
    finally:
        cluster.stop()
