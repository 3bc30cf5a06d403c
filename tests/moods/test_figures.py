"""What a CA in a bad mood costs of the account's figures: no more than it counts itself."""

import time
from collections import Counter
from pathlib import Path

import pytest

from gateway.certificates.budget import Budget, Limit
from gateway.certificates.ledger import Ledger
from gateway.store.connection import Store
from tests.integration.service.calling import Ownership
from tests.lab.acme_calls import Operation
from tests.lab.acme_moods import Drop, Mood, Refuse
from tests.lab.bind import BindPair
from tests.moods.moodlab import MoodLab, mood_lab

BUDGET = Budget(certificates_per_hostname_per_week=2)
FIGURES = {
    name: getattr(BUDGET, name)
    for name in (
        "orders_per_3_hours",
        "certificates_per_domain_per_week",
        "certificates_per_hostname_per_week",
    )
}
REFUSALS = 4
"""The hostname's figure has no room for so many tries if each is charged to it."""


async def used(lab: MoodLab, mine: Ownership) -> dict[Limit, int]:
    """How far the figures of the account, of all domains and of the hostname are used."""
    store = Store(lab.redis.url)
    ledger = Ledger(
        store,
        lab.proxy.directory_url,
        BUDGET,
        name="ca",
        count_clients=_one_client,
        now_ms=lambda: time.time_ns() // 10**6,
    )
    try:
        uses = (await ledger.state()).uses
    finally:
        await store.close()
    counts: Counter[Limit] = Counter()
    for use in uses:
        if use.limit is not Limit.HOSTNAME or use.subject == mine.hostname:
            counts[use.limit] += use.used
    return {limit: counts[limit] for limit in (Limit.ORDERS, Limit.DOMAIN, Limit.HOSTNAME)}


async def _one_client() -> int:
    return 1


@pytest.mark.parametrize(
    ("mood", "orders"),
    [
        # Where no answer comes, the CA may have the order. Each is asked for twice at once.
        pytest.param(Drop(), 1 + REFUSALS // 2, id="its answers are lost"),
        pytest.param(Refuse(503, "serverInternal", "maintenance"), 1, id="it is broken"),
        pytest.param(Refuse(503, "serverInternal", "maintenance", "2"), 1, id="it says when"),
    ],
)
async def test_name_that_is_asked_for_again_and_again_is_charged_as_often_as_the_ca_counts_it(
    tmp_path: Path, bind: BindPair, mood: Mood, orders: int
) -> None:
    with mood_lab(tmp_path, bind, budget=FIGURES) as lab:
        lab.issued(lab.world.ownership())
        mine = lab.world.ownership()
        rule = lab.on(mine, Operation.NEW_ORDER, mood, times=REFUSALS)
        lab.issued(mine)
        assert len(rule.hits) >= REFUSALS
        assert await used(lab, mine) == {
            Limit.ORDERS: 1 + orders,
            Limit.DOMAIN: 2,
            Limit.HOSTNAME: 1,
        }


async def test_name_that_waits_for_its_turn_keeps_nothing_that_was_granted(
    tmp_path: Path, bind: BindPair
) -> None:
    words = "too many new orders (300) from this account in the last 3h0m0s"
    with mood_lab(tmp_path, bind, budget=FIGURES) as lab:
        each = [lab.world.ownership() for _ in range(4)]
        lab.on(each[0], Operation.NEW_ORDER, Refuse(429, "rateLimited", words, "600"))
        for mine in each:
            mine.settled()
        rests = all(lab.wait_for_state(mine.hostname, "waiting") for mine in each)
        assert rests
        assert await used(lab, each[0]) == dict.fromkeys(
            (Limit.ORDERS, Limit.DOMAIN, Limit.HOSTNAME), 0
        )
