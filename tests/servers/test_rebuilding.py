"""After a loss of Redis, on each kind of server: found by a transfer, or by name without one."""

from collections.abc import AsyncIterator, Iterator

import pytest

from gateway.holdings.rebuilding import Upshot
from gateway.store.connection import Store
from tests.integration.dns.conftest import zone_at
from tests.integration.holdings.ruins import ADDRESS, Ruins, holder_of
from tests.lab.redis import RedisProcess, running_redis
from tests.servers.conftest import AnyServer


@pytest.fixture(scope="module")
def losable_redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisProcess]:
    with running_redis(tmp_path_factory.mktemp("losable")) as server:
        yield server


@pytest.fixture
async def lost(
    losable_redis: RedisProcess, server: AnyServer, fresh_label: str
) -> AsyncIterator[Ruins]:
    """A record was published; then Redis was lost, and both clients provisioned again."""
    store = Store(losable_redis.url)
    ruins = Ruins(store, losable_redis, server, fresh_label, "example.test")
    await ruins.make_client()
    assert (await ruins.publish(ruins.owner())).status == "managed-created"
    ruins.lose_redis()
    await ruins.make_client()
    await ruins.make_client("theirs")
    yield ruins
    await store.close()


async def test_record_is_found_by_a_transfer_and_handed_over(lost: Ruins) -> None:
    assert (await lost.rebuild("app"))["relay"].outcome is Upshot.RESTORED
    giver, taker = lost.owner(), lost.owner("theirs")
    assert (await lost.hand_over(giver, taker)).record == ADDRESS
    assert await lost.holder(taker) == holder_of(taker)
    assert (await lost.publish(giver)).status == "record-conflict"
    assert (await lost.publish(taker)).status == "managed-unchanged"


async def test_record_is_found_by_its_name_with_a_key_that_may_not_transfer(
    lost: Ruins, server: AnyServer
) -> None:
    lost.at(zone_at(server.primary, server.hand, "example.test"))
    report = await lost.report("app", names=[lost.owner().hostname])
    found = {each.hostname: each.outcome for each in report.findings}
    assert report.partial is not None
    assert not report.is_unreadable
    assert found == {lost.owner().hostname: Upshot.RESTORED}
