"""Servers that a test starts for itself, with another algorithm or narrower rights."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gateway.dns.exchange import Exchange
from gateway.dns.health import check_zone, refused_types
from gateway.dns.publisher import Publisher
from gateway.dns.zones import Zone, Zones
from tests.integration.dns.conftest import MARKERS, V4, V6, Caller, owner_of, soon, zone_at
from tests.integration.dns.hand import Hand
from tests.integration.dns.lone_bind import lone_bind, signed_bind
from tests.lab.knot import KnotServer
from tests.lab.powerdns import PowerDnsServer
from tests.servers.conftest import Tells
from tests.servers.eyes import said
from tests.servers.test_records import kinds

NAME = "example.test"
ALGORITHMS = ("hmac-sha384", "hmac-sha512")


@contextmanager
def alone(kind: str, folder: Path, algorithm: str) -> Iterator[Zone]:
    folder.mkdir()
    if kind == "bind":
        with lone_bind(folder, {NAME: ""}, algorithm=algorithm) as bind:
            yield zone_at(bind.primary, bind.tsig)
        return
    server = (KnotServer if kind == "knot" else PowerDnsServer)(folder, [NAME], algorithm=algorithm)
    server.start()
    try:
        yield zone_at(server.primary, server.tsig)
    finally:
        server.stop()


async def test_longer_algorithms_sign(tmp_path: Path, kind: str, tells: Tells) -> None:
    outcomes = []
    for algorithm in ALGORITHMS:
        with alone(kind, tmp_path / algorithm, algorithm) as zone:
            publisher = Publisher(Zones([zone]), MARKERS, Exchange())
            outcomes.append(await Caller(publisher, owner_of(f"x.{NAME}")).publish(V4))
    tells("keys of hmac-sha384, hmac-sha512: publish", kinds(*outcomes))


@contextmanager
def signing(kind: str, folder: Path) -> Iterator[tuple[Zone, Hand]]:
    """A server that signs the zone itself, as it does by default."""
    if kind == "bind":
        with signed_bind(folder, {NAME: ""}, "dnssec-policy default; inline-signing yes;") as bind:
            yield zone_at(bind.primary, bind.tsig), Hand(bind.primary, bind.tsig)
        return
    server = (KnotServer if kind == "knot" else PowerDnsServer)(folder, [NAME], signed=True)
    server.start()
    try:
        yield zone_at(server.primary, server.tsig), Hand(server.primary, server.hand)
    finally:
        server.stop()


async def test_zone_that_the_server_signs(tmp_path: Path, kind: str, tells: Tells) -> None:
    with signing(kind, tmp_path) as (zone, hand):
        hand.add(f"foreign.{NAME} 300 A 203.0.113.7", f"*.wild.{NAME} 300 A 203.0.113.7")
        publisher = Publisher(Zones([zone]), MARKERS, Exchange())
        mine = Caller(publisher, owner_of(f"x.{NAME}"))
        outcomes = [await mine.publish(record) for record in (V4, V4, V6)]
        outcomes.append(await mine.withdraw())
        others = [Caller(publisher, owner_of(f"{name}.{NAME}")) for name in ("foreign", "x.wild")]
        outcomes += [await other.publish(V4) for other in others]
        foreign = outcomes[-2].found
    assert [(each.type, each.value) for each in foreign] == [("A", "203.0.113.7")]
    told = kinds(*outcomes)
    tells("a signed zone: publish, again, by AAAA, withdraw, foreign, wildcard", told)


@contextmanager
def forbidding(kind: str, folder: Path) -> Iterator[Zone]:
    """A server that knows the gateway's key and lets it update nothing that it wants to."""
    if kind == "bind":
        with lone_bind(folder, {NAME: ""}, permission="allow-update { none; };") as bind:
            yield zone_at(bind.primary, bind.tsig)
        return
    server: KnotServer | PowerDnsServer
    if kind == "knot":
        server = KnotServer(folder, [NAME], update_types="MX")
    else:
        server = PowerDnsServer(folder, [NAME])
        server.run_commands(f"pdnsutil set-meta {NAME} TSIG-ALLOW-DNSUPDATE {server.hand.name}\n")
    server.start()
    try:
        yield zone_at(server.primary, server.tsig)
    finally:
        server.stop()


async def test_key_without_the_right_to_update(tmp_path: Path, kind: str, tells: Tells) -> None:
    with forbidding(kind, tmp_path) as zone:
        publisher = Publisher(Zones([zone]), MARKERS, Exchange())
        outcome = await Caller(publisher, owner_of(f"x.{NAME}")).publish(V4)
        told = f"{kinds(outcome)}: {said(outcome.detail)}"
    tells("a key without the right to update: publish", told)


async def test_types_that_knot_gives_the_key_no_right_to_are_told(tmp_path: Path) -> None:
    """Knot answers BADKEY to that, as if it did not know the key."""
    server = KnotServer(tmp_path, [NAME], update_types="A, AAAA")
    server.start()
    try:
        zone = zone_at(server.primary, server.tsig)
        assert (await check_zone(Exchange(), zone, soon())).ok
        assert await refused_types(Exchange(), zone, soon()) == ("TXT",)
    finally:
        server.stop()
