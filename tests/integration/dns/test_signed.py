"""Signed zones: NSEC and NSEC3, and BIND's inline signing, where answers lag behind updates."""

import asyncio
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from dns.rcode import Rcode
from dns.rdatatype import RdataType

from gateway.contract import DnsRecord
from gateway.dns.challenges import Challenges, ChallengeTarget
from gateway.dns.exchange import Exchange, Over
from gateway.dns.names import to_name
from gateway.dns.outcome import Outcome, OutcomeKind
from gateway.dns.publisher import Publisher
from gateway.dns.reading import Reply
from gateway.dns.records import RRset, address_rdata
from gateway.dns.rendering import Request
from gateway.dns.replies import Peer
from gateway.dns.update import NameFree, RRsetIs, send_update
from gateway.dns.zones import Endpoint, Zone, Zones
from tests.integration.dns.conftest import (
    MARKERS,
    V4,
    V4_OTHER,
    V6,
    Caller,
    caller_at,
    marker_of,
    owner_of,
    propagated,
    soon,
    zone_at,
)
from tests.integration.dns.hand import Hand
from tests.integration.dns.lone_bind import LoneBind, bind_with, documented_bind, signed_bind
from tests.lab.ports import LOOPBACK, free_port
from tests.lab.process import wait_until

CREATED, UPDATED = OutcomeKind.CREATED, OutcomeKind.UPDATED
UNCHANGED, DELETED = OutcomeKind.UNCHANGED, OutcomeKind.DELETED
CONFLICT = OutcomeKind.CONFLICT

NSEC3 = """
dnssec-policy nsec3 {
  keys { csk lifetime unlimited algorithm ecdsap256sha256; };
  nsec3param iterations 0 optout no salt-length 0;
};
"""
SIGNINGS = {
    "inline, NSEC": ("dnssec-policy default; inline-signing yes;", ""),
    "inline, NSEC3": ("dnssec-policy nsec3; inline-signing yes;", NSEC3),
    "in place, NSEC3": ("dnssec-policy nsec3; inline-signing no;", NSEC3),
}


@pytest.fixture(scope="module", params=SIGNINGS)
def signed(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LoneBind]:
    signing, statements = SIGNINGS[request.param]
    folder = tmp_path_factory.mktemp("signed")
    zones = {"example.test": ""}
    with signed_bind(folder, zones, signing, statements=statements) as server:
        yield server


@pytest.fixture
def zone(signed: LoneBind) -> Zone:
    return zone_at(signed.primary, signed.tsig, port=signed.primary[1])


@pytest.fixture
def hand(signed: LoneBind) -> Hand:
    return Hand(signed.primary, signed.tsig)


@pytest.fixture
def caller(zone: Zone, hostname: str) -> Caller:
    return caller_at(hostname, zone)


async def holds(zone: Zone, hostname: str, record: DnsRecord | None) -> bool:
    """Does the zone that updates are judged by hold this address at the name, or nothing?"""
    name = to_name(hostname)
    if record is None:
        rcode = await send_update(Exchange(), zone, (NameFree(name),), (), deadline=soon())
    else:
        address = address_rdata(record.type, record.value)
        seen = RRsetIs(name, RRset.of(RdataType[record.type], 1, [address]))
        rcode = await send_update(Exchange(), zone, (seen,), (), deadline=soon())
    return rcode == Rcode.NOERROR


async def served(hand: Hand, hostname: str, expected: set[str]) -> None:
    """Wait until the signed zone answers exactly this, DNSSEC's own apart."""
    await asyncio.to_thread(
        wait_until,
        lambda: (
            {
                each
                for each in hand.records(hostname)
                if each.split()[1] not in ("RRSIG", "NSEC", "NSEC3")
            }
            == expected
        ),
        f"{hostname} is {expected}",
    )


class OneOwner:
    """Publishes and withdraws at random, and knows what the answer has to be."""

    def __init__(self, caller: Caller, seed: int) -> None:
        self.caller = caller
        self.current: DnsRecord | None = None
        self._random = random.Random(seed)  # noqa: S311 (a walk, not a secret)

    async def act(self) -> None:
        wanted = self._random.choice((V4, V4_OTHER, V6, None))
        outcome = await (self.caller.publish(wanted) if wanted else self.caller.withdraw())
        assert (outcome.kind, outcome.detail) == (self._due(wanted), outcome.detail)
        self.current = wanted

    def _due(self, wanted: DnsRecord | None) -> OutcomeKind:
        if wanted is None:
            return DELETED
        if self.current is None:
            return CREATED
        return UNCHANGED if wanted == self.current else UPDATED


async def test_every_answer_to_one_hasty_owner_is_true(caller: Caller, zone: Zone) -> None:
    owner = OneOwner(caller, 1)
    for _ in range(200):
        await owner.act()
    assert await holds(zone, caller.hostname, owner.current)


