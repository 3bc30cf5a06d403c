"""Rebuilding and handing over in a zone that BIND signs inline: what it answers lags behind."""

from collections.abc import AsyncIterator, Iterator

import pytest

from gateway.holdings.handing_over import HandOverRefused
from gateway.holdings.rebuilding import Upshot
from gateway.store.connection import Store
from tests.integration.dns.lone_bind import LoneBind, signed_bind
from tests.integration.holdings.ruins import ADDRESS, OTHER_ADDRESS, ZONE, Ruins, holder_of
from tests.lab.redis import RedisProcess


@pytest.fixture(scope="module")
def signed_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LoneBind]:
    signing = 'dnssec-policy default; inline-signing yes; allow-transfer { key "gateway"; };'
    with signed_bind(tmp_path_factory.mktemp("signed"), {ZONE: ""}, signing) as server:
        yield server


@pytest.fixture
async def lost(
    losable_redis: RedisProcess, signed_server: LoneBind, fresh_label: str
) -> AsyncIterator[Ruins]:
    """A record was published; then Redis was lost, and both clients provisioned again."""
    store = Store(losable_redis.url)
    ruins = Ruins(store, losable_redis, signed_server, fresh_label)
    await ruins.make_client()
    assert (await ruins.publish(ruins.owner())).status == "managed-created"
    ruins.lose_redis()
    await ruins.make_client()
    await ruins.make_client("theirs")
    yield ruins
    await store.close()


async def test_record_is_restored_and_its_owners(lost: Ruins) -> None:
    names = [lost.owner().hostname]  # the transfer may not have it yet
    assert (await lost.rebuild("app", names=names))["relay"].outcome is Upshot.RESTORED
    assert (await lost.publish(lost.owner(), OTHER_ADDRESS)).status == "managed-updated"
    assert (await lost.records.withdraw(lost.owner())).status == "managed-deleted"
    assert (await lost.document(lost.owner())).version == ""


async def test_record_withdrawn_at_that_moment_is_not_remembered(lost: Ruins) -> None:
    """Its withdrawal may not be answered for yet, and is known to the zone that takes updates."""
    lost.taking.before.set(lambda: lost.records.withdraw(lost.owner()))
    names = [lost.owner().hostname]
    assert (await lost.rebuild("app", names=names))["relay"].outcome is Upshot.CHANGED
    assert (await lost.document(lost.owner())).version == ""


async def test_record_is_handed_over_and_back(lost: Ruins) -> None:
    giver, taker = lost.owner(), lost.owner("theirs")
    for one, other in ((giver, taker), (taker, giver)):
        assert (await lost.hand_over(one, other)).record == ADDRESS
        assert await lost.holder(other) == holder_of(other)
        assert (await lost.publish(one)).status == "record-conflict"
        assert (await lost.publish(other)).status == "managed-unchanged"


async def test_record_that_was_just_withdrawn_is_not_handed_over(lost: Ruins) -> None:
    assert (await lost.records.withdraw(lost.owner())).status == "managed-deleted"
    with pytest.raises(HandOverRefused, match="there is no marker"):
        await lost.hand_over(lost.owner(), lost.owner("theirs"))
