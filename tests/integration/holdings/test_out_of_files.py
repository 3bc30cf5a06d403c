"""A process that may open no socket more: its calls are overloaded, and leave nothing behind."""

import pytest

from gateway.contract import DnsRecord, Overloaded
from gateway.dns.errors import OutOfFiles
from tests.integration.holdings.site import Site

RECORD = DnsRecord(type="A", value="198.51.100.40", ttl=60)


async def no_socket() -> None:
    raise OutOfFiles("The gateway has as many files open as it may.")


async def test_sync_is_overloaded_and_the_hostname_stays_free(site: Site) -> None:
    site.exchange.before.set(no_socket)
    with pytest.raises(Overloaded) as told:
        await site.records.publish(site.owner, RECORD)
    assert told.value.retry_after_ms == 1_000
    assert (await site.documents.read(site.owner.hostname)).holder is None
    assert await site.index.entries(site.owner.client_id) == []
    assert (await site.records.publish(site.owner, RECORD)).status == "managed-created"


async def test_withdrawal_is_overloaded_and_the_record_stays(site: Site) -> None:
    await site.records.publish(site.owner, RECORD)
    site.exchange.before.set(no_socket)
    with pytest.raises(Overloaded):
        await site.records.withdraw(site.owner)
    assert (await site.documents.read(site.owner.hostname)).record is not None
    assert (await site.records.withdraw(site.owner)).status == "managed-deleted"


async def test_new_certificate_is_overloaded_and_none_is_begun(site: Site) -> None:
    site.exchange.before.set(no_socket)
    with pytest.raises(Overloaded):
        await site.certificates.get(site.owner)
    assert (await site.documents.read(site.owner.hostname)).issuance is None
