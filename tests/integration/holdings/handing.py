"""What must be so after a hand-over. Used by the tests of handing over."""

from gateway.contract import DnsRecord
from gateway.dns.owner import Owner
from tests.integration.holdings.ruins import ADDRESS, Ruins


async def assert_handed_over(
    ruins: Ruins, giver: Owner, taker: Owner, record: DnsRecord = ADDRESS
) -> None:
    """The taker has it in every place, and the giver in none."""
    await ruins.assert_agreed(taker, record)
    if giver.client_id != taker.client_id:
        assert not await ruins.is_indexed(giver)
    assert (await ruins.publish(giver)).status == "record-conflict"
    assert (await ruins.publish(taker, record)).status == "managed-unchanged"
