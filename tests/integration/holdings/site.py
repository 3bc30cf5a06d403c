"""One process's parts, joined as the composition root does it, and seams to choose a moment at.

Used by the tests of this folder. Only *when* another call runs is chosen: a seam runs it, once,
before or after something that the real servers are then asked, or have just answered.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence

from gateway.access.clients import ClientStore, created
from gateway.access.provisioning import Provisioning
from gateway.access.tokens import new_client_token
from gateway.certificates.pace import Pace
from gateway.certificates.sealing import Keyring
from gateway.contract import ClientSpec, DnsRecord
from gateway.contract.names import AppId, ClientId, Hostname
from gateway.dns.challenges import Challenges
from gateway.dns.errors import NoReply
from gateway.dns.exchange import Exchange, Over
from gateway.dns.owner import Owner
from gateway.dns.publisher import Publisher
from gateway.dns.reading import Reply
from gateway.dns.rendering import Request
from gateway.dns.replies import Peer
from gateway.dns.update import Update
from gateway.dns.zones import Zones
from gateway.holdings.certificates import Certificates
from gateway.holdings.hold import Holds
from gateway.holdings.orphans import Orphans
from gateway.holdings.records import Records
from gateway.holdings.remembered import remembered_record
from gateway.store.connection import Entry, Store
from gateway.store.documents import Change, Document, Documents, Holder
from gateway.store.holdings_index import HoldingsIndex
from gateway.wiring import new_id
from tests.integration.dns.conftest import MARKERS, zone_at
from tests.integration.dns.hand import Hand
from tests.lab.bind import BindPair

Meanwhile = Callable[[], Awaitable[object]]


def now_ms() -> int:
    return time.time_ns() // 1_000_000


class Seam:
    """A moment that comes several times: what was set runs at the next one, and never again."""

    def __init__(self) -> None:
        self._meanwhile: Meanwhile | None = None
        self.has_come = False

    def set(self, meanwhile: Meanwhile) -> None:
        self._meanwhile = meanwhile

    async def reach(self) -> None:
        meanwhile, self._meanwhile = self._meanwhile, None
        if meanwhile is not None:
            self.has_come = True
            await meanwhile()


class SeamedExchange(Exchange):
    """Seams around the first question, and around the first UPDATE that changes something."""

    def __init__(self) -> None:
        super().__init__()
        self.before = Seam()
        self.after = Seam()
        self.before_update = Seam()
        self.after_update = Seam()

    async def silence(self) -> None:
        """Set at a seam: from there on no server is heard of, until `before` is set anew."""
        self.before.set(self.silence)
        raise NoReply("The DNS server gave no answer in time.")

    async def ask(self, peer: Peer, request: Request, *, over: Over, deadline: float) -> Reply:
        changes = isinstance(request, Update) and bool(request.changes)
        await self.before.reach()
        if changes:
            await self.before_update.reach()
        reply = await super().ask(peer, request, over=over, deadline=deadline)
        if changes:
            await self.after_update.reach()
        await self.after.reach()
        return reply


class Taking:
    """Seams around the taking of a hostname; a step of its own that enters it is before that."""

    def __init__(self) -> None:
        self.before = Seam()
        self.after = Seam()


class SeamedIndex(HoldingsIndex):
    """A seam after a hostname was entered in a step of its own."""

    def __init__(self, store: Store, taking: Taking) -> None:
        super().__init__(store)
        self._taking = taking

    async def enter(self, client_id: ClientId, hostname: Hostname, now_ms: int) -> bool:
        entered = await super().enter(client_id, hostname, now_ms)
        await self._taking.before.reach()
        return entered


class SeamedDocuments(Documents):
    """Seams around the step that takes a hostname and enters it."""

    def __init__(self, store: Store, taking: Taking) -> None:
        super().__init__(store)
        self._taking = taking

    async def commit(
        self, document: Document, change: Change, entry: Entry | None = None
    ) -> Document | None:
        if entry is None:
            return await super().commit(document, change)
        await self._taking.before.reach()
        after = await super().commit(document, change, entry)
        await self._taking.after.reach()
        return after


class SeamedStore(Store):
    """A seam after hashes were read, before their reader goes by them."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.after_read = Seam()

    async def hashes(self, keys: Sequence[str]) -> list[dict[str, str] | None]:
        found = await super().hashes(keys)
        await self.after_read.reach()
        return found


class Site:
    """The parts, for one ownership of a client that exists once `make_client` was called."""

    def __init__(self, store: Store, bind: BindPair, label: str, client: str = "client") -> None:
        self.store = store
        self.taking = Taking()
        self.documents = SeamedDocuments(store, self.taking)
        self.index = SeamedIndex(store, self.taking)
        self.clients = ClientStore(store)
        self.exchange = SeamedExchange()
        zones = Zones([zone_at(bind.primary, bind.tsig)])
        publisher = Publisher(zones, MARKERS, self.exchange)
        self.holds = Holds(self.documents, self.index, now_ms)
        orphans = Orphans(self.documents, self.holds, publisher, now_ms)
        self.records = Records(
            self.documents, self.holds, orphans, publisher, new_id=new_id, now_ms=now_ms
        )
        self.certificates = Certificates(
            self.documents,
            self.holds,
            orphans,
            publisher,
            Challenges(zones, self.exchange),
            Keyring([("only", bytes(32))]),
            Pace(),
            issues=True,
            wake=lambda *_: None,
            new_id=new_id,
            now_ms=now_ms,
        )
        self.provisioning = Provisioning(
            self.clients, self.index, self.documents, self.records, self.certificates, now_ms
        )
        self.hand = Hand.at(bind)
        self._bind, self._label = bind, label
        client_id = ClientId(f"{client}-{label}")
        self.owner = Owner(client_id, AppId("app"), Hostname(f"{label}.example.test"))
        self.holder = Holder(self.owner.client_id, self.owner.app_id)

    async def rival(self) -> "Site":
        """Another client that may have the same hostname."""
        rival = Site(self.store, self._bind, self._label, client="rival")
        await rival.make_client()
        return rival

    def twin(self) -> "Site":
        """The same ownership at another process."""
        return Site(self.store, self._bind, self._label)

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

    async def take(self) -> None:
        """Hold the hostname, as a call does before it touches the zone."""
        intent = {"type": "A", "value": "198.51.100.9", "ttl": 300, "published": False}
        fields = {"record": {**intent, "edition": new_id(), "sinceMs": now_ms()}}
        await self.holds.take(self.owner.hostname, self.holder, lambda _: Change(fields))

    async def in_zone(self) -> set[str]:
        return await asyncio.to_thread(self.hand.records, self.owner.hostname)

    async def assert_agreed(self, *, held: bool) -> None:
        """Document, index and zone all say the same."""
        document = await self.documents.read(self.owner.hostname)
        entries = [name for name, _ in await self.index.entries(self.owner.client_id)]
        assert (document.holder == self.holder) is held
        assert (document.record is not None) is held
        assert (self.owner.hostname in entries) is held
        there = await self.in_zone()
        assert bool(there) is held
        known = remembered_record(document)
        if known is not None:
            assert f"{known.ttl} {known.type} {known.value}" in there
            assert len(there) == 2  # with its marker
