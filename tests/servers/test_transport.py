"""What travels between the gateway and each kind of server: keys, clocks, transports, restarts."""

import re
import time
from collections.abc import Callable
from dataclasses import replace

import dns.query
import dns.rcode
import dns.tsig
import dns.update
import pytest

from gateway.dns.errors import DnsFault
from gateway.dns.exchange import Exchange
from gateway.dns.health import check_zone, refused_types
from gateway.dns.publisher import Publisher
from gateway.dns.transfer import read_zone
from gateway.dns.zones import TsigKey, Zone, Zones
from tests.integration.dns.conftest import (
    MARKERS,
    V4,
    V4_OTHER,
    V6,
    Caller,
    marker_of,
    owner_of,
    set_clock,
    soon,
    zone_at,
)
from tests.integration.dns.hand import Hand
from tests.integration.dns.servers import Meddling, lossy_line
from tests.integration.dns.test_faults import IMPATIENT, lose_first, spoil_first
from tests.lab.dns_server import DnsServer
from tests.servers.conftest import Tells
from tests.servers.eyes import Eyes, said
from tests.servers.test_records import kinds

LIMIT_SECONDS = 5.0

WRONG_KEYS = {
    "a key of an unknown name": TsigKey("nobody", "hmac-sha256", b"x" * 32),
    "a key with another secret": TsigKey("gateway", "hmac-sha256", b"y" * 32),
    "a key with another algorithm": TsigKey("gateway", "hmac-sha512", b"x" * 64),
}


@pytest.mark.parametrize("behaviour", WRONG_KEYS)
async def test_wrong_key_fails_and_says_so(
    caller: Caller, zone: Zone, tells: Tells, behaviour: str
) -> None:
    key = WRONG_KEYS[behaviour]
    outcome = await caller.through(replace(zone, key=key)).publish(V4)
    assert not outcome.unknown
    assert outcome.retry_after_seconds is not None
    assert key.name in outcome.detail
    tells(behaviour, f"{kinds(outcome)}: {said(outcome.detail)}")


async def test_clock_that_is_off(
    monkeypatch: pytest.MonkeyPatch, caller: Caller, zone: Zone, tells: Tells
) -> None:
    told = set()
    for clock in (lambda: time.time() + 3600, lambda: time.time() - 3600):
        set_clock(monkeypatch, clock)
        outcome = await caller.publish(V4)
        health = await check_zone(Exchange(), zone, soon())
        assert not health.ok
        is_told = re.search(r"is \d+ s (ahead of|behind)", outcome.detail) is not None
        assert is_told == (health.clock_skew_seconds is not None)
        by = ", and by how much" if is_told else ""
        told.add(f"{kinds(outcome)}: {said(outcome.detail)}{by}")
    tells("a clock that is an hour off", "; ".join(sorted(told)))


async def test_clock_that_is_off_by_less_than_is_refused(
    monkeypatch: pytest.MonkeyPatch, zone: Zone, tells: Tells
) -> None:
    """A server that signs with the time it was asked at lets a clock look right that is not."""
    set_clock(monkeypatch, lambda: time.time() + 100)
    health = await check_zone(Exchange(), zone, soon())
    assert health.ok
    skew = health.clock_skew_seconds
    is_told = skew is not None and abs(skew + 100) <= 2
    told = "tells by how much" if is_told else "does not tell its clock"
    tells("gateway check, of a clock that is 100 s off", f"ok, {told}")


def test_unsigned_update_is_refused(
    server: DnsServer, hostname: str, eyes: Eyes, tells: Tells
) -> None:
    update = dns.update.UpdateMessage("example.test")
    update.add(f"{hostname}.", 60, "A", "203.0.113.7")
    host, port = server.primary
    reply = dns.query.tcp(update, host, port=port, timeout=LIMIT_SECONDS)
    assert eyes.records(hostname) == set()
    tells("an update without a signature", dns.rcode.to_text(reply.rcode()))


async def test_zone_that_the_server_does_not_have(
    server: DnsServer, fresh_label: str, tells: Tells
) -> None:
    zone = zone_at(server.primary, server.tsig, "no-zone.test")
    publisher = Publisher(Zones([zone]), MARKERS, Exchange())
    outcome = await Caller(publisher, owner_of(f"{fresh_label}.no-zone.test")).publish(V4)
    tells("a zone that the server does not have", f"{kinds(outcome)}: {said(outcome.detail)}")


