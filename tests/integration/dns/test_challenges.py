"""The challenge record on a real BIND; `tests/servers` has what every kind of server is asked."""

import asyncio
import itertools
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.dns.challenges import (
    CHALLENGE_TTL_SECONDS,
    MAX_ALIASES,
    Challenges,
    ChallengeTarget,
)
from gateway.dns.errors import ChallengeUnavailable, DnsFault, OutcomeUnknown, Unreachable
from gateway.dns.exchange import Exchange, Limits, Over
from gateway.dns.outcome import OutcomeKind
from gateway.dns.publisher import Publisher
from gateway.dns.reading import Reply
from gateway.dns.rendering import Request
from gateway.dns.replies import Peer
from gateway.dns.zones import Endpoint, TsigKey, Zone, Zones
from tests.integration.dns.conftest import MARKERS, Caller, owner_of, soon, zone_at
from tests.integration.dns.hand import Hand
from tests.integration.dns.lone_bind import bind_with, lone_bind, write_zone
from tests.integration.dns.servers import Meddling, black_hole, lossy_line
from tests.lab.bind import BindPair, new_key
from tests.lab.ports import LOOPBACK, free_port

ONE, TWO = "value-of-one-issuance", "value-of-another"
TTL = CHALLENGE_TTL_SECONDS


@pytest.fixture
def challenges(zones: Zones) -> Challenges:
    return Challenges(zones, Exchange())


@pytest.fixture
def name(hostname: str) -> str:
    return f"_acme-challenge.{hostname}"


async def test_challenge_without_alias_is_at_the_hostname(
    challenges: Challenges, hostname: str, name: str, zone: Zone
) -> None:
    target = await challenges.locate(hostname, soon())
    assert target == ChallengeTarget(zone, name)
    assert challenges.target(target.zone.name, target.name) == target


async def test_chain_of_eight_aliases_leads_into_the_other_zone(
    challenges: Challenges,
    hostname: str,
    name: str,
    hand: Hand,
    fresh_label: str,
    net_zone: Zone,
) -> None:
    goal = f"{fresh_label}.acme.example.net.test"
    path = [name, *(f"hop{n}.{fresh_label}.example.test" for n in range(1, 8)), goal]
    for here, there in itertools.pairwise(path):
        hand.add(f"{here} 300 CNAME {there}.")
    target = await challenges.locate(hostname, soon())
    assert target == ChallengeTarget(net_zone, goal)
    await challenges.publish(target, ONE, soon())
    assert hand.records(goal) == {f'{TTL} TXT "{ONE}"'}
    await challenges.remove(target, ONE, soon())
    assert hand.records(goal) == set()
    assert hand.records(name) == {f"300 CNAME {path[1]}."}


async def test_alias_of_itself_is_refused(
    challenges: Challenges, hostname: str, name: str, hand: Hand
) -> None:
    hand.add(f"{name} 300 CNAME {name}.")
    with pytest.raises(ChallengeUnavailable, match=f"loop of aliases: {name} → {name}") as caught:
        await challenges.locate(hostname, soon())
    assert caught.value.retry_after_seconds is None


async def test_aliases_that_go_round_are_refused_and_named(
    challenges: Challenges, hostname: str, name: str, hand: Hand, fresh_label: str
) -> None:
    there, back = f"b.{fresh_label}.example.net.test", f"c.{fresh_label}.example.test"
    hand.add(f"{name} 300 CNAME {there}.", f"{back} 300 CNAME {there}.")
    hand.add(f"{there} 300 CNAME {back}.")
    with pytest.raises(ChallengeUnavailable) as caught:
        await challenges.locate(hostname, soon())
    assert f"{name} leads into a loop of aliases: {there} → {back} → {there}." == str(caught.value)
    assert caught.value.retry_after_seconds is None


async def test_too_many_aliases_are_refused(
    challenges: Challenges, hostname: str, name: str, hand: Hand
) -> None:
    path = [name, *(f"hop{n}.{hostname}" for n in range(MAX_ALIASES + 1))]
    for here, there in itertools.pairwise(path):
        hand.add(f"{here} 300 CNAME {there}.")
    with pytest.raises(ChallengeUnavailable, match=f"more than {MAX_ALIASES} names"):
        await challenges.locate(hostname, soon())


