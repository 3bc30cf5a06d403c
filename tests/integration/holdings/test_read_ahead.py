"""A document that was read ahead of its call, and is out of date by then, misleads nobody."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from gateway.contract import DnsRecord
from tests.integration.holdings.site import Site

ONE = DnsRecord(type="A", value="198.51.100.1", ttl=300)
TWO = DnsRecord(type="A", value="198.51.100.2", ttl=300)

Step = Callable[[Site, Site], Awaitable[object]]


async def nothing(_: Site, __: Site) -> None:
    """Leave everything as it is."""


async def one(twin: Site, _: Site) -> None:
    await twin.publish(ONE)


async def two(twin: Site, _: Site) -> None:
    await twin.publish(TWO)


async def away(twin: Site, _: Site) -> None:
    await twin.withdraw()


async def away_and_back(twin: Site, _: Site) -> None:
    await twin.withdraw()
    await twin.publish(ONE)


async def rivals(twin: Site, rival: Site) -> None:
    await twin.withdraw()
    assert await rival.publish(ONE) == "managed-created"


async def rivals_for_a_moment(twin: Site, rival: Site) -> None:
    await rivals(twin, rival)
    await rival.withdraw()


@pytest.mark.parametrize("before", [nothing, one, two])
@pytest.mark.parametrize(
    "meanwhile", [nothing, one, two, away, away_and_back, rivals, rivals_for_a_moment]
)
async def test_sync_goes_by_what_there_is(site: Site, before: Step, meanwhile: Step) -> None:
    twin, rival = site.twin(), await site.rival()
    await before(twin, rival)
    await site.documents.read(site.owner.hostname)
    ahead = site.records.look_ahead(site.owner.hostname)
    assert ahead is not None
    await asyncio.wait({ahead.answers})
    await meanwhile(twin, rival)
    answer = await site.records.publish(site.owner, ONE, ahead)
    if meanwhile is rivals:
        assert answer.status == "record-conflict"
        await rival.assert_agreed(held=True)
    else:
        assert answer.record == ONE
        await site.assert_agreed(held=True)
        assert {text for text in await site.in_zone() if ONE.value in text}
