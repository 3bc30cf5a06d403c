"""What `gateway check` and the readiness page are told of a zone's primary."""

import asyncio
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.dns.exchange import Exchange
from gateway.dns.health import (
    Silence,
    Trouble,
    check_zone,
    probe_zone,
    refused_types,
    silent_servers,
)
from gateway.dns.zones import Endpoint, TsigKey, Zone
from gateway.http.health import PartUnknown
from gateway.probes import name_servers_probe
from tests.integration.dns.conftest import set_clock, soon, zone_at
from tests.integration.dns.hand import Hand
from tests.integration.dns.lone_bind import lone_bind
from tests.lab.bind import BindPair
from tests.lab.ports import LOOPBACK, free_port
from tests.lab.powerdns import PowerDnsServer


async def test_good_zone_is_ok_and_unchanged(zone: Zone, hand: Hand) -> None:
    serial = hand.serial("example.test")
    for health in (
        await probe_zone(Exchange(), zone, soon()),
        await check_zone(Exchange(), zone, soon()),
    ):
        assert health.ok
        assert health.clock_skew_seconds is not None
        assert abs(health.clock_skew_seconds) <= 2
    assert hand.serial("example.test") == serial


async def test_dead_server_is_told(bind: BindPair) -> None:
    health = await check_zone(
        Exchange(), zone_at(Endpoint(LOOPBACK, free_port()), bind.tsig), soon()
    )
    assert (health.ok, health.clock_skew_seconds) == (False, None)
    assert health.trouble is Trouble.SILENT
    assert "refused" in health.detail


@pytest.mark.parametrize(
    ("name", "algorithm", "words", "trouble"),
    [
        ("nobody", "hmac-sha256", "the key nobody with hmac-sha256", Trouble.KEY),
        ("gateway", "hmac-sha512", "the key gateway with hmac-sha512", Trouble.KEY),
        ("gateway", "hmac-sha256", "the secret differs", Trouble.SIGNATURE),
    ],
)
async def test_wrong_key_is_told_by_what_is_wrong_with_it(
    zone: Zone, name: str, algorithm: str, words: str, trouble: Trouble
) -> None:
    wrong = replace(zone, key=TsigKey(name, algorithm, b"x" * 64))
    health = await check_zone(Exchange(), wrong, soon())
    assert (health.ok, health.trouble) == (False, trouble)
    assert words in health.detail


@pytest.mark.parametrize("ours", [200, -200, 3600])
async def test_skewed_clock_is_measured(
    monkeypatch: pytest.MonkeyPatch, zone: Zone, ours: int
) -> None:
    set_clock(monkeypatch, lambda: time.time() + ours)
    health = await check_zone(Exchange(), zone, soon())
    assert health.ok == (abs(ours) < 300)
    assert health.trouble is (None if health.ok else Trouble.CLOCK)
    assert health.clock_skew_seconds is not None
    assert abs(health.clock_skew_seconds + ours) <= 2


@pytest.mark.parametrize(
    ("ours", "skew_seconds", "is_off"), [(0, 0.0, False), (20, 0.0, False), (100, None, True)]
)
async def test_clock_of_a_server_that_repeats_our_time_is_found_out_by_what_it_takes(
    monkeypatch: pytest.MonkeyPatch,
    powerdns: PowerDnsServer,
    ours: int,
    skew_seconds: float | None,
    is_off: bool,
) -> None:
    set_clock(monkeypatch, lambda: time.time() + ours)
    health = await check_zone(Exchange(), zone_at(powerdns.primary, powerdns.tsig), soon())
    assert health.ok
    assert (health.clock_skew_seconds, health.is_clock_off) == (skew_seconds, is_off)


@pytest.fixture(scope="module")
def powerdns(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PowerDnsServer]:
    server = PowerDnsServer(tmp_path_factory.mktemp("powerdns"), ["example.test"])
    server.start()
    yield server
    server.stop()


async def test_zone_that_the_server_does_not_have_is_told(bind: BindPair) -> None:
    health = await check_zone(Exchange(), zone_at(bind.primary, bind.tsig, "no-zone.test"), soon())
    assert not health.ok
    assert "REFUSED" in health.detail
    assert health.trouble is Trouble.REFUSES


async def test_name_inside_another_zone_is_no_zone(bind: BindPair) -> None:
    health = await check_zone(
        Exchange(), zone_at(bind.primary, bind.tsig, "ns1.example.test"), soon()
    )
    assert not health.ok
    assert "does not serve" in health.detail


async def test_missing_permission_to_update_is_told(tmp_path: Path) -> None:
    with lone_bind(tmp_path, {"parent.test": ""}, permission="allow-update { none; };") as server:
        zone = zone_at(server.primary, server.tsig, "parent.test")
        assert (await probe_zone(Exchange(), zone, soon())).ok
        health = await check_zone(Exchange(), zone, soon())
    assert not health.ok
    assert "REFUSED" in health.detail
    assert "update" in health.detail
    assert health.trouble is Trouble.TAKES_NO_UPDATES


@pytest.mark.parametrize(
    ("granted", "refused"),
    [
        ("gateway zonesub A AAAA TXT", ()),
        ("gateway zonesub A AAAA", ("TXT",)),
        ("gateway zonesub TXT", ("A", "AAAA")),
        ("gateway name www.example.test A AAAA TXT", ("A", "AAAA", "TXT")),
    ],
)
async def test_types_that_the_key_may_not_change_are_told_without_a_write(
    tmp_path: Path, granted: str, refused: tuple[str, ...]
) -> None:
    policy = f"update-policy {{ grant {granted}; }};"
    with lone_bind(tmp_path, {"example.test": ""}, permission=policy) as server:
        zone = zone_at(server.primary, server.tsig)
        assert await refused_types(Exchange(), zone, soon()) == refused
        assert not await asyncio.to_thread(lambda: list(tmp_path.glob("**/*.jnl")))


async def test_name_servers_that_do_not_answer_are_named(bind: BindPair) -> None:
    good = zone_at(bind.primary, bind.tsig, port=bind.nameserver_port)
    assert await silent_servers(Exchange(), good, soon()) == Silence((), is_everywhere=False)
    nobody = free_port()
    elsewhere = replace(good, nameserver_port=nobody)
    expected = (f"ns1.example.test:{nobody}", f"ns2.example.test:{nobody}")
    assert await silent_servers(Exchange(), elsewhere, soon()) == Silence(
        expected, is_everywhere=True
    )


async def test_one_server_that_does_not_answer_is_not_silence_everywhere(bind: BindPair) -> None:
    dead = Endpoint(LOOPBACK, free_port())
    zone = replace(zone_at(bind.primary, bind.tsig), servers=(Endpoint(*bind.primary), dead))
    assert await silent_servers(Exchange(), zone, soon()) == Silence(
        (str(dead),), is_everywhere=False
    )


async def test_name_servers_that_no_primary_tells_of_are_neither_well_nor_silent(
    bind: BindPair,
) -> None:
    good = zone_at(bind.primary, bind.tsig, port=bind.nameserver_port)
    await name_servers_probe(Exchange(), good)()
    nobody_tells = zone_at(Endpoint(LOOPBACK, free_port()), bind.tsig)
    with pytest.raises(PartUnknown):
        await name_servers_probe(Exchange(), nobody_tells)()