async def test_alias_to_a_zone_that_can_not_be_served_is_told_and_looked_at_again(
    tmp_path: Path,
) -> None:
    name, goal = "_acme-challenge.relay.good.test", "relay.acme.broken.test"
    write_zone(tmp_path, "good.test", f"{name}. IN CNAME {goal}.")  # the other zone has no file
    config = "".join(
        f'zone "{each}" {{ type primary; file "{each}.zone"; allow-update {{ key gateway; }}; }};'
        for each in ("good.test", "broken.test")
    )
    with bind_with(
        tmp_path, [new_key("gateway")], config, lambda at: at.serves("good.test")
    ) as server:
        zones = [
            zone_at(server.primary, server.tsig, each) for each in ("good.test", "broken.test")
        ]
        with pytest.raises(ChallengeUnavailable) as caught:
            await Challenges(Zones(zones), Exchange()).locate("relay.good.test", soon())
    assert f"belongs at {goal}, which {name} is an alias of" in caught.value.detail
    assert f"{Endpoint(*server.primary)} (zone broken.test" in caught.value.detail
    assert "SERVFAIL" in caught.value.detail
    assert caught.value.retry_after_seconds is not None


async def test_value_is_removed_where_it_was_added_after_the_alias_moved(
    challenges: Challenges, hostname: str, name: str, hand: Hand, fresh_label: str
) -> None:
    before, after = (f"{each}.{fresh_label}.example.net.test" for each in ("before", "after"))
    hand.add(f"{name} 300 CNAME {before}.")
    target = await challenges.locate(hostname, soon())
    await challenges.publish(target, ONE, soon())
    hand.update(f"delete {name} CNAME", f"add {name} 300 CNAME {after}.")
    hand.add(f'{after} 300 TXT "{ONE}"')
    stored = challenges.target(target.zone.name, target.name)
    await challenges.remove(stored, ONE, soon())
    assert hand.records(before) == set()
    assert hand.records(after) == {f'300 TXT "{ONE}"'}


async def test_values_of_two_gateways_live_at_once_and_each_removes_its_own(
    zones: Zones, hostname: str, name: str, hand: Hand
) -> None:
    ours, theirs = (Challenges(zones, Exchange()) for _ in range(2))
    targets = await asyncio.gather(*(each.locate(hostname, soon()) for each in (ours, theirs)))
    await asyncio.gather(
        ours.publish(targets[0], ONE, soon()), theirs.publish(targets[1], TWO, soon())
    )
    assert hand.records(name) == {f'{TTL} TXT "{ONE}"', f'{TTL} TXT "{TWO}"'}
    await ours.remove(targets[0], ONE, soon())
    assert hand.records(name) == {f'{TTL} TXT "{TWO}"'}
    await theirs.remove(targets[1], TWO, soon())
    assert hand.records(name) == set()


async def test_alias_in_a_zone_that_takes_no_updates_is_followed(
    tmp_path: Path, net_zone: Zone, fresh_label: str
) -> None:
    goal = f"{fresh_label}.acme.example.net.test"
    records = f"_acme-challenge.relay IN CNAME {goal}."
    permission = "allow-update { none; };"
    with lone_bind(tmp_path, {"still.test": records}, permission=permission) as server:
        still = zone_at(server.primary, server.tsig, "still.test")
        zones = Zones([still, net_zone])
        caller = Caller(Publisher(zones, MARKERS, Exchange()), owner_of("relay.still.test"))
        assert (await caller.inspect()).kind is OutcomeKind.FREE
        challenges = Challenges(zones, Exchange())
        target = await challenges.locate(caller.hostname, soon())
        await challenges.publish(target, ONE, soon())
    assert target == ChallengeTarget(net_zone, goal)


