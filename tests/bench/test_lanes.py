"""A lane holds each answer of a real gateway against what it should be."""

import asyncio
import dataclasses
from collections.abc import Iterator

import pytest
from redis import Redis

from gateway.store import keys
from tests.bench.lanes import Ground, Lane
from tests.bench.soak import MIX, ground_of, loaded_gateway
from tests.bench.stock import Stock, client_id
from tests.bench.stocking import count_renewed, stock_up
from tests.bench.zones import published
from tests.lab.lab import Lab, LabOptions, running_lab
from tests.lab.process import wait_until

HOLDINGS = 12
RENEWALS = 2


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    """One of its own: what is stocked is in the zones' files before BIND reads them."""
    with running_lab(LabOptions(gateways=0)) as lab:
        yield lab


@pytest.fixture(scope="module")
def ground(lab: Lab) -> Iterator[Ground]:
    with loaded_gateway(lab) as (gateway, _):
        stocked = stock_up(lab, Stock(HOLDINGS), gateway.url, renewals=RENEWALS, within_seconds=0.1)
        yield ground_of(lab, gateway, stocked)


def run(ground: Ground, errands: tuple[str, ...]) -> Lane:
    async def all_of_them() -> Lane:
        lane = Lane(ground, number=1, lanes=3, seed="test")
        for errand in errands:
            await lane.errands[errand]()
        lane.close()
        return lane

    return asyncio.run(all_of_them())


def test_every_errand_of_the_mix_is_answered_as_it_should_be(ground: Ground) -> None:
    lane = run(ground, ("get next", *MIX, *MIX))
    assert (lane.tally.failures, lane.tally.all_failed) == ([], 0)
    assert lane.tally.calls > 2 * len(MIX)
    assert len(lane.tally.reissues) == 2


def test_an_answer_that_should_be_another_is_a_failure(ground: Ground) -> None:
    others = dataclasses.replace(ground, tokens=tuple(reversed(ground.tokens)))
    lane = run(others, ("get ready", "sync unchanged", "sync replace", "release and reissue"))
    assert set(lane.tally.failed) >= {"get ready", "sync unchanged", "sync replace", "release"}
    assert "hostname-forbidden" in lane.tally.failures[0]


def test_a_gateway_that_is_not_there_is_a_failure(ground: Ground) -> None:
    lane = run(dataclasses.replace(ground, port=1), ("context",))
    assert lane.tally.failed == {"context": 1}


def test_stocked_certificates_are_renewed_by_the_gateway(lab: Lab, ground: Ground) -> None:
    wait_until(
        lambda: count_renewed(lab, ground.stock, RENEWALS) == RENEWALS, "all are renewed", 60
    )


def test_what_is_stocked_stands_in_every_index_and_in_both_zones(lab: Lab, ground: Ground) -> None:
    hostnames = {ground.stock.hostname(number) for number in range(HOLDINGS)}
    with Redis.from_url(lab.redis.url, decode_responses=True) as redis:
        listed = [
            {name for bucket in range(keys.BUCKETS) for name in redis.zrange(of(bucket), 0, -1)}
            for of in (keys.names_key, keys.due_key)
        ]
        clients = map(keys.fingerprint, map(client_id, range(ground.stock.clients)))
        held = [
            name
            for client in clients
            for name in redis.zrange(keys.client_holdings_key(client), 0, -1)
        ]
    assert listed == [hostnames, hostnames]
    assert sorted(held) == sorted(hostnames)
    seen = published(lab.bind)
    assert {name for name, (_, markers) in seen.items() if markers == 1} >= hostnames
