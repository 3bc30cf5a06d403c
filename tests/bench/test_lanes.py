"""A lane holds each answer of a real gateway against what it should be."""

import asyncio
import dataclasses
from collections.abc import Iterator

import pytest

from tests.bench.lanes import Ground, Lane
from tests.bench.soak import MIX, ground_of, loaded_gateway
from tests.bench.stock import Stock
from tests.bench.stocking import count_renewed, stock_up
from tests.lab.bind import BindPair
from tests.lab.gateway import write_gateway_config
from tests.lab.lab import Lab
from tests.lab.pebble import PebbleProcess
from tests.lab.process import wait_until
from tests.lab.redis import running_redis

HOLDINGS = 12
RENEWALS = 2


@pytest.fixture(scope="module")
def lab(
    tmp_path_factory: pytest.TempPathFactory, bind: BindPair, pebble: PebbleProcess
) -> Iterator[Lab]:
    folder = tmp_path_factory.mktemp("bench")
    with running_redis(tmp_path_factory.mktemp("bench-redis")) as redis:
        config = write_gateway_config(folder / "gateway", bind, redis.url, pebble)
        yield Lab(folder, bind, redis, pebble, config, ())


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