async def test_every_answer_to_many_hasty_owners_is_true(caller: Caller, zone: Zone) -> None:
    async def run(number: int) -> None:
        hostname = f"n{number}.{caller.hostname}"
        owner = OneOwner(Caller(caller.publisher, owner_of(hostname)), number)
        for _ in range(10):
            await owner.act()
        assert await holds(zone, hostname, owner.current)

    await asyncio.gather(*(run(number) for number in range(20)))


async def test_ttl_that_is_set_back_at_once_is_set_back(caller: Caller, hand: Hand) -> None:
    longer = DnsRecord(type="A", value=V4.value, ttl=900)
    for record in (V4, longer, V4, longer, V4):
        assert (await caller.publish(record)).record == record
    await served(hand, caller.hostname, {f"300 A {V4.value}", f"300 {marker_of(caller.owner, V4)}"})


async def test_unchanged_writes_nothing(caller: Caller, zone: Zone, hand: Hand) -> None:
    await caller.publish(V4)
    published = {f"300 A {V4.value}", f"300 {marker_of(caller.owner, V4)}"}
    await served(hand, caller.hostname, published)
    serial = hand.serial("example.test")
    kinds = [(await caller.publish(V4)).kind for _ in range(3)]
    assert (await caller.inspect()).kind is OutcomeKind.OURS
    assert kinds == [UNCHANGED] * 3
    assert hand.serial("example.test") == serial


async def test_foreign_record_is_a_conflict_shown_without_signatures(
    caller: Caller, hand: Hand
) -> None:
    hand.add(f"{caller.hostname} 300 A 203.0.113.7")
    for outcome in (await caller.publish(V4), await caller.inspect()):
        assert outcome.kind is CONFLICT
        assert [(each.type, each.value) for each in outcome.found] == [("A", "203.0.113.7")]


async def test_name_with_signatures_and_proofs_only_is_free(caller: Caller, hand: Hand) -> None:
    """An empty non-terminal has an NSEC or NSEC3 of its own."""
    hand.add(f"below.{caller.hostname} 300 A 203.0.113.7")
    await served(hand, f"below.{caller.hostname}", {"300 A 203.0.113.7"})
    assert (await caller.inspect()).kind is OutcomeKind.FREE
    assert (await caller.publish(V4)).kind is CREATED


@pytest.mark.parametrize("record", ["A 203.0.113.7", 'TXT "wild"', "CNAME elsewhere.example.org."])
async def test_name_under_a_wildcard_is_free_published_and_withdrawn(
    caller: Caller, hand: Hand, record: str
) -> None:
    hand.add(f"*.{caller.hostname} 300 {record}")
    below = Caller(caller.publisher, owner_of(f"relay.{caller.hostname}"))
    await served(hand, below.hostname, {f"300 {record}"})
    assert (await below.inspect()).kind is OutcomeKind.FREE
    kinds = [
        (await below.withdraw(remembered=V4)).kind,
        (await below.publish(V4)).kind,
        (await below.publish(V4)).kind,
        (await below.withdraw()).kind,
        (await below.withdraw()).kind,
    ]
    assert kinds == [DELETED, CREATED, UNCHANGED, DELETED, DELETED]
    await served(hand, below.hostname, {f"300 {record}"})


async def test_copy_of_a_record_that_a_wildcard_answers_is_made_a_real_one(
    caller: Caller, hand: Hand
) -> None:
    below = Caller(caller.publisher, owner_of(f"relay.{caller.hostname}"))
    copied = (f"300 A {V4.value}", f"300 {marker_of(below.owner, V4)}")
    hand.add(*(f"*.{caller.hostname} {record}" for record in copied))
    await served(hand, below.hostname, set(copied))
    assert (await below.publish(V4)).kind is CREATED


async def test_record_that_just_came_under_a_wildcard_is_the_conflict(
    caller: Caller, hand: Hand
) -> None:
    name = f"relay.{caller.hostname}"
    hand.add(f"*.{caller.hostname} 300 A 203.0.113.7")
    await served(hand, name, {"300 A 203.0.113.7"})
    hand.add(f"{name} 300 AAAA 2001:db8:bad::1")
    outcome = await Caller(caller.publisher, owner_of(name)).publish(V4)
    assert outcome.kind is CONFLICT
    assert [each.type for each in outcome.found] == ["AAAA"]


async def test_challenge_that_is_removed_and_added_at_once_is_there(
    zone: Zone, hostname: str
) -> None:
    challenges = Challenges(Zones([zone]), Exchange())
    target = await challenges.locate(hostname, soon())
    for _ in range(10):
        await challenges.publish(target, "value", soon())
        await challenges.remove(target, "value", soon())
    await challenges.publish(target, "value", soon())
    await propagated(target, "value")


async def test_answers_that_need_tcp_are_whole(caller: Caller, hand: Hand, zone: Zone) -> None:
    foreign = {f'300 TXT "{n:03}{"x" * 100}"' for n in range(40)}
    challenge = f"_acme-challenge.{caller.hostname}"
    for name in (caller.hostname, challenge):
        hand.add(*(f"{name} {each}" for each in foreign))
        await served(hand, name, foreign)
    assert (await caller.publish(V4, held=True)).kind is CREATED
    target = ChallengeTarget(zone, challenge)
    await Challenges(Zones([zone]), Exchange()).publish(target, "value", soon())
    await propagated(target, "value")
    assert (await caller.withdraw()).kind is DELETED
    await served(hand, caller.hostname, foreign)


