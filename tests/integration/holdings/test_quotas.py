"""Which of two calls at once counts the other, and what is not counted at all."""

import pytest

from gateway.contract import Overloaded
from gateway.contract.names import AppId, ClientId, Hostname
from gateway.holdings.hold import Holds
from gateway.holdings.quotas import CALL_MS, CALLS_RETRY_MS, FULL_RETRY_MS, Kind, Quota, Quotas
from gateway.store.documents import Change, Document, Holder
from gateway.store.keys import client_taking_key, fingerprint
from tests.integration.holdings.site import Site, now_ms

INTENT = {"type": "A", "value": "198.51.100.1", "ttl": 60, "published": False, "edition": "e"}


def to_publish(_: Document) -> Change:
    return Change({"record": INTENT})


class Taker:
    """One client's way to take hostnames, with room for `records` of them."""

    def __init__(self, site: Site, records: int) -> None:
        self.holder = Holder(site.owner.client_id, AppId("app"))
        self.client_id: ClientId = self.holder.client_id
        self._label = site.owner.hostname.partition(".")[0]
        self.holds = Holds(site.documents, site.index, now_ms, lambda _: Quota(records=records))
        self.quotas = Quotas(site.documents, site.index, lambda _: Quota(records=records), now_ms)

    def hostname(self, number: int) -> Hostname:
        return Hostname(f"{self._label}-{number}.example.test")

    async def take(self, number: int, kind: Kind = Kind.RECORD) -> None:
        await self.holds.take(self.hostname(number), self.holder, to_publish, newly=kind)


async def test_of_two_calls_at_once_the_later_one_counts_the_earlier(site: Site) -> None:
    taker = Taker(site, records=1)

    async def take_another() -> None:
        # The first one has the place, though no document says so yet.
        with pytest.raises(Overloaded) as told:
            await taker.take(2)
        assert told.value.retry_after_ms == CALLS_RETRY_MS

    async with taker.quotas.room(Kind.RECORD, taker.client_id, taker.hostname(1)):
        await site.index.enter(taker.client_id, taker.hostname(1), now_ms())
        await take_another()
    # It came to nothing: the place is free at once.
    await taker.take(3)
    with pytest.raises(Overloaded) as told:
        await taker.take(4)
    assert told.value.retry_after_ms == FULL_RETRY_MS


async def test_of_two_calls_at_once_the_earlier_one_has_the_place(site: Site) -> None:
    taker = Taker(site, records=1)
    refused: list[Overloaded] = []

    async def take_another() -> None:
        try:
            await taker.take(2)
        except Overloaded as refusal:
            refused.append(refusal)

    # The first has been entered in the index, and the other comes before it has reserved.
    site.taking.before.set(take_another)
    with pytest.raises(Overloaded):
        await taker.take(1)
    assert site.taking.before.has_come
    assert refused == []


async def test_what_is_taken_of_another_kind_does_not_count(site: Site) -> None:
    taker = Taker(site, records=1)
    async with taker.quotas.room(Kind.RECORD, taker.client_id, taker.hostname(1)):
        await site.index.enter(taker.client_id, taker.hostname(1), now_ms())
        await taker.take(2, Kind.CERTIFICATE)


async def test_refused_call_leaves_nothing_behind(site: Site) -> None:
    taker = Taker(site, records=1)
    await taker.take(1)
    with pytest.raises(Overloaded):
        await taker.take(2)
    assert [name for name, _ in await site.index.entries(taker.client_id)] == [taker.hostname(1)]
    assert await site.store.members(client_taking_key(fingerprint(taker.client_id))) == []


async def test_reservation_that_a_crash_has_left_ends_by_itself(site: Site) -> None:
    taker = Taker(site, records=1)
    left = f"RECORD:{taker.hostname(1)}:x"
    await site.index.enter(taker.client_id, taker.hostname(1), now_ms())
    await site.index.reserve(taker.client_id, left, now_ms() - CALL_MS, CALL_MS)
    await taker.take(2)


async def test_reservations_are_in_the_order_in_which_they_were_made(site: Site) -> None:
    now = now_ms()
    calls = [f"RECORD:{number}" for number in range(5)]
    for number, call in enumerate(calls):
        # Clocks of processes differ: a later call may come with an earlier time.
        found = await site.index.reserve(site.owner.client_id, call, now - number, CALL_MS)
        assert found == calls[: number + 1]


async def test_more_than_a_page_of_other_holdings_is_read_to_the_end(site: Site) -> None:
    taker = Taker(site, records=1)
    for number in range(10, 220):
        await site.index.enter(taker.client_id, taker.hostname(number), now_ms())
    await taker.take(1)
    with pytest.raises(Overloaded):
        await taker.take(2)


async def test_what_a_client_holds_is_counted_by_kind(site: Site) -> None:
    taker = Taker(site, records=9)
    assert await taker.quotas.held(taker.client_id, 2) == {Kind.RECORD: 0, Kind.CERTIFICATE: 0}
    await taker.take(1)
    await taker.take(2)
    assert await taker.quotas.held(taker.client_id, 2) == {Kind.RECORD: 2, Kind.CERTIFICATE: 0}
    # One entered for a call that came to nothing is none that is held, but has to be looked at.
    await site.index.enter(taker.client_id, taker.hostname(3), now_ms())
    assert await taker.quotas.held(taker.client_id, 3) == {Kind.RECORD: 2, Kind.CERTIFICATE: 0}
    assert await taker.quotas.held(taker.client_id, 2) is None
