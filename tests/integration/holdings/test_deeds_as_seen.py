"""A deed on a hostname that was decided before something else was there: it leaves that alone."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial

import pytest

from gateway.contract import DnsRecord
from gateway.contract.names import Hostname
from gateway.dns.outcome import PublishedOtherwise
from gateway.holdings.as_seen import HostnameChanged, mark_of
from gateway.holdings.claims import Claims
from tests.integration.holdings.site import SeamedStore, Site, now_ms
from tests.lab.redis import RedisProcess

ONE = DnsRecord(type="A", value="198.51.100.1", ttl=300)
TWO = DnsRecord(type="A", value="198.51.100.2", ttl=300)


@pytest.fixture
async def store(redis_server: RedisProcess) -> AsyncIterator[SeamedStore]:
    store = SeamedStore(redis_server.url)
    yield store
    await store.close()


@pytest.fixture
def claims(site: Site) -> Claims:
    return Claims(site.store, site.documents, now_ms)


async def mark(site: Site) -> str:
    return mark_of(await site.documents.read(site.owner.hostname))


async def note_of(claims: Claims, hostname: Hostname) -> list[str]:
    return [each.note for each in (await claims.all()).claims if each.hostname == hostname]


async def another_issuance(site: Site) -> None:
    await site.certificates.release(site.owner)
    await site.certificates.get(site.owner)


@pytest.mark.parametrize("moment", ["before", "within"])
async def test_release_leaves_what_was_asked_for_since(
    site: Site, store: SeamedStore, moment: str
) -> None:
    await site.certificates.get(site.owner)
    seen = await mark(site)
    if moment == "before":
        await another_issuance(site)
    else:
        store.after_read.set(lambda: another_issuance(site))
    with pytest.raises(HostnameChanged):
        await site.certificates.give_up(site.owner, seen)
    document = await site.documents.read(site.owner.hostname)
    assert document.issuance is not None
    assert mark_of(document) != seen
    assert await site.certificates.give_up(site.owner, mark_of(document)) is not None


@pytest.mark.parametrize("moment", ["before", "within"])
async def test_claim_of_another_keeps_its_note_and_stays(
    site: Site, store: SeamedStore, claims: Claims, moment: str
) -> None:
    hostname = site.owner.hostname
    await claims.add(hostname, "a test of mine")
    seen = await mark(site)
    deeds: dict[str, Callable[[], Awaitable[object]]] = {
        "the note of an incident": lambda: claims.add(hostname, "mine", seen),
        "another note": lambda: claims.remove(hostname, seen),
    }
    for note, deed in deeds.items():
        if moment == "before":
            await claims.add(hostname, note)
        else:
            store.after_read.set(partial(claims.add, hostname, note))
        with pytest.raises(HostnameChanged):
            await deed()
        assert await note_of(claims, hostname) == [note]
    assert await claims.remove(hostname, await mark(site))


async def test_claim_that_comes_too_late_is_not_listed(site: Site, claims: Claims) -> None:
    seen = await mark(site)
    await claims.add(site.owner.hostname, "theirs")
    await claims.remove(site.owner.hostname)
    await site.certificates.get(site.owner)
    with pytest.raises(HostnameChanged):
        await claims.add(site.owner.hostname, "mine", seen)
    assert await note_of(claims, site.owner.hostname) == []


async def test_withdrawal_leaves_a_record_that_was_published_since(site: Site) -> None:
    await site.publish(ONE)
    seen = await mark(site)
    await site.publish(TWO)
    with pytest.raises(HostnameChanged):
        await site.records.withdrawal(site.owner, seen)
    assert any(TWO.value in each for each in await site.in_zone())


async def test_withdrawal_leaves_a_record_that_takes_the_place_in_the_zone(site: Site) -> None:
    """The client's update is there first, and Redis does not know of it yet."""
    await site.publish(ONE)
    seen, other = await mark(site), site.twin()
    other.exchange.before_update.set(lambda: site.publish(TWO))
    with pytest.raises(PublishedOtherwise, match=r"A 198\.51\.100\.2"):
        await other.records.withdrawal(site.owner, seen)
    assert any(TWO.value in each for each in await site.in_zone())
    await site.assert_agreed(held=True)


async def test_withdrawal_leaves_and_tells_a_record_that_comes_after_it(site: Site) -> None:
    await site.publish(ONE)
    seen = await mark(site)
    site.exchange.after_update.set(lambda: site.publish(TWO))
    done = await site.records.withdrawal(site.owner, seen)
    assert [each.value for each in done.outcome.removed] == [ONE.value]
    assert done.remains == (
        "its client published at the same moment: A 198.51.100.2 is its record now"
    )
    assert any(TWO.value in each for each in await site.in_zone())
    await site.assert_agreed(held=True)


async def test_withdrawal_of_whatever_is_there_tells_all_that_it_took(site: Site) -> None:
    await site.publish(ONE)
    site.exchange.after_update.set(lambda: site.publish(TWO))
    done = await site.records.withdrawal(site.owner)
    assert [each.value for each in done.outcome.removed] == [ONE.value, TWO.value]
    assert (done.known, done.remains) == (ONE, None)
    await site.assert_agreed(held=False)


async def test_withdrawal_that_finds_nothing_the_second_time_tells_what_it_took(
    site: Site,
) -> None:
    """The client's update came first, and it writes that into Redis while this one takes it out."""
    await site.publish(ONE)
    client, is_in_zone, goes_on = site.twin(), asyncio.Event(), asyncio.Event()

    async def wait() -> None:
        is_in_zone.set()
        await goes_on.wait()

    client.exchange.after_update.set(wait)
    publication = asyncio.create_task(client.publish(TWO))
    await is_in_zone.wait()

    async def go_on() -> None:
        goes_on.set()
        assert await publication == "managed-updated"

    site.exchange.after_update.set(go_on)
    done = await site.records.withdrawal(site.owner)
    assert [each.value for each in done.outcome.removed] == [TWO.value]
    assert done.remains is None
    await site.assert_agreed(held=False)