class Behind(Exchange):
    """Answers the next `times` readings as it answered the last one before; the rest is real.

    A fake for what BIND shows for some milliseconds at a time of its own.
    """

    def __init__(self) -> None:
        super().__init__()
        self.times = 0.0
        self._last: Reply | None = None

    async def ask(self, peer: Peer, request: Request, *, over: Over, deadline: float) -> Reply:
        if request.rdtype != RdataType.ANY:
            return await super().ask(peer, request, over=over, deadline=deadline)
        if self._last is not None and self.times > 0:
            self.times -= 1
            return self._last
        self._last = await super().ask(peer, request, over=over, deadline=deadline)
        return self._last


class TestReadingsThatStayBehind:
    @pytest.fixture
    def exchange(self) -> Behind:
        return Behind()

    @pytest.fixture
    def behind(self, caller: Caller, zone: Zone, exchange: Behind) -> Caller:
        return caller.through(zone, exchange)

    async def test_record_that_is_not_seen_yet_is_withdrawn(
        self, behind: Caller, exchange: Behind, zone: Zone
    ) -> None:
        await behind.publish(V4)
        exchange.times = 6
        assert (await behind.withdraw()).kind is DELETED
        assert await holds(zone, behind.hostname, None)

    async def test_record_that_is_seen_still_is_replaced(
        self, behind: Caller, caller: Caller, hand: Hand, exchange: Behind, zone: Zone
    ) -> None:
        await behind.publish(V4)
        await served(
            hand, caller.hostname, {f"300 A {V4.value}", f"300 {marker_of(caller.owner, V4)}"}
        )
        await behind.publish(V4_OTHER)
        exchange.times = 6
        assert (await behind.publish(V4)).kind is UPDATED
        assert await holds(zone, behind.hostname, V4)

    async def test_record_that_is_seen_no_more_but_is_there_is_no_conflict_with_itself(
        self, behind: Caller, hand: Hand, exchange: Behind
    ) -> None:
        """The owner's own record refuses "name not in use" while a wildcard is all that is seen."""
        hand.add(f"*.{behind.hostname} 300 A 203.0.113.7")
        below = Caller(behind.publisher, owner_of(f"relay.{behind.hostname}"))
        await served(hand, below.hostname, {"300 A 203.0.113.7"})
        assert (await below.publish(V4)).kind is CREATED
        exchange.times = 6
        assert (await below.publish(V4)).kind is UNCHANGED

    async def test_zone_that_never_catches_up_is_told_in_time(
        self, behind: Caller, exchange: Behind, zone: Zone
    ) -> None:
        await behind.publish(V4)
        exchange.times = float("inf")
        outcome: Outcome = await behind.publisher.withdraw(
            behind.owner, remembered=V4, deadline=asyncio.get_running_loop().time() + 1.0
        )
        assert outcome.kind is OutcomeKind.UNAVAILABLE
        assert outcome.retry_after_seconds is not None
        assert "older data" in outcome.detail
        assert await holds(zone, behind.hostname, V4)


async def test_documented_signed_zone_is_served(tmp_path: Path) -> None:
    with documented_bind(tmp_path, "signed", {"example.com": ""}) as server:
        await asyncio.to_thread(wait_until, lambda: server.signs("example.com"), "it is signed")
        zone = zone_at(server.primary, server.tsig, "example.com")
        publisher = Publisher(Zones([zone]), MARKERS, Exchange())
        caller = Caller(publisher, owner_of("relay.example.com"))
        kinds = [(await caller.publish(record)).kind for record in (V4, V4, V6)]
        assert [*kinds, (await caller.withdraw()).kind] == [CREATED, UNCHANGED, UPDATED, DELETED]


async def test_challenge_of_a_signed_zone_is_seen_at_its_secondary(
    tmp_path: Path,
) -> None:
    port = free_port()
    signing = (
        "dnssec-policy default; inline-signing yes; notify-delay 0;"
        f" notify explicit; also-notify {{ {LOOPBACK} port {port}; }};"
    )
    (tmp_path / "secondary").mkdir()
    with signed_bind(tmp_path, {"example.test": ""}, signing) as primary:
        source = "{} port {}".format(*primary.primary)
        config = (
            'zone "example.test" { type secondary; file "copy";'
            f" primaries {{ {source} key gateway; }}; }};"
        )
        with bind_with(
            tmp_path / "secondary",
            [primary.tsig],
            config,
            lambda server: server.signs("example.test"),
            port=port,
        ):
            servers = (Endpoint(*primary.primary), Endpoint(LOOPBACK, port))
            zone = replace(zone_at(primary.primary, primary.tsig), servers=servers)
            challenges = Challenges(Zones([zone]), Exchange())
            target = await challenges.locate("relay.example.test", soon())
            await challenges.publish(target, "value", soon())
            await propagated(target, "value")