async def test_alias_made_up_by_a_wildcard_is_none(
    challenges: Challenges, hand: Hand, hostname: str, name: str
) -> None:
    hand.add(f"*.{hostname} 300 CNAME theirs.example.org.")
    target = await challenges.locate(hostname, soon())
    assert target.name == name
    await challenges.publish(target, ONE, soon())
    assert hand.records(name) == {f'{TTL} TXT "{ONE}"'}
    await challenges.remove(target, ONE, soon())
    assert hand.records(name) == {"300 CNAME theirs.example.org."}


async def test_cut_that_appears_while_an_alias_is_confirmed_is_told(
    zones: Zones, hand: Hand, fresh_label: str
) -> None:
    cut = f"{fresh_label}.example.test"
    hand.add(f"_acme-challenge.relay.{cut} 300 CNAME x.example.net.test.")

    class Cutting(Exchange):
        async def ask(self, peer: Peer, request: Request, *, over: Over, deadline: float) -> Reply:
            if request.is_update:
                hand.add(f"{cut} 300 NS ns.example.org.")
            return await super().ask(peer, request, over=over, deadline=deadline)

    with pytest.raises(ChallengeUnavailable, match="delegation"):
        await Challenges(zones, Cutting()).locate(f"relay.{cut}", soon())


async def test_hostname_in_no_zone_has_no_challenge(challenges: Challenges) -> None:
    with pytest.raises(ChallengeUnavailable, match="No configured zone"):
        await challenges.locate("relay.example.org", soon())


async def test_hostname_too_long_for_the_prefix_has_no_challenge(challenges: Challenges) -> None:
    hostname = ".".join(["a" * 60] * 3 + ["b" * 50, "example.test"])
    with pytest.raises(ChallengeUnavailable, match="too long"):
        await challenges.locate(hostname, soon())


async def test_challenge_name_that_is_a_zone_of_its_own_is_used(
    bind: BindPair, zone: Zone, hand: Hand
) -> None:
    """A zone's apex is no client's, but may well hold challenges."""
    target = ChallengeTarget(zone, "example.test")
    challenges = Challenges(Zones([zone]), Exchange())
    await challenges.publish(target, ONE, soon())
    assert f'{TTL} TXT "{ONE}"' in hand.records("example.test")
    await challenges.remove(target, ONE, soon())
    assert f'{TTL} TXT "{ONE}"' not in hand.records("example.test")


async def test_target_of_a_zone_configured_no_more_is_refused(challenges: Challenges) -> None:
    with pytest.raises(ChallengeUnavailable, match="not configured any more"):
        challenges.target("example.org", "x.example.org")


async def test_dead_server_is_told_with_when_to_ask_again(bind: BindPair, hostname: str) -> None:
    zone = zone_at(Endpoint(LOOPBACK, free_port()), bind.tsig)
    challenges = Challenges(Zones([zone]), Exchange())
    with pytest.raises(ChallengeUnavailable) as caught:
        await challenges.locate(hostname, soon())
    assert caught.value.retry_after_seconds is not None
    target = ChallengeTarget(zone, f"_acme-challenge.{hostname}")
    for change in (challenges.publish, challenges.remove):
        with pytest.raises(Unreachable):
            await change(target, ONE, soon())


async def test_wrong_key_is_told_in_words(
    challenges: Challenges, hostname: str, zone: Zone
) -> None:
    wrong = replace(zone, key=TsigKey("nobody", "hmac-sha256", b"x" * 32))
    target = ChallengeTarget(wrong, f"_acme-challenge.{hostname}")
    with pytest.raises(DnsFault, match=r"nobody.*BADKEY"):
        await challenges.publish(target, ONE, soon())


@pytest.mark.parametrize("with_tcp", [True, False])
async def test_lost_reply_leaves_nothing_behind_and_nothing_undone(
    bind: BindPair, hostname: str, name: str, hand: Hand, with_tcp: bool
) -> None:
    def lose(n: int, reply: bytes) -> bytes | None:
        return None if n == 1 else reply

    exchange = Exchange(Limits(udp_seconds=0.3))
    for is_added in (True, False):
        async with lossy_line(bind.primary, lose, with_tcp=with_tcp) as endpoint:
            zone = zone_at(endpoint, bind.tsig)
            challenges = Challenges(Zones([zone]), exchange)
            call = challenges.publish if is_added else challenges.remove
            await call(ChallengeTarget(zone, name), ONE, soon())
        assert hand.records(name) == ({f'{TTL} TXT "{ONE}"'} if is_added else set())


