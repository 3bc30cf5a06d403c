"""Route claims made and taken back at once: the list names every one that holds."""

from collections.abc import AsyncIterator

import pytest

from gateway.contract.names import Hostname
from gateway.holdings.claims import ClaimRefused, Claims
from gateway.store import keys
from gateway.store.connection import Store
from gateway.store.documents import Documents
from tests.integration.holdings.site import Seam, Site, now_ms
from tests.lab.redis import RedisProcess


class SeamedStore(Store):
    """Seams after a claim is put on the list, and before one is taken off."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.after_listing = Seam()
        self.before_unlisting = Seam()

    async def add_to_set(self, key: str, member: str) -> None:
        await super().add_to_set(key, member)
        await self.after_listing.reach()

    async def remove_from_set(self, key: str, member: str) -> None:
        await self.before_unlisting.reach()
        await super().remove_from_set(key, member)


@pytest.fixture
async def seamed(redis_server: RedisProcess) -> AsyncIterator[SeamedStore]:
    store = SeamedStore(redis_server.url)
    yield store
    await store.close()


@pytest.fixture
def claims(seamed: SeamedStore) -> Claims:
    return Claims(seamed, Documents(seamed), now_ms)


@pytest.fixture
def hostname(fresh_label: str) -> Hostname:
    return Hostname(f"{fresh_label}.example.test")


async def is_listed(claims: Claims, hostname: Hostname) -> bool:
    return hostname in [claim.hostname for claim in (await claims.all()).claims]


async def test_claim_made_again_before_it_was_off_the_list_is_listed(
    seamed: SeamedStore, claims: Claims, hostname: Hostname
) -> None:
    await claims.add(hostname)
    seamed.before_unlisting.set(lambda: claims.add(hostname, "again"))
    assert await claims.remove(hostname)
    assert await is_listed(claims, hostname)


async def test_claim_taken_off_the_list_while_it_was_being_made_is_listed(
    seamed: SeamedStore, claims: Claims, hostname: Hostname
) -> None:
    seamed.after_listing.set(lambda: claims.remove(hostname))
    await claims.add(hostname)
    assert await is_listed(claims, hostname)


async def test_claim_that_was_refused_is_not_on_the_list(
    seamed: SeamedStore, claims: Claims, site: Site
) -> None:
    await site.take()
    with pytest.raises(ClaimRefused):
        await claims.add(site.owner.hostname)
    assert site.owner.hostname not in await seamed.set_members(keys.CLAIMS_KEY)


async def test_claim_taken_back_is_off_the_list(
    seamed: SeamedStore, claims: Claims, hostname: Hostname
) -> None:
    await claims.add(hostname)
    assert await claims.remove(hostname)
    assert not await claims.remove(hostname)
    assert hostname not in await seamed.set_members(keys.CLAIMS_KEY)
