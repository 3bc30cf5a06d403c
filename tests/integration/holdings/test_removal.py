"""A client is removed with all that it holds, however much: a few releases at a time."""

import asyncio

from gateway.access.provisioning import RELEASE_AT_ONCE
from gateway.contract import DnsRecord, ProvisionRequest
from gateway.contract.names import Hostname
from gateway.dns.owner import Owner
from tests.integration.holdings.site import Site

HELD = 3 * RELEASE_AT_ONCE
RECORD = DnsRecord(type="A", value="198.51.100.1", ttl=300)


async def test_removal_releases_everything_a_few_at_a_time(site: Site, fresh_label: str) -> None:
    owners = [
        Owner(
            site.owner.client_id,
            site.owner.app_id,
            Hostname(f"n{number}.{fresh_label}.example.test"),
        )
        for number in range(HELD)
    ]
    for owner in owners:
        assert (await site.records.publish(owner, RECORD)).status == "managed-created"
    before = len(asyncio.all_tasks())
    most_at_once = 0

    async def count() -> None:
        nonlocal most_at_once
        most_at_once = max(most_at_once, len(asyncio.all_tasks()))
        site.exchange.before.set(count)

    site.exchange.before.set(count)
    request = ProvisionRequest(
        action="remove", client_id=site.owner.client_id, release_holdings=True
    )
    await site.provisioning.provision(request)
    assert 1 < most_at_once - before <= 2 * RELEASE_AT_ONCE
    assert await site.clients.by_id(site.owner.client_id) is None
    for owner in owners:
        assert (await site.documents.read(owner.hostname)).holder is None
        assert await asyncio.to_thread(site.hand.records, owner.hostname) == set()
