"""Calls of one ownership at once: Redis and the zone never contradict each other afterwards.

On a single Redis, which takes a hostname in one step, and on a Cluster, which needs three.
"""

from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from gateway.contract import DnsRecord, Unauthorized
from gateway.contract.names import AppId
from gateway.holdings.hold import Holds
from gateway.store.connection import Store
from gateway.store.documents import Change, Document
from tests.integration.holdings.site import Site, now_ms
from tests.lab.redis_cluster import RedisCluster, start_redis_cluster

if TYPE_CHECKING:
    from tests.lab.redis import RedisDeployment

ONE = DnsRecord(type="A", value="198.51.100.1", ttl=300)
TWO = DnsRecord(type="A", value="198.51.100.2", ttl=300)


@pytest.fixture(scope="module")
def redis_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisCluster]:
    started = start_redis_cluster(tmp_path_factory.mktemp("cluster"))
    yield started
    started.stop()


@pytest.fixture(params=["single", "cluster"])
async def store(request: pytest.FixtureRequest) -> AsyncIterator[Store]:
    name = "redis_server" if request.param == "single" else "redis_cluster"
    deployment: RedisDeployment = request.getfixturevalue(name)
    store = Store(deployment.url, replicas=0)
    yield store
    await store.close()


async def test_publish_within_a_withdrawal_stays_held_or_goes_with_it(site: Site) -> None:
    await site.publish(ONE)
    site.exchange.after_update.set(lambda: site.publish(ONE))
    assert await site.withdraw() == "managed-deleted"
    await site.assert_agreed(held=False)


async def test_withdrawal_within_a_replacement_is_followed_by_the_record(site: Site) -> None:
    await site.publish(ONE)
    site.exchange.after_update.set(site.withdraw)
    assert await site.publish(TWO) == "managed-created"
    await site.assert_agreed(held=True)


async def test_withdrawal_within_a_first_publication_is_followed_by_the_record(site: Site) -> None:
    site.exchange.after_update.set(site.withdraw)
    assert await site.publish(ONE) == "managed-created"
    await site.assert_agreed(held=True)


async def test_publication_that_another_one_overtakes_leaves_the_zone_as_it_is_remembered(
    site: Site,
) -> None:
    site.exchange.after_update.set(lambda: site.publish(TWO))
    # It replaces what the other one has published.
    assert await site.publish(ONE) == "managed-updated"
    await site.assert_agreed(held=True)


async def test_replacement_that_another_one_overtakes_leaves_the_zone_as_it_is_remembered(
    site: Site,
) -> None:
    await site.publish(DnsRecord(type="A", value=ONE.value, ttl=60))
    site.exchange.after_update.set(lambda: site.publish(TWO))
    assert await site.publish(ONE) == "managed-updated"
    await site.assert_agreed(held=True)


async def test_same_record_by_two_calls_is_published_once(site: Site) -> None:
    site.exchange.after_update.set(lambda: site.publish(ONE))
    assert await site.publish(ONE) == "managed-created"
    await site.assert_agreed(held=True)


async def test_worker_busy_on_the_document_does_not_keep_a_withdrawn_hostname(site: Site) -> None:
    await site.publish(ONE)

    async def work() -> None:
        await site.documents.change(
            site.owner.hostname, lambda now: Change({"fence": now.fence + 1})
        )

    site.exchange.after_update.set(work)
    assert await site.withdraw() == "managed-deleted"
    await site.assert_agreed(held=False)


async def test_removal_of_the_client_takes_along_what_was_just_being_published(site: Site) -> None:
    await site.publish(ONE)

    async def remove() -> None:
        await site.withdraw()
        assert await site.clients.drop(site.owner.client_id)

    site.exchange.after_update.set(remove)
    with pytest.raises(Unauthorized):
        await site.publish(TWO)
    await site.assert_agreed(held=False)


async def test_hostname_taken_while_it_is_being_left_stays_in_the_index(site: Site) -> None:
    await site.publish(ONE)
    seen = await site.documents.read(site.owner.hostname)
    # What a slow withdrawal does last, after another call has taken the hostname again.
    await site.withdraw()
    given_up = await site.documents.read(site.owner.hostname)
    await site.publish(ONE)
    holds = Holds(site.documents, site.index, lambda: now_ms() + 1_000)
    assert seen.holder is not None
    await holds.forget(given_up, seen.holder)
    await site.assert_agreed(held=True)


async def test_hostname_taken_for_another_app_id_while_it_is_being_left_stays_in_the_index(
    site: Site,
) -> None:
    await site.publish(ONE)
    seen = (await site.documents.read(site.owner.hostname)).holder
    assert seen is not None
    await site.withdraw()
    given_up = await site.documents.read(site.owner.hostname)
    another = replace(site.owner, app_id=AppId("another"))
    assert (await site.records.publish(another, ONE)).status == "managed-created"
    holds = Holds(site.documents, site.index, lambda: now_ms() + 1_000)
    await holds.forget(given_up, seen)
    assert site.owner.hostname in [name for name, _ in await site.index.entries(seen.client_id)]


async def test_publication_after_a_withdrawal_has_seen_no_record_goes_with_it(site: Site) -> None:
    # It is taken out of the zone by its marker, so what Redis says of it must go as well.
    site.exchange.before.set(lambda: site.publish(ONE))
    assert await site.withdraw() == "managed-deleted"
    await site.assert_agreed(held=False)


async def test_withdrawal_of_nothing_leaves_a_certificate_held(site: Site) -> None:
    await site.certificates.get(site.owner)
    assert await site.withdraw() == "managed-deleted"
    assert (await site.documents.read(site.owner.hostname)).holder == site.holder


async def drop_client(site: Site) -> None:
    """Remove the client while a call that has entered the index holds nothing yet."""
    await site.index.leave(site.owner.client_id, site.owner.hostname, now_ms())
    assert await site.clients.drop(site.owner.client_id)


async def test_client_removed_before_it_holds_a_record_holds_nothing(site: Site) -> None:
    site.taking.before.set(lambda: drop_client(site))
    with pytest.raises(Unauthorized):
        await site.publish(ONE)
    await site.assert_agreed(held=False)


async def test_client_removed_before_it_holds_an_issuance_holds_nothing(site: Site) -> None:
    site.taking.before.set(lambda: drop_client(site))
    with pytest.raises(Unauthorized):
        await site.certificates.get(site.owner)
    assert await site.documents.read(site.owner.hostname) == Document(site.owner.hostname)


async def test_record_published_after_its_hostname_was_lost_is_taken_out_again(
    site: Site, rival: Site
) -> None:
    async def lose() -> None:
        await site.withdraw()
        await rival.certificates.get(rival.owner)

    site.exchange.before_update.set(lose)
    assert await site.publish(ONE) == "record-conflict"
    assert await site.in_zone() == set()
    assert (await site.documents.read(site.owner.hostname)).holder == rival.holder


async def test_record_that_a_withdrawal_has_overtaken_is_told_as_published(site: Site) -> None:
    """Not as one that was there: the call itself has put it there, in its first round."""
    await site.publish(ONE)
    site.exchange.before_update.set(site.withdraw)
    assert await site.publish(TWO) == "managed-created"
    await site.assert_agreed(held=True)
