"""Fixtures: one ownership's parts on the session's Redis and BIND."""

from collections.abc import AsyncIterator, Iterator

import pytest

from gateway.dns.owner import Owner
from gateway.store.connection import Store
from tests.integration.dns.lone_bind import LoneBind, lone_bind
from tests.integration.holdings.ruins import ZONE, Ruins
from tests.integration.holdings.site import Site
from tests.lab.bind import BindPair
from tests.lab.redis import RedisProcess, running_redis


@pytest.fixture
async def store(redis_server: RedisProcess) -> AsyncIterator[Store]:
    store = Store(redis_server.url)
    yield store
    await store.close()


@pytest.fixture
async def site(store: Store, bind: BindPair, fresh_label: str) -> Site:
    site = Site(store, bind, fresh_label)
    await site.make_client()
    return site


@pytest.fixture
async def rival(site: Site) -> Site:
    return await site.rival()


@pytest.fixture(scope="package")
def losable_redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisProcess]:
    """A Redis that a test may flush."""
    with running_redis(tmp_path_factory.mktemp("losable")) as server:
        yield server


@pytest.fixture(scope="package")
def ruin_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LoneBind]:
    """A zone that may be transferred, with nothing in it but what these tests put there."""
    options = 'allow-transfer { key "gateway"; };'
    with lone_bind(tmp_path_factory.mktemp("ruin"), {ZONE: ""}, options=options) as server:
        yield server


@pytest.fixture
async def ruins(
    losable_redis: RedisProcess, ruin_server: LoneBind, fresh_label: str
) -> AsyncIterator[Ruins]:
    store = Store(losable_redis.url)
    ruins = Ruins(store, losable_redis, ruin_server, fresh_label)
    ruins.lose_redis()
    yield ruins
    await store.close()


@pytest.fixture
async def held(ruins: Ruins) -> Ruins:
    """A client `mine` with a record, and a client `theirs` that may have the name as well."""
    await ruins.make_client("mine")
    await ruins.make_client("theirs")
    assert (await ruins.publish(ruins.owner())).status == "managed-created"
    return ruins


@pytest.fixture
def giver(held: Ruins) -> Owner:
    return held.owner()


@pytest.fixture
def taker(held: Ruins) -> Owner:
    return held.owner("theirs", "app:with:colons")
