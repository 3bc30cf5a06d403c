"""Markers of one's own that came back or were left: they take nothing of the holder's, and go."""

import pytest

from gateway.contract import DnsRecord
from gateway.dns.owner import Owner
from gateway.holdings import records
from tests.integration.dns.conftest import zone_at
from tests.integration.holdings.ruins import ADDRESS, Ruins, holder_of, in_zone, marked
from tests.integration.holdings.site import now_ms

OLD = DnsRecord(type="A", value="198.51.100.2", ttl=300)
EDITED = "203.0.113.9"


@pytest.fixture
async def former(ruins: Ruins) -> Owner:
    """Handed its hostname over, address and all; then its marker came back to the zone."""
    for client in ("mine", "theirs"):
        await ruins.make_client(client)
    former = ruins.owner()
    await ruins.publish(former)
    await ruins.hand_over(former, ruins.owner("theirs"))
    await ruins.edit(f"add {former.hostname} 300 {marked(former)}")
    return former


async def test_delete_by_a_former_owner_takes_nothing_of_the_holders(
    ruins: Ruins, former: Owner
) -> None:
    before = await ruins.in_zone(former)
    assert (await ruins.records.withdraw(former)).status == "managed-deleted"
    assert await ruins.in_zone(former) == before
    assert await ruins.holder(former) == holder_of(ruins.owner("theirs"))


async def test_delete_where_another_holds_the_name_needs_no_zone(
    ruins: Ruins, former: Owner
) -> None:
    ruins.at(zone_at(ruins.server.primary, ruins.server.tsig, "elsewhere.test"))
    assert (await ruins.records.withdraw(former)).status == "managed-deleted"


async def test_delete_where_another_is_about_to_publish_takes_nothing_that_is_its_too(
    ruins: Ruins, former: Owner
) -> None:
    """It has published already, and died or not come around to writing that down."""
    taker = ruins.owner("theirs")
    intent = {**ADDRESS.to_wire(), "published": False, "edition": "e", "sinceMs": now_ms()}
    await ruins.put(taker, record=intent)
    before = await ruins.in_zone(taker)
    assert (await ruins.records.withdraw(former)).status == "managed-deleted"
    assert await ruins.in_zone(taker) == before


async def test_marker_of_the_record_before_goes_when_an_old_record_was_put_back(
    ruins: Ruins,
) -> None:
    await ruins.make_client("mine")
    owner = ruins.owner()
    await ruins.publish(owner, OLD)
    await ruins.publish(owner, ADDRESS)
    name = owner.hostname
    await ruins.edit(
        f"delete {name} A", f"add {name} 300 A {OLD.value}", f"add {name} 300 {marked(owner, OLD)}"
    )
    assert (await ruins.publish(owner, OLD)).status == "managed-updated"
    await ruins.assert_agreed(owner, OLD)
    assert (await ruins.publish(owner, OLD)).status == "managed-unchanged"


@pytest.mark.parametrize("first", [ADDRESS, None])
async def test_marker_of_a_replacement_of_unknown_outcome_goes_beside_an_edited_address(
    ruins: Ruins, first: DnsRecord | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`first` None: what became of the first record is unknown as well."""
    await ruins.make_client("mine")
    owner = ruins.owner()
    wanted = [DnsRecord(type="A", value=f"198.51.100.{n}", ttl=300) for n in (5, 6)]
    if first is not None:
        await ruins.publish(owner, first)
    with monkeypatch.context() as patched:
        patched.setattr(records, "CALL_BOUND_SECONDS", 0.5)
        for record in wanted:
            ruins.exchange.after_update.set(ruins.exchange.silence)
            assert (await ruins.publish(owner, record)).status == "mutation-failed"
            ruins.exchange.before.set(_nothing)
    last = wanted[-1]
    assert await ruins.in_zone(owner) == in_zone(owner, last)
    await ruins.edit(f"delete {owner.hostname} A", f"add {owner.hostname} 300 A {EDITED}")
    assert (await ruins.records.withdraw(owner)).status == "managed-deleted"
    assert await ruins.in_zone(owner) == {f"300 A {EDITED}"}


async def _nothing() -> None:
    """The server answers again."""