async def test_black_hole_ends_in_a_fault(bind: BindPair, hostname: str) -> None:
    async with black_hole() as endpoint:
        zone = zone_at(endpoint, bind.tsig)
        exchange = Exchange(Limits(udp_seconds=0.2, tcp_seconds=0.2))
        with pytest.raises(ChallengeUnavailable) as caught:
            await Challenges(Zones([zone]), exchange).locate(hostname, soon())
    assert caught.value.retry_after_seconds is not None


async def test_value_whose_adding_was_never_answered_is_removed_by_value(
    bind: BindPair, zone: Zone, name: str, hand: Hand
) -> None:
    hand.add(f'{name} 900 TXT "theirs"')
    async with lossy_line(bind.primary, lambda n, reply: None, with_tcp=False) as endpoint:
        lossy = zone_at(endpoint, bind.tsig)
        challenges = Challenges(Zones([lossy]), Exchange(Limits(udp_seconds=60.0)))
        deadline = asyncio.get_running_loop().time() + 1.0
        with pytest.raises(OutcomeUnknown):
            await challenges.publish(ChallengeTarget(lossy, name), ONE, deadline)
    assert hand.records(name) == {'900 TXT "theirs"', f'900 TXT "{ONE}"'}
    await Challenges(Zones([zone]), Exchange()).remove(ChallengeTarget(zone, name), ONE, soon())
    assert hand.records(name) == {'900 TXT "theirs"'}


async def test_zone_that_never_rests_gets_the_value_beside_others_all_the_same(
    zone: Zone, hostname: str, hand: Hand
) -> None:
    name = f"_acme-challenge.{hostname}"
    hand.add(f'{name} 900 TXT "foreign"')
    racing = Meddling(lambda n: hand.add(f'beside.{hostname} 300 TXT "{n}"'))
    await Challenges(Zones([zone]), racing).publish(ChallengeTarget(zone, name), "mine", soon())
    assert hand.records(name) == {'900 TXT "foreign"', '900 TXT "mine"'}


async def test_name_with_nothing_when_it_was_located_is_not_read_again(
    zones: Zones, hostname: str, name: str, hand: Hand
) -> None:
    asked: list[bool] = []

    class Noting(Exchange):
        async def ask(self, peer: Peer, request: Request, *, over: Over, deadline: float) -> Reply:
            asked.append(request.is_update)
            return await super().ask(peer, request, over=over, deadline=deadline)

    challenges = Challenges(zones, Noting())
    target = await challenges.locate(hostname, soon())
    asked.clear()
    await challenges.publish(target, ONE, soon())
    assert asked == [True]
    assert hand.records(name) == {f'{TTL} TXT "{ONE}"'}


@pytest.mark.parametrize("other", [TWO, ONE])
async def test_value_that_came_after_the_name_was_located_stays_with_its_ttl(
    challenges: Challenges, hostname: str, name: str, hand: Hand, other: str
) -> None:
    target = await challenges.locate(hostname, soon())
    hand.add(f'{name} 300 TXT "{other}"')
    await challenges.publish(target, ONE, soon())
    assert hand.records(name) == {f'300 TXT "{value}"' for value in (ONE, other)}


async def test_name_that_became_an_alias_after_it_was_located_is_left_alone(
    challenges: Challenges, hostname: str, name: str, hand: Hand
) -> None:
    target = await challenges.locate(hostname, soon())
    hand.add(f"{name} 300 CNAME elsewhere.example.net.test.")
    with pytest.raises(ChallengeUnavailable, match="alias"):
        await challenges.publish(target, ONE, soon())
    assert hand.records(name) == {"300 CNAME elsewhere.example.net.test."}
