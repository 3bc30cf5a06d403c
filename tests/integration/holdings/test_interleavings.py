"""Calls of one ownership at once: Redis and the zone never contradict each other afterwards.

The parts are joined as the composition root does it. Only the moment of the second call is chosen:
an `Exchange` runs it just after the first call's UPDATE was answered by the real server.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable

import dns.message
import dns.opcode
import pytest

from gateway.access.clients import ClientStore, created
from gateway.access.tokens import new_client_token
from gateway.contract import ClientSpec, DnsRecord, Unauthorized
from gateway.contract.names import AppId, ClientId, Hostname
from gateway.dns.exchange import Exchange, Over
from gateway.dns.owner import Owner
from gateway.dns.publisher import Publisher
from gateway.dns.replies import Peer
from gateway.dns.zones import Zones
from gateway.holdings.hold import Holds
from gateway.holdings.records import Records
from gateway.store.connection import Store
from gateway.store.documents import Change, Documents
from gateway.store.holdings_index import HoldingsIndex
from gateway.wiring import new_id
from tests.integration.dns.conftest import MARKERS, zone_at
from tests.integration.dns.hand import Hand
from tests.lab.bind import BindPair
from tests.lab.redis import RedisProcess

ONE = DnsRecord(type="A", value="198.51.100.1", ttl=300)
TWO = DnsRecord(type="A", value="198.51.100.2", ttl=300)

Meanwhile = Callable[[], Awaitable[object]]


def now_ms() -> int:
    return time.time_ns() // 1_000_000


class After(Exchange):
    """Runs `meanwhile`, once, after the first UPDATE that changes something was answered."""

    def __init__(self) -> None:
        super().__init__()
        self.meanwhile: Meanwhile | None = None

    async def ask(
        self, peer: Peer, request: dns.message.Message, *, over: Over, deadline: float
    ) -> dns.message.Message:
        reply = await super().ask(peer, request, over=over, deadline=deadline)
        meanwhile = self.meanwhile
        if meanwhile and request.opcode() == dns.opcode.UPDATE and request.sections[2]:
            self.meanwhile = None
            await meanwhile()
        return reply


class Site:
    """One process's parts, for one ownership of a client that exists."""

    def __init__(self, store: Store, bind: BindPair, label: str) -> None:
        self.documents = Documents(store)
        self.index = HoldingsIndex(store)
        self.clients = ClientStore(store)
        self.exchange = After()
        publisher = Publisher(Zones([zone_at(bind.primary, bind.tsig)]), MARKERS, self.exchange)
        holds = Holds(self.documents, self.index, now_ms)
        self.records = Records(self.documents, holds, publisher, new_id)
        self.hand = Hand.at(bind)
        client_id = ClientId(f"client-{label}")
        self.owner = Owner(client_id, AppId("app"), Hostname(f"{label}.example.test"))

    async def make_client(self) -> None:
        spec = ClientSpec(
            client_id=self.owner.client_id,
            client_type="test",
            hostname_patterns=(self.owner.hostname,),
            capabilities=frozenset(),
        )
        token = new_client_token(self.owner.client_id)
        await self.clients.change(self.owner.client_id, lambda _: created(spec, token, now_ms()))

    async def publish(self, record: DnsRecord) -> str:
        return (await self.records.publish(self.owner, record)).status

    async def withdraw(self) -> str:
        return (await self.records.withdraw(self.owner)).status

    async def assert_agreed(self, *, held: bool) -> None:
        """Document, index and zone all say the same."""
        document = await self.documents.read(self.owner.hostname)
        entries = [name for name, _ in await self.index.entries(self.owner.client_id)]
        in_zone = await asyncio.to_thread(self.hand.records, self.owner.hostname)
        assert (document.holder is not None) is held
        assert (document.record is not None) is held
        assert (self.owner.hostname in entries) is held
        assert bool(in_zone) is held


@pytest.fixture
async def site(redis_server: RedisProcess, bind: BindPair, fresh_label: str) -> AsyncIterator[Site]:
    store = Store(redis_server.url)
    site = Site(store, bind, fresh_label)
    await site.make_client()
    yield site
    await store.close()


async def test_publish_within_a_withdrawal_stays_held_or_goes_with_it(site: Site) -> None:
    await site.publish(ONE)
    site.exchange.meanwhile = lambda: site.publish(ONE)
    assert await site.withdraw() == "managed-deleted"
    await site.assert_agreed(held=False)


async def test_withdrawal_within_a_replacement_is_followed_by_the_record(site: Site) -> None:
    await site.publish(ONE)
    site.exchange.meanwhile = site.withdraw
    assert await site.publish(TWO) == "managed-created"
    await site.assert_agreed(held=True)


async def test_withdrawal_within_a_first_publication_is_followed_by_the_record(site: Site) -> None:
    site.exchange.meanwhile = site.withdraw
    assert await site.publish(ONE) == "managed-created"
    await site.assert_agreed(held=True)


async def test_second_first_publication_keeps_what_the_first_has_published(site: Site) -> None:
    site.exchange.meanwhile = lambda: site.publish(TWO)
    assert await site.publish(ONE) == "managed-created"
    await site.assert_agreed(held=True)


async def test_worker_busy_on_the_document_does_not_keep_a_withdrawn_hostname(site: Site) -> None:
    await site.publish(ONE)

    async def work() -> None:
        await site.documents.change(
            site.owner.hostname, lambda now: Change({"fence": now.fence + 1})
        )

    site.exchange.meanwhile = work
    assert await site.withdraw() == "managed-deleted"
    await site.assert_agreed(held=False)


async def test_removal_of_the_client_takes_along_what_was_just_being_published(site: Site) -> None:
    await site.publish(ONE)

    async def remove() -> None:
        await site.withdraw()
        assert await site.clients.drop(site.owner.client_id)

    site.exchange.meanwhile = remove
    with pytest.raises(Unauthorized):
        await site.publish(TWO)
    await site.assert_agreed(held=False)


async def test_hostname_taken_while_it_is_being_left_stays_in_the_index(site: Site) -> None:
    await site.publish(ONE)
    seen = await site.documents.read(site.owner.hostname)
    # What a slow withdrawal does last, after another call has taken the hostname again.
    await site.withdraw()
    given_up = await site.documents.read(site.owner.hostname)
    await site.publish(ONE)
    holds = Holds(site.documents, site.index, lambda: now_ms() + 1_000)
    assert seen.holder is not None
    await holds.forget(given_up, seen.holder)
    await site.assert_agreed(held=True)
