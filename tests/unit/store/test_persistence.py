from dataclasses import replace

import pytest

from gateway.store.persistence import Loss, Persistence, losses

DURABLE = Persistence(
    version="7.0.15",
    appends=True,
    append_sync="always",
    has_snapshots=False,
    last_write_failed=False,
    max_memory_bytes=0,
    eviction_policy="noeviction",
)


@pytest.mark.parametrize(
    ("persistence", "loss"),
    [
        (DURABLE, Loss.NOTHING),
        (replace(DURABLE, append_sync="everysec"), Loss.LAST_SECONDS),
        (replace(DURABLE, append_sync="no"), Loss.LAST_SECONDS),
        (replace(DURABLE, append_sync=None), Loss.UNKNOWN),
        (replace(DURABLE, appends=False, has_snapshots=True), Loss.SINCE_SNAPSHOT),
        (replace(DURABLE, appends=False, has_snapshots=False), Loss.EVERYTHING),
        (replace(DURABLE, appends=False, has_snapshots=None), Loss.UNKNOWN),
        (replace(DURABLE, last_write_failed=True), Loss.NOT_WRITTEN),
        (replace(DURABLE, max_memory_bytes=1, eviction_policy="allkeys-lru"), Loss.EVICTED),
        (replace(DURABLE, max_memory_bytes=1), Loss.NOTHING),
        (replace(DURABLE, eviction_policy="allkeys-lru"), Loss.NOTHING),
    ],
)
def test_loss_follows_from_what_redis_tells(persistence: Persistence, loss: Loss) -> None:
    assert losses(persistence) == [loss]


def test_losses_are_told_together() -> None:
    worst = replace(
        DURABLE,
        appends=False,
        last_write_failed=True,
        max_memory_bytes=1,
        eviction_policy="volatile-ttl",
    )
    assert losses(worst) == [Loss.NOT_WRITTEN, Loss.EVICTED, Loss.EVERYTHING]
