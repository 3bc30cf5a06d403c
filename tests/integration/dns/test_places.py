"""Where a name lies: wildcards that only seem to be there, cuts, DNAMEs and other zones above."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gateway.dns.exchange import Exchange
from gateway.dns.outcome import OutcomeKind
from gateway.dns.publisher import Publisher
from gateway.dns.zones import Zone, Zones
from tests.integration.dns.conftest import (
    MARKERS,
    V4,
    V4_OTHER,
    Caller,
    marker_of,
    owner_of,
    zone_at,
)
from tests.integration.dns.hand import Hand
from tests.integration.dns.lone_bind import LoneBind, lone_bind
from tests.integration.dns.servers import Meddling

CREATED, CONFLICT = OutcomeKind.CREATED, OutcomeKind.CONFLICT
UNAVAILABLE, FREE = OutcomeKind.UNAVAILABLE, OutcomeKind.FREE
WILD = ["A 203.0.113.7", 'TXT "wild"', "CNAME elsewhere.example.org.", "MX 10 mail.test."]
CHILD_FOREIGN = "foreign IN A 203.0.113.7"


@pytest.mark.parametrize("record", WILD)
@pytest.mark.parametrize("held", [False, True])
async def test_name_under_a_wildcard_is_free_and_published(
    call: Callable[[str], Caller], hand: Hand, fresh_label: str, record: str, held: bool
) -> None:
    hand.add(f"*.{fresh_label}.example.test 300 {record}")
    caller = call(f"relay.{fresh_label}.example.test")
    assert hand.records(caller.hostname) == {f"300 {record}"}
    serial = hand.serial("example.test")
    assert (await caller.inspect()).kind is FREE
    assert (await caller.withdraw(remembered=V4)).kind is OutcomeKind.DELETED
    assert hand.serial("example.test") == serial
    assert (await caller.publish(V4, held=held)).kind is CREATED
    assert hand.records(caller.hostname) == {
        f"300 A {V4.value}",
        f"300 {marker_of(caller.owner, V4)}",
    }
    assert (await caller.withdraw()).kind is OutcomeKind.DELETED
    assert hand.records(caller.hostname) == {f"300 {record}"}


async def test_record_under_a_wildcard_with_the_same_data_is_a_conflict(
    call: Callable[[str], Caller], hand: Hand, fresh_label: str
) -> None:
    name = f"relay.{fresh_label}.example.test"
    hand.add(f"*.{fresh_label}.example.test 300 A 203.0.113.7", f"{name} 300 A 203.0.113.7")
    assert (await call(name).publish(V4)).kind is CONFLICT
    assert (await call(name).inspect()).kind is CONFLICT


async def test_conflict_is_told_after_reading_trying_and_reading(
    caller: Caller, hand: Hand, zone: Zone
) -> None:
    hand.add(f"{caller.hostname} 300 A 203.0.113.7")
    exchange = Meddling(lambda n: None)
    assert (await caller.through(zone, exchange).publish(V4)).kind is CONFLICT
    assert exchange.asked == ["tcp query", "udp update", "tcp query"]


@pytest.mark.parametrize("depth", ["", "relay.", "a.b."])
async def test_name_at_or_below_a_delegation_is_unavailable(
    call: Callable[[str], Caller], hand: Hand, fresh_label: str, depth: str
) -> None:
    cut = f"{fresh_label}.example.test"
    hand.add(f"{cut} 300 NS ns.elsewhere.example.org.")
    serial = hand.serial("example.test")
    caller = call(depth + cut)
    for outcome in (
        await caller.publish(V4),
        await caller.publish(V4, held=True),
        await caller.inspect(),
        await caller.withdraw(remembered=V4),
    ):
        assert (outcome.kind, outcome.retry_after_seconds) == (UNAVAILABLE, None)
        assert cut in outcome.detail
    assert hand.serial("example.test") == serial


async def test_name_below_a_dname_is_unavailable(
    call: Callable[[str], Caller], hand: Hand, fresh_label: str
) -> None:
    hand.add(f"{fresh_label}.example.test 300 DNAME elsewhere.example.org.")
    serial = hand.serial("example.test")
    outcome = await call(f"relay.{fresh_label}.example.test").publish(V4)
    assert (outcome.kind, outcome.retry_after_seconds) == (UNAVAILABLE, None)
    assert "DNAME" in outcome.detail
    assert hand.serial("example.test") == serial


@pytest.mark.parametrize("record", ["NS ns.elsewhere.example.org.", "DNAME elsewhere.example.org."])
async def test_cut_that_appears_after_reading_is_noticed_by_the_update(
    caller: Caller, hand: Hand, fresh_label: str, zone: Zone, record: str
) -> None:
    above = f"{fresh_label}.example.test"
    below = Caller(caller.publisher, owner_of(f"relay.{above}"))

    def cut(_n: int) -> None:
        hand.add(f"{above} 300 {record}")

    outcome = await below.through(zone, Meddling(cut)).publish(V4)
    assert (outcome.kind, outcome.retry_after_seconds) == (UNAVAILABLE, None)
    hand.update(f"delete {above}")
    assert hand.records(below.hostname) == set()


@pytest.mark.parametrize("options", ["", "minimal-responses yes;"], ids=["plain", "minimal"])
class TestChildZoneOnTheSameServer:
    """A zone of its own below ours, which we have no business in; no delegation tells of it."""

    @pytest.fixture
    def server(self, tmp_path: Path, options: str) -> Iterator[LoneBind]:
        zones = {"parent.test": "foreign IN A 203.0.113.7", "sub.parent.test": CHILD_FOREIGN}
        with lone_bind(tmp_path, zones, options=options) as running:
            yield running

    @pytest.fixture
    def publisher(self, server: LoneBind) -> Publisher:
        zone = zone_at(server.primary, server.tsig, "parent.test")
        return Publisher(Zones([zone]), MARKERS, Exchange())

    async def test_names_of_the_child_are_unavailable(
        self, server: LoneBind, publisher: Publisher
    ) -> None:
        hand = Hand(server.primary, server.tsig)
        serials = hand.serial("parent.test"), hand.serial("sub.parent.test")
        for name in ("new.sub.parent.test", "foreign.sub.parent.test", "sub.parent.test"):
            caller = Caller(publisher, owner_of(name))
            for outcome in (await caller.publish(V4), await caller.inspect()):
                assert (outcome.kind, outcome.retry_after_seconds) == (UNAVAILABLE, None)
                assert "sub.parent.test" in outcome.detail
        assert (hand.serial("parent.test"), hand.serial("sub.parent.test")) == serials

    async def test_names_of_our_zone_are_published_replaced_and_judged(
        self, server: LoneBind, publisher: Publisher
    ) -> None:
        caller = Caller(publisher, owner_of("relay.parent.test"))
        kinds = [(await caller.publish(record)).kind for record in (V4, V4, V4_OTHER)]
        assert kinds == [CREATED, OutcomeKind.UNCHANGED, OutcomeKind.UPDATED]
        assert (
            await Caller(publisher, owner_of("foreign.parent.test")).publish(V4)
        ).kind is CONFLICT
        assert (await Caller(publisher, owner_of("parent.test")).publish(V4)).kind is CONFLICT


async def test_configured_child_zone_takes_its_own_names(tmp_path: Path) -> None:
    with lone_bind(tmp_path, {"parent.test": "", "sub.parent.test": ""}) as server:
        names = ("parent.test", "sub.parent.test")
        zones = Zones([zone_at(server.primary, server.tsig, name) for name in names])
        caller = Caller(Publisher(zones, MARKERS, Exchange()), owner_of("relay.sub.parent.test"))
        assert (await caller.publish(V4)).kind is CREATED
        assert (await caller.publish(V4)).kind is OutcomeKind.UNCHANGED


async def test_zone_that_the_server_has_no_more_is_unavailable_for_now(tmp_path: Path) -> None:
    with lone_bind(tmp_path, {"parent.test": ""}) as server:
        zone = zone_at(server.primary, server.tsig, "gone.parent.test")
        caller = Caller(
            Publisher(Zones([zone]), MARKERS, Exchange()), owner_of("x.gone.parent.test")
        )
        outcome = await caller.publish(V4)
        assert outcome.kind is UNAVAILABLE
        assert "parent.test" in outcome.detail
