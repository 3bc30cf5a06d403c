"""Clients read a page at a time, and their indexes of hostnames as far as a page shows them."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING

import pytest

from gateway.access.clients import LOOKED_AT, Client, ClientStore, ClientUnreadable, created
from gateway.access.tokens import new_client_token
from gateway.contract import ClientSpec
from gateway.contract.names import ClientId, Hostname
from gateway.store import keys
from gateway.store.holdings_index import HoldingsIndex

if TYPE_CHECKING:
    from gateway.store.connection import Store

NOW_MS = 1_700_000_000_000


async def make(store: Store, *client_ids: str) -> None:
    for client_id in client_ids:
        spec = ClientSpec.of(client_id, "test", hostname_patterns=[], capabilities=[])
        client = created(spec, new_client_token(client_id), NOW_MS)
        await ClientStore(store).change(spec.client_id, partial(_as_it_is, client))


def _as_it_is(client: Client, _: Client | None) -> Client:
    return client


async def ids_of(store: Store, prefix: str, limit: int) -> list[list[str]]:
    """All pages."""
    pages, after = [], ""
    while True:
        page = await ClientStore(store).page(prefix, after, limit)
        pages.append([each.client_id for each in page.clients])
        if page.after is None:
            return pages
        after = page.after


@pytest.mark.parametrize("limit", [1, 2, 3, 7])
async def test_pages_have_every_client_once_in_order(
    store: Store, fresh_label: str, limit: int
) -> None:
    wanted = sorted(f"{fresh_label}{end}" for end in ("", "!", "-a", "/b", "<c>", "~"))
    await make(store, *reversed(wanted), f"x-{fresh_label}")
    pages = await ids_of(store, fresh_label, limit)
    assert [each for page in pages for each in page] == wanted
    assert all(len(page) == limit for page in pages[:-1])


async def test_page_that_is_just_full_is_the_last(store: Store, fresh_label: str) -> None:
    await make(store, f"{fresh_label}-1", f"{fresh_label}-2")
    assert await ids_of(store, fresh_label, 2) == [[f"{fresh_label}-1", f"{fresh_label}-2"]]


async def test_prefix_that_nobody_has_is_an_empty_page(store: Store, fresh_label: str) -> None:
    for prefix in (fresh_label, "\N{SNOWMAN}", "\0"):
        assert await ClientStore(store).page(prefix, "", 5) == ([], None)


async def test_one_that_cannot_be_read_hides_no_other(store: Store, fresh_label: str) -> None:
    first, second, third = (f"{fresh_label}-{number}" for number in range(3))
    stranger = f"{fresh_label}-\N{SNOWMAN}"
    await make(store, first, second, third)
    await store.set_field(keys.client_key(keys.fingerprint(second)), "client", "{}")
    await store.add_to_set(keys.CLIENTS_KEY, stranger)
    page = await ClientStore(store).page(fresh_label, "", 9)
    kinds = [(each.client_id, type(each)) for each in page.clients]
    assert kinds == [
        (first, Client),
        (second, ClientUnreadable),
        (third, Client),
        (stranger, ClientUnreadable),
    ]
    await store.remove_from_set(keys.CLIENTS_KEY, stranger)


@pytest.mark.parametrize("field", ["createdAtMs", "expiresAtMs"])
@pytest.mark.parametrize("time_ms", [-1, 10**17])
async def test_client_with_a_time_that_no_calendar_has_is_unreadable(
    store: Store, fresh_label: str, field: str, time_ms: int
) -> None:
    await make(store, fresh_label)
    key = keys.client_key(keys.fingerprint(fresh_label))
    client = json.loads((await store.fields(key))["client"])
    client["credentials"][0][field] = time_ms
    await store.set_field(key, "client", json.dumps(client))
    with pytest.raises(ClientUnreadable):
        await ClientStore(store).by_id(ClientId(fresh_label))


async def test_listed_client_without_a_document_is_left_out(store: Store, fresh_label: str) -> None:
    await make(store, f"{fresh_label}-2")
    await store.add_to_set(keys.CLIENTS_KEY, f"{fresh_label}-1")
    assert await ids_of(store, fresh_label, 1) == [[f"{fresh_label}-2"]]


async def test_holdings_are_counted_and_the_last_entered_come_first(
    store: Store, fresh_label: str
) -> None:
    await make(store, fresh_label, f"{fresh_label}-none")
    index, client_id = HoldingsIndex(store), ClientId(fresh_label)
    for number in range(5):
        await index.enter(client_id, Hostname(f"{number}.example.test"), NOW_MS + number)
    assert await index.counts([client_id, ClientId(f"{fresh_label}-none")]) == [5, 0]
    assert await index.newest(client_id, 2) == [
        ("4.example.test", NOW_MS + 4),
        ("3.example.test", NOW_MS + 3),
    ]


async def test_ids_without_a_client_do_not_fill_a_page(store: Store, fresh_label: str) -> None:
    await make(store, f"{fresh_label}-b", f"{fresh_label}-d", f"{fresh_label}-e")
    for begin in ("a", "c", "f"):
        for number in range(9):
            await store.add_to_set(keys.CLIENTS_KEY, f"{fresh_label}-{begin}{number}")
    pages = await ids_of(store, fresh_label, 2)
    assert [each for page in pages for each in page] == [f"{fresh_label}-{end}" for end in "bde"]
    assert len(pages[0]) == 2


async def test_no_page_looks_through_more_ids_than_it_may(store: Store, fresh_label: str) -> None:
    await make(store, f"{fresh_label}-z")
    for number in range(LOOKED_AT):
        await store.add_to_set(keys.CLIENTS_KEY, f"{fresh_label}-{number:04}")
    assert await ids_of(store, fresh_label, 50) == [[], [f"{fresh_label}-z"]]
