"""A Redis and a zone of one's own, one of which may be lost: the parts as they are joined.

Used by the tests of rebuilding, handing over and forgetting.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import cast

from gateway.access.clients import ClientStore, created
from gateway.access.tokens import new_client_token
from gateway.certificates import debts, machine
from gateway.certificates.moves import Moment
from gateway.certificates.states import Debt, DebtKind, Issuance
from gateway.contract import ClientSpec, DnsRecord, SyncDnsRecordResponse
from gateway.contract.names import AppId, ClientId, Hostname
from gateway.dns.marker import MarkerKey, Markers
from gateway.dns.owner import Owner
from gateway.dns.publisher import Publisher
from gateway.dns.zones import Zone, Zones
from gateway.holdings.candidates import Supposed
from gateway.holdings.handing_over import HandedOver
from gateway.holdings.hold import Holds
from gateway.holdings.orphans import Orphans
from gateway.holdings.rebuilding import Finding, ZoneReport
from gateway.holdings.records import Records
from gateway.interventions import build_interventions
from gateway.store.connection import Store
from gateway.store.documents import Change, Document, Holder
from gateway.wiring import Gateway, new_id
from tests.integration.dns.conftest import MARKERS, zone_at
from tests.integration.dns.hand import Hand
from tests.integration.dns.lone_bind import LoneBind
from tests.integration.holdings.site import (
    SeamedDocuments,
    SeamedExchange,
    SeamedIndex,
    Taking,
    now_ms,
)
from tests.lab.dns_server import DnsServer
from tests.lab.redis import RedisProcess, ask_redis

ZONE = "ruin.test"
ADDRESS = DnsRecord(type="A", value="198.51.100.1", ttl=300)
OTHER_ADDRESS = DnsRecord(type="AAAA", value="2001:db8::7", ttl=120)
LOST_KEY = Markers([MarkerKey("lost", b"l" * 32)])


class Ruins:
    """The parts of one process. Every name of a test lies below its label."""

    def __init__(
        self,
        store: Store,
        redis: RedisProcess,
        server: LoneBind | DnsServer,
        label: str,
        zone_name: str = ZONE,
    ) -> None:
        self.redis, self.server, self.label, self.zone_name = redis, server, label, zone_name
        self.taking = Taking()
        self.documents = SeamedDocuments(store, self.taking)
        self.index = SeamedIndex(store, self.taking)
        self.clients = ClientStore(store)
        self.exchange = SeamedExchange()
        self.holds = Holds(self.documents, self.index, now_ms)
        self.hand = Hand(server.primary, server.tsig)
        self.at(zone_at(server.primary, server.tsig, zone_name))

    def at(self, *zones: Zone) -> None:
        """Go on with these zones configured."""
        self.zones = Zones(zones)
        publisher = Publisher(self.zones, MARKERS, self.exchange)
        orphans = Orphans(self.documents, self.holds, publisher, now_ms)
        self.records = Records(
            self.documents, self.holds, orphans, publisher, new_id=new_id, now_ms=now_ms
        )
        parts = SimpleNamespace(
            documents=self.documents,
            holds=self.holds,
            zones=self.zones,
            markers=MARKERS,
            exchange=self.exchange,
            clock=SimpleNamespace(now_ms=now_ms),
        )
        self.interventions = build_interventions(cast("Gateway", parts))
        self.handing_over = self.interventions.handing_over
        self.forgetting = self.interventions.forgetting

    @property
    def zone(self) -> Zone:
        return self.zones.all[0]

    def hostname(self, first: str = "relay") -> Hostname:
        return Hostname(f"{first}.{self.label}.{self.zone_name}")

    def owner(self, client: str = "mine", app: str = "app", first: str = "relay") -> Owner:
        return Owner(ClientId(client), AppId(app), self.hostname(first))

    async def make_client(self, client: str = "mine", pattern: str | None = None) -> None:
        client_id = ClientId(client)
        spec = ClientSpec(
            client_id=client_id,
            client_type="test",
            hostname_patterns=(pattern or f"*.{self.label}.{self.zone_name}",),
            capabilities=frozenset(),
        )
        token = new_client_token(client_id)
        await self.clients.change(client_id, lambda _: created(spec, token, now_ms()))

    async def publish(self, owner: Owner, record: DnsRecord = ADDRESS) -> SyncDnsRecordResponse:
        return await self.records.publish(owner, record)

    def lose_redis(self) -> None:
        ask_redis(self.redis.port, "FLUSHALL")

    async def rebuild(
        self,
        *app_ids: str,
        supposed: Sequence[Supposed] = (),
        names: Sequence[Hostname] = (),
        writes: bool = True,
    ) -> dict[str, Finding]:
        """The findings of this test's names, by their first label."""
        report = await self.report(*app_ids, supposed=supposed, names=names, writes=writes)
        mine = [each for each in report.findings if self.label in each.hostname]
        return {each.hostname.split(".", maxsplit=1)[0]: each for each in mine}

    async def report(
        self,
        *app_ids: str,
        supposed: Sequence[Supposed] = (),
        names: Sequence[Hostname] = (),
        writes: bool = True,
    ) -> ZoneReport:
        clients, _ = await self.clients.all()
        rebuilding = self.interventions.rebuilding(
            clients, map(AppId, app_ids), supposed, writes=writes
        )
        await rebuilding.survey_redis()
        return await rebuilding.rebuild(self.zone, names)

    async def hand_over(self, giver: Owner, taker: Owner) -> HandedOver:
        return await self.handing_over.hand_over(giver, taker, lambda _: None)

    async def document(self, owner: Owner) -> Document:
        return await self.documents.read(owner.hostname)

    async def holder(self, owner: Owner) -> Holder | None:
        return (await self.document(owner)).holder

    async def is_indexed(self, owner: Owner) -> bool:
        entries = await self.index.entries(owner.client_id)
        return owner.hostname in [hostname for hostname, _ in entries]

    async def in_zone(self, owner: Owner) -> set[str]:
        return await asyncio.to_thread(self.hand.records, owner.hostname)

    async def edit(self, *lines: str) -> None:
        """Another person's update."""
        await asyncio.to_thread(self.hand.update, *lines)

    async def put(self, owner: Owner, **fields: object) -> None:
        """Change a document as whoever writes it would."""
        await self.documents.change(owner.hostname, lambda _: Change(fields))

    async def assert_agreed(self, owner: Owner, record: DnsRecord) -> None:
        """Document, index and zone say that the record is the owner's."""
        document = await self.document(owner)
        assert document.holder == holder_of(owner)
        assert document.record is not None
        assert document.record["published"]
        kept = {name: document.record[name] for name in ("type", "value", "ttl")}
        assert kept == record.to_wire()
        assert await self.is_indexed(owner)
        assert await self.in_zone(owner) == in_zone(owner, record)


def holder_of(owner: Owner) -> Holder:
    return Holder(owner.client_id, owner.app_id)


def marked(owner: Owner, record: DnsRecord = ADDRESS, markers: Markers = MARKERS) -> str:
    """A marker of the owner as a line of nsupdate has it."""
    return f'TXT "{markers.sign(owner, record.type, record.value)}"'


def in_zone(owner: Owner, record: DnsRecord) -> set[str]:
    """The record and its marker as `Hand.records` shows them."""
    ttl = record.ttl
    return {f"{ttl} {record.type} {record.value}", f"{ttl} {marked(owner, record)}"}


def challenge_debt(zone: str, hostname: str, value: str = "token") -> Debt:
    name = f"_acme-challenge.{hostname}"
    return Debt(DebtKind.CHALLENGE_RECORD, zone=zone, name=name, value=value)


def debts_as_stored(*owed: Debt) -> tuple[dict[str, object], ...]:
    return debts.as_stored(owed)


def issuance(**changes: object) -> Issuance:
    return replace(machine.request("i", Moment(now_ms(), 0)), **changes)  # type: ignore[arg-type]
