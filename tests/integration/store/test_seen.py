"""A change decided upon a document as it was seen: made of that very one, else of what is there."""

from collections.abc import AsyncIterator

import pytest

from gateway.contract.names import AppId, ClientId, Hostname
from gateway.store.connection import Store
from gateway.store.documents import Change, Document, Documents, Holder
from tests.lab.redis import RedisProcess

HOLDER = Holder(ClientId("relay"), AppId("app:one"))


class Counting(Store):
    """Counts what is read."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.reads = 0

    async def hashes(self, keys: list[str]) -> list[dict[str, str] | None]:  # type: ignore[override]
        self.reads += 1
        return await super().hashes(keys)


@pytest.fixture
async def store(redis_server: RedisProcess) -> AsyncIterator[Counting]:
    store = Counting(redis_server.url)
    yield store
    await store.close()


@pytest.fixture
def documents(store: Counting) -> Documents:
    return Documents(store)


@pytest.fixture
def hostname(fresh_label: str) -> Hostname:
    return Hostname(f"{fresh_label}.example.test")


def taking(document: Document) -> Change | None:
    """Takes the hostname, or a second fence where it is taken."""
    return Change({"holder": HOLDER, "fence": document.fence + 1})


async def test_document_that_is_still_as_seen_is_not_read_again(
    documents: Documents, store: Counting, hostname: Hostname
) -> None:
    first = await documents.change(hostname, taking, await documents.read(hostname))
    reads = store.reads
    second = await documents.change(hostname, taking, first)
    assert store.reads == reads
    assert (second.fence, second.holder) == (2, HOLDER)
    assert await documents.read(hostname) == second


async def test_change_decided_upon_what_is_old_is_decided_anew(
    documents: Documents, hostname: Hostname
) -> None:
    old = await documents.read(hostname)
    await documents.change(hostname, taking)
    assert (await documents.change(hostname, taking, old)).fence == 2


async def test_nothing_is_done_only_of_what_is_there_now(
    documents: Documents, hostname: Hostname
) -> None:
    """A rule that wants nothing of what was seen may want something of what is there."""
    old = await documents.read(hostname)
    await documents.change(hostname, taking)

    def only_if_taken(document: Document) -> Change | None:
        return None if document.holder is None else Change({"fence": 9})

    assert (await documents.change(hostname, only_if_taken, old)).fence == 9
