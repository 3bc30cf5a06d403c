"""The parts of `gateway.dns`, built as the composition root does, on the session's BIND pair."""

import asyncio
import base64
import time
from collections.abc import Callable
from types import SimpleNamespace

import dns.message
import pytest

from gateway.contract import DnsRecord
from gateway.contract.names import AppId, ClientId, Hostname, ZoneName
from gateway.dns import signing
from gateway.dns.challenges import ChallengeTarget
from gateway.dns.exchange import Exchange
from gateway.dns.marker import MarkerKey, Markers
from gateway.dns.outcome import Outcome
from gateway.dns.owner import Owner
from gateway.dns.propagation import Look, Propagation
from gateway.dns.publisher import Publisher
from gateway.dns.zones import Endpoint, TsigKey, Zone, Zones
from tests.integration.dns.hand import Hand
from tests.lab.bind import BindPair, Tsig
from tests.lab.process import read_until

DEADLINE_SECONDS = 10.0
MARKERS = Markers([MarkerKey("k1", b"k" * 32)])

V4 = DnsRecord(type="A", value="198.51.100.1", ttl=300)
V4_OTHER = DnsRecord(type="A", value="198.51.100.2", ttl=300)
V6 = DnsRecord(type="AAAA", value="2001:db8::1", ttl=300)


def soon() -> float:
    """The deadline of a call that starts now."""
    return asyncio.get_running_loop().time() + DEADLINE_SECONDS


def set_clock(monkeypatch: pytest.MonkeyPatch, now: Callable[[], float]) -> None:
    """Another clock for signatures on this side; the server's stays."""
    for module in (dns.message, signing):
        monkeypatch.setattr(module, "time", SimpleNamespace(time=now))


def zone_at(
    server: tuple[str, int] | Endpoint, tsig: Tsig, name: str = "example.test", port: int = 53
) -> Zone:
    endpoint = server if isinstance(server, Endpoint) else Endpoint(*server)
    key = TsigKey(tsig.name, tsig.algorithm, base64.b64decode(tsig.secret_base64))
    return Zone(ZoneName(name), endpoint, key, nameserver_port=port)


def owner_of(hostname: str, client: str = "relay", app: str = "app:one") -> Owner:
    return Owner(ClientId(client), AppId(app), Hostname(hostname))


def marker_of(owner: Owner, record: DnsRecord) -> str:
    """The marker as `Hand.records` shows it, without the TTL."""
    return f'TXT "{MARKERS.sign(owner, record.type, record.value)}"'


def missing(look: Look) -> tuple[str, ...]:
    """All that don't answer the value with authority; () is done."""
    return look.lagging + look.silent


async def propagated(target: ChallengeTarget, value: str) -> None:
    """Wait until all servers of the zone answer the value."""
    propagation = Propagation(Exchange(), time.monotonic)
    await read_until(
        lambda: propagation.look(target, value, soon()), lambda look: not missing(look), 20
    )


class Caller:
    """One ownership and the calls it makes, with the arguments that are mostly the same."""

    def __init__(self, publisher: Publisher, owner: Owner) -> None:
        self.publisher = publisher
        self.owner = owner

    @property
    def hostname(self) -> str:
        return self.owner.hostname

    async def publish(
        self, record: DnsRecord = V4, *, held: bool = False, remembered: DnsRecord | None = None
    ) -> Outcome:
        return await self.publisher.publish(
            self.owner, record, held=held, remembered=remembered, deadline=soon()
        )

    async def withdraw(self, remembered: DnsRecord | None = None) -> Outcome:
        return await self.publisher.withdraw(self.owner, remembered=remembered, deadline=soon())

    async def inspect(self) -> Outcome:
        return await self.publisher.inspect(self.owner, deadline=soon())

    def through(self, zone: Zone, exchange: Exchange | None = None) -> "Caller":
        """The same ownership over another way to the server."""
        return Caller(Publisher(Zones([zone]), MARKERS, exchange or Exchange()), self.owner)


def caller_at(hostname: str, *zones: Zone) -> Caller:
    """One ownership where these zones are configured, and calls for it."""
    return Caller(Publisher(Zones(zones), MARKERS, Exchange()), owner_of(hostname))


def shown(caller: Caller, record: DnsRecord, *, marker_ttl: int | None = None) -> set[str]:
    """What `Hand.records` shows of a published record."""
    ttl = marker_ttl or record.ttl
    return {
        f"{record.ttl} {record.type} {record.value}",
        f"{ttl} {marker_of(caller.owner, record)}",
    }


@pytest.fixture
def zone(bind: BindPair) -> Zone:
    return zone_at(bind.primary, bind.tsig, port=bind.nameserver_port)


@pytest.fixture
def net_zone(bind: BindPair) -> Zone:
    return zone_at(bind.primary, bind.tsig, "example.net.test", bind.nameserver_port)


@pytest.fixture
def zones(zone: Zone, net_zone: Zone) -> Zones:
    return Zones([zone, net_zone])


@pytest.fixture
def hand(bind: BindPair) -> Hand:
    return Hand.at(bind)


@pytest.fixture
def hostname(fresh_label: str) -> str:
    return f"{fresh_label}.example.test"


@pytest.fixture
def call(zones: Zones) -> Callable[[str], Caller]:
    publisher = Publisher(zones, MARKERS, Exchange())
    return lambda hostname: Caller(publisher, owner_of(hostname))


@pytest.fixture
def caller(call: Callable[[str], Caller], hostname: str) -> Caller:
    return call(hostname)
