"""A hostname that a crash left taken is another client's, unless its record got into the zone."""

import pytest

from gateway.contract import CertificatePending, CertificateRefused, DnsRecord
from gateway.holdings.orphans import ORPHAN_AGE_MS
from gateway.store.documents import Change, Document
from tests.integration.holdings.site import Site, now_ms

ONE = DnsRecord(type="A", value="198.51.100.1", ttl=300)
TWO = DnsRecord(type="A", value="198.51.100.2", ttl=300)


async def left_behind(site: Site, *, age_ms: int = ORPHAN_AGE_MS + 1_000) -> Document:
    """What is left of a call that died after it had taken the hostname, this long ago."""
    await site.index.enter(site.owner.client_id, site.owner.hostname, now_ms() - age_ms)
    intent = {**ONE.to_wire(), "published": False, "edition": "died", "sinceMs": now_ms() - age_ms}
    fields = {"holder": site.holder, "record": intent}
    return await site.documents.change(site.owner.hostname, lambda _: Change(fields))


async def test_another_client_publishes_where_nothing_came_of_an_old_intent(
    site: Site, rival: Site
) -> None:
    await left_behind(site)
    assert await rival.publish(TWO) == "managed-created"
    await rival.assert_agreed(held=True)
    assert await site.index.entries(site.owner.client_id) == []


async def test_another_client_gets_a_certificate_where_nothing_came_of_an_old_intent(
    site: Site, rival: Site
) -> None:
    await left_behind(site)
    assert isinstance(await rival.certificates.get(rival.owner), CertificatePending)


async def test_intent_of_a_call_that_may_still_be_under_way_holds_the_hostname(
    site: Site, rival: Site
) -> None:
    left = await left_behind(site, age_ms=ORPHAN_AGE_MS - 10_000)
    assert await rival.publish(TWO) == "record-conflict"
    assert await site.documents.read(site.owner.hostname) == left


@pytest.mark.parametrize("kind", ["record", "certificate"])
async def test_old_intent_whose_record_is_in_the_zone_holds_the_hostname(
    site: Site, rival: Site, kind: str
) -> None:
    await site.publish(ONE)
    left = await left_behind(site)
    if kind == "record":
        assert await rival.publish(TWO) == "record-conflict"
    else:
        answer = await rival.certificates.get(rival.owner)
        assert isinstance(answer, CertificateRefused)
        assert answer.reason == "hostname-conflict"
    assert await site.documents.read(site.owner.hostname) == left
    assert await site.publish(ONE) == "managed-unchanged"


async def test_old_intent_beside_an_issuance_holds_the_hostname(site: Site, rival: Site) -> None:
    await left_behind(site)
    await site.certificates.get(site.owner)
    held = await site.documents.read(site.owner.hostname)
    assert await rival.publish(TWO) == "record-conflict"
    assert await site.documents.read(site.owner.hostname) == held


async def test_owner_that_comes_back_while_its_intent_is_judged_keeps_the_hostname(
    site: Site, rival: Site
) -> None:
    await left_behind(site)
    rival.exchange.after.set(lambda: site.publish(ONE))
    assert await rival.publish(TWO) == "record-conflict"
    assert rival.exchange.after.has_come
    await site.assert_agreed(held=True)


async def forgotten(site: Site) -> None:
    """Redis has lost its data; the zone still has the record."""
    fields = {"holder": None, "record": None}
    await site.documents.change(site.owner.hostname, lambda _: Change(fields))


async def test_intent_of_another_gives_way_to_the_one_whose_record_is_in_the_zone(
    site: Site, rival: Site
) -> None:
    await site.publish(ONE)
    await forgotten(site)
    await rival.take()
    assert await site.publish(ONE) == "managed-unchanged"
    await site.assert_agreed(held=True)
    assert await rival.publish(TWO) == "record-conflict"


async def test_record_is_withdrawn_while_another_asks_for_its_forgotten_hostname(
    site: Site, rival: Site
) -> None:
    await site.publish(ONE)
    await forgotten(site)
    await rival.take()
    assert await site.withdraw() == "managed-deleted"
    assert await site.in_zone() == set()


async def test_intent_of_another_stays_where_the_zone_has_nothing_of_the_asker(
    site: Site, rival: Site
) -> None:
    await rival.take()
    assert await site.publish(ONE) == "record-conflict"
    assert (await site.documents.read(site.owner.hostname)).holder == rival.holder
