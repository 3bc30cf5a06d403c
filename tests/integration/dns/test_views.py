"""One BIND with two views that the TSIG key chooses, as docs/dns-servers.md has it."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.dns.challenges import Challenges
from gateway.dns.errors import ChallengeUnavailable
from gateway.dns.exchange import Exchange
from gateway.dns.health import check_zone, probe_zone
from gateway.dns.outcome import OutcomeKind
from gateway.dns.propagation import Propagation
from gateway.dns.zones import Endpoint, Zone, Zones
from tests.integration.dns.conftest import (
    V4,
    V4_OTHER,
    caller_at,
    marker_of,
    propagated,
    soon,
    zone_at,
)
from tests.integration.dns.hand import Hand
from tests.integration.dns.lone_bind import LoneBind, documented_bind
from tests.lab.bind import Tsig, new_key
from tests.lab.process import wait_until

CREATED, CONFLICT = OutcomeKind.CREATED, OutcomeKind.CONFLICT
NAME = "relay.example.com"

INSIDE, OUTSIDE = new_key("gateway-inside"), new_key("gateway-outside")
ZONES = {
    "inside/example.com": "printer IN A 203.0.113.7",
    "inside/corp.example.com": "",
    "outside/example.com": "www IN A 203.0.113.8",
}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[LoneBind]:
    def is_ready(running: LoneBind) -> bool:
        inside = (running.serves(zone, INSIDE) for zone in ("example.com", "corp.example.com"))
        return all(inside) and running.serves("example.com", OUTSIDE)

    with documented_bind(
        tmp_path, "views", ZONES, keys=(INSIDE, OUTSIDE), is_ready=is_ready
    ) as running:
        yield running


def zone_of(server: LoneBind, key: Tsig, name: str = "example.com") -> Zone:
    return zone_at(server.primary, key, name, server.primary[1])


async def test_record_is_published_in_the_view_of_the_key_only(server: LoneBind) -> None:
    inside, outside = Hand(server.primary, INSIDE), Hand(server.primary, OUTSIDE)
    caller = caller_at(NAME, zone_of(server, INSIDE))
    serial = outside.serial("example.com")
    kinds = [(await caller.publish(record)).kind for record in (V4, V4, V4_OTHER)]
    assert kinds == [CREATED, OutcomeKind.UNCHANGED, OutcomeKind.UPDATED]
    assert inside.records(NAME) == {
        f"300 A {V4_OTHER.value}",
        f"300 {marker_of(caller.owner, V4_OTHER)}",
    }
    assert outside.records(NAME) == set()
    assert outside.serial("example.com") == serial


async def test_conflicts_are_those_of_the_view_of_the_key(server: LoneBind) -> None:
    inside, outside = zone_of(server, INSIDE), zone_of(server, OUTSIDE)
    assert (await caller_at("printer.example.com", inside).publish(V4)).kind is CONFLICT
    assert (await caller_at("printer.example.com", outside).publish(V4)).kind is CREATED
    assert (await caller_at("www.example.com", outside).publish(V4)).kind is CONFLICT
    assert (await caller_at("www.example.com", inside).publish(V4)).kind is CREATED


async def test_zone_of_one_view_is_served_with_that_view_s_key(server: LoneBind) -> None:
    corp = zone_of(server, INSIDE, "corp.example.com")
    assert (await check_zone(Exchange(), corp, soon())).ok
    assert (await caller_at("a.corp.example.com", corp).publish(V4)).kind is CREATED


async def test_zone_of_another_view_is_refused_naming_the_key(server: LoneBind) -> None:
    """Its names lie in the other view's own parent zone, which is not the one that was meant."""
    corp = zone_of(server, OUTSIDE, "corp.example.com")
    outcome = await caller_at("a.corp.example.com", corp).publish(V4)
    assert outcome.kind is OutcomeKind.UNAVAILABLE
    assert "belongs to the zone example.com, not to corp.example.com" in outcome.detail
    health = await probe_zone(Exchange(), corp, soon())
    assert not health.ok
    assert "key gateway-outside" in health.detail


async def test_zone_of_no_parent_in_the_view_is_refused(server: LoneBind) -> None:
    elsewhere = zone_of(server, OUTSIDE, "example.org")
    outcome = await caller_at("a.example.org", elsewhere).publish(V4)
    assert outcome.kind is OutcomeKind.FAILED
    assert "REFUSED" in outcome.detail
    assert "view" in outcome.detail
    with pytest.raises(ChallengeUnavailable, match="REFUSED"):
        await Challenges(Zones([elsewhere]), Exchange()).locate("a.example.org", soon())


async def test_child_zone_takes_its_names_in_its_own_view_only(server: LoneBind) -> None:
    name = "a.corp.example.com"
    inside = await caller_at(name, zone_of(server, INSIDE)).publish(V4)
    assert (inside.kind, inside.retry_after_seconds) == (OutcomeKind.UNAVAILABLE, None)
    assert "corp.example.com" in inside.detail
    both = (zone_of(server, INSIDE), zone_of(server, INSIDE, "corp.example.com"))
    assert (await caller_at(name, *both).publish(V4)).kind is CREATED
    assert (await caller_at(name, zone_of(server, OUTSIDE)).publish(V4)).kind is CREATED


async def test_challenge_is_seen_where_unsigned_queries_find_the_key_s_view(
    server: LoneBind,
) -> None:
    zone = zone_of(server, OUTSIDE)
    challenges = Challenges(Zones([zone]), Exchange())
    target = await challenges.locate(NAME, soon())
    await challenges.publish(target, "value", soon())
    await propagated(target, "value")


async def test_challenge_of_another_view_needs_servers_that_answer_from_it(
    server: LoneBind, tmp_path: Path
) -> None:
    """Unsigned queries of this machine land in the view outside; a secondary serves the other."""
    zone = zone_of(server, INSIDE)
    challenges = Challenges(Zones([zone]), Exchange())
    target = await challenges.locate(NAME, soon())
    await challenges.publish(target, "value", soon())
    look = await Propagation(Exchange(), lambda: 0.0).look(target, "value", soon())
    assert look.lagging == ("{}:{}".format(*server.primary),)
    (tmp_path / "secondary").mkdir()
    with documented_bind(
        tmp_path / "secondary",
        "secondary of a view",
        {},
        keys=(INSIDE,),
        is_ready=lambda secondary: secondary.serves("example.com"),
        replacing={"192.0.2.53": "{} port {}".format(*server.primary)},
    ) as secondary:
        configured = replace(zone, servers=(Endpoint(*secondary.primary),))
        await propagated(replace(target, zone=configured), "value")
    hand = Hand(server.primary, OUTSIDE)
    assert hand.records(target.name) == set()


async def test_view_of_the_key_is_still_chosen_after_a_restart(server: LoneBind) -> None:
    caller = caller_at(NAME, zone_of(server, INSIDE))
    await caller.publish(V4)

    def restart() -> None:
        server.process.stop()
        server.process.start(lambda: server.serves("example.com", INSIDE))
        wait_until(lambda: server.serves("example.com", OUTSIDE), "both views are served")

    await asyncio.to_thread(restart)
    assert (await caller.publish(V4)).kind is OutcomeKind.UNCHANGED
    outside = caller_at(NAME, zone_of(server, OUTSIDE))
    assert (await outside.inspect()).kind is OutcomeKind.FREE