async def test_types_that_the_key_may_change(
    server: DnsServer, zone: Zone, hostname: str, eyes: Eyes, tells: Tells
) -> None:
    assert await refused_types(Exchange(), zone, soon()) == ()
    key = server.tsig.key()
    update = dns.update.UpdateMessage("example.test", keyring=key)
    update.add(f"{hostname}.", 60, "MX", "10 mail.example.org.")
    host, port = server.primary
    try:
        reply = dns.query.tcp(update, host, port=port, timeout=LIMIT_SECONDS)
        told = dns.rcode.to_text(reply.rcode())
    except dns.tsig.PeerBadKey:
        told = "BADKEY"
    assert bool(eyes.records(hostname)) == (told == "NOERROR")
    tells("MX added with the gateway's key, as configured above", told)


async def test_healthy_zone_is_ok_and_unchanged(zone: Zone, eyes: Eyes, tells: Tells) -> None:
    serial = eyes.serial()
    health = await check_zone(Exchange(), zone, soon())
    assert health.ok
    tells("gateway check", f"ok; serial + {eyes.serial() - serial}")


async def test_messages_of_a_create_and_an_unchanged(
    caller: Caller, zone: Zone, tells: Tells
) -> None:
    exchange = Meddling(lambda n: None)
    far = caller.through(zone, exchange)
    await far.publish(V4)
    await far.publish(V4)
    end = exchange.asked.index("udp update") + 1
    create = ", ".join(exchange.asked[:end])
    tells("messages of a create, and of the same again", f"{create}; {len(exchange.asked[end:])}")


async def test_update_too_large_for_a_datagram_goes_over_tcp(
    caller: Caller, hand: Hand, zone: Zone, tells: Tells
) -> None:
    await caller.publish(V4)
    hand.add(*(f'{caller.hostname} 900 TXT "{n:03}{"x" * 100}"' for n in range(20)))
    exchange = Meddling(lambda n: None)
    outcome = await caller.through(zone, exchange).publish(V6)
    assert exchange.asked[-1] == "tcp update"
    tells("an update too large for a datagram", f"{kinds(outcome)}, by TCP")


async def test_any_over_tcp(caller: Caller, eyes: Eyes, hand: Hand, tells: Tells) -> None:
    await caller.publish(V4)
    seen = hand.records(caller.hostname)
    is_whole = seen == eyes.records(caller.hostname)
    tells("ANY over TCP", "every RRset" if is_whole else f"{len(seen)} RRset")


async def test_transfer_of_the_zone(
    server: DnsServer, zone: Zone, caller: Caller, tells: Tells
) -> None:
    await caller.publish(V4)
    assert caller.hostname in (await read_zone(Exchange(), zone)).marked
    hands = zone_at(server.primary, server.hand)
    with pytest.raises(DnsFault) as caught:
        await read_zone(Exchange(), hands)
    told = said(caught.value.detail)
    tells("AXFR with the gateway's key, with a key without that right", f"whole, {told}")


@pytest.mark.parametrize(
    ("behaviour", "change"),
    [
        ("the reply to an update lost: create, replace", lose_first),
        ("the reply's signature spoilt: create, replace", spoil_first),
    ],
)
async def test_answer_is_true_when_the_first_reply_proves_nothing(
    server: DnsServer,
    hostname: str,
    eyes: Eyes,
    tells: Tells,
    behaviour: str,
    change: Callable[[int, bytes], bytes | None],
) -> None:
    owner, outcomes = owner_of(hostname), []
    for record in (V4, V4_OTHER):
        async with lossy_line(server.primary, change, with_tcp=True) as endpoint:
            zones = Zones([zone_at(endpoint, server.tsig)])
            caller = Caller(Publisher(zones, MARKERS, IMPATIENT), owner)
            outcomes.append(await caller.publish(record))
        assert eyes.records(hostname) == {
            f"300 A {record.value}",
            f"300 {marker_of(owner, record)}",
        }
    tells(behaviour, kinds(*outcomes))


async def test_records_outlive_a_crash_of_the_server(
    caller: Caller, eyes: Eyes, crash: Callable[[], None], tells: Tells
) -> None:
    await caller.publish(V4)
    before, serial = eyes.records(caller.hostname), eyes.serial()
    crash()
    assert (eyes.records(caller.hostname), eyes.serial()) == (before, serial)
    outcomes = [await caller.publish(V4), await caller.publish(V6)]
    tells("the server killed and started: again, replace", kinds(*outcomes))
