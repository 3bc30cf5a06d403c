"""A client's index of hostnames, read a page at a time, the newest entry first."""

from gateway.contract.names import ClientId, Hostname
from gateway.moments import LATEST_MS
from gateway.store import keys
from gateway.store.connection import Store
from gateway.store.holdings_index import HoldingsIndex


async def entered(store: Store, client_id: ClientId, count: int) -> list[Hostname]:
    """Hostnames in the order of a page; two of each three were entered at the same time."""
    await store.set_field(keys.client_key(keys.fingerprint(client_id)), "version", "1")
    names = [Hostname(f"h{number:02}.example.test") for number in range(count)]
    for number, name in enumerate(names):
        assert await HoldingsIndex(store).enter(client_id, name, 1_000 + number // 3)
    return names[::-1]


async def test_pages_have_every_entry_once_newest_first(store: Store, fresh_label: str) -> None:
    client_id = ClientId(fresh_label)
    names = await entered(store, client_id, 10)
    index = HoldingsIndex(store)
    for limit in (1, 3, 10, 11):
        found: list[Hostname] = []
        while page := await index.page(client_id, found[-1] if found else None, limit):
            assert len(page) <= limit
            found += [name for name, _ in page]
        assert found == names


async def test_page_behind_what_has_left_is_none(store: Store, fresh_label: str) -> None:
    client_id = ClientId(fresh_label)
    first, second, *_ = await entered(store, client_id, 3)
    index = HoldingsIndex(store)
    await index.leave(client_id, first, 2_000)
    assert await index.page(client_id, first, 5) is None
    found = await index.page(client_id, second, 5)
    assert found is not None
    assert len(found) == 1


async def test_entry_at_no_time_that_there_is_is_told_with_the_nearest(
    store: Store, fresh_label: str
) -> None:
    """`commit.lua` enters whatever score it is given, as somebody else may have."""
    client_id = ClientId(fresh_label)
    (name,) = await entered(store, client_id, 1)
    mark = keys.fingerprint(fresh_label)
    for score, told in (("inf", LATEST_MS), ("-5", 0)):
        await store.commit(
            keys.client_key(mark),
            keys.client_holdings_key(mark),
            expected_version="*",
            member=name,
            score=score,
        )
        assert await HoldingsIndex(store).entries(client_id) == [(name, told)]


async def test_client_that_holds_nothing_has_an_empty_page(store: Store, fresh_label: str) -> None:
    assert await HoldingsIndex(store).page(ClientId(fresh_label), None, 5) == []
