"""A gateway that shows no figures counts all the same: its page tells what needs somebody."""

from gateway.certificates.census import Census
from gateway.certificates.enumerator import KeptCensus
from gateway.store.connection import Store
from gateway.store.name_index import NameIndex
from tests.integration.service.calling import World
from tests.lab.lab import Lab
from tests.lab.process import read_until


async def test_page_has_a_census_soon_and_each_hostname_in_order(lab: Lab) -> None:
    one = World(lab.config.url, lab.config.admin_token).ownership()
    assert one.publish("198.51.100.7")["status"] == "managed-created"
    store = Store(lab.redis.url)
    try:
        census = await read_until(KeptCensus(store).last, lambda found: found is not None)
        assert isinstance(census, Census)
        assert (await NameIndex(store).page(one.hostname, None, 5)).names == [one.hostname]
    finally:
        await store.close()
