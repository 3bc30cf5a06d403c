"""The challenge record on a real BIND: by exact value, beside others, through aliases."""

import asyncio
import itertools
from dataclasses import replace

import dns.message
import dns.opcode
import pytest

from gateway.dns.challenges import CHALLENGE_TTL_SECONDS, Challenges, ChallengeTarget
from gateway.dns.errors import ChallengeUnavailable, DnsFault, Unreachable
from gateway.dns.exchange import Exchange, Limits, Over
from gateway.dns.replies import Peer
from gateway.dns.zones import Endpoint, TsigKey, Zone, Zones
from tests.integration.dns.conftest import soon, zone_at
from tests.integration.dns.hand import Hand
from tests.integration.dns.servers import Meddling, black_hole, lossy_line
from tests.lab.bind import BindPair
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


async def test_values_are_added_and_removed_one_by_one(
    challenges: Challenges, hostname: str, name: str, hand: Hand
) -> None:
    target = await challenges.locate(hostname, soon())
    for value in (ONE, ONE, TWO):
        await challenges.publish(target, value, soon())
    assert hand.records(name) == {f'{TTL} TXT "{ONE}"', f'{TTL} TXT "{TWO}"'}
    for _ in range(2):
        await challenges.remove(target, ONE, soon())
    assert hand.records(name) == {f'{TTL} TXT "{TWO}"'}


async def test_removing_what_was_never_added_changes_nothing(
    challenges: Challenges, hostname: str, name: str, hand: Hand
) -> None:
    hand.add(f'{name} 900 TXT "theirs"')
    target = await challenges.locate(hostname, soon())
    serial = hand.serial("example.test")
    await challenges.remove(target, ONE, soon())
    assert hand.serial("example.test") == serial


async def test_foreign_values_keep_value_and_ttl(
    challenges: Challenges, hostname: str, name: str, hand: Hand
) -> None:
    hand.add(f'{name} 900 TXT "theirs"', f'{name} 900 CAA 0 issue "ca.test"')
    before = hand.records(name)
    target = await challenges.locate(hostname, soon())
    await challenges.publish(target, ONE, soon())
    assert hand.records(name) == before | {f'900 TXT "{ONE}"'}
    await challenges.remove(target, ONE, soon())
    assert hand.records(name) == before


async def test_foreign_value_that_comes_meanwhile_keeps_its_ttl(
    zones: Zones, hostname: str, name: str, hand: Hand, zone: Zone
) -> None:
    def meddle(n: int) -> None:
        if n == 1:
            hand.add(f'{name} 900 TXT "theirs"')

    racing = Challenges(zones, Meddling(meddle))
    await racing.publish(ChallengeTarget(zone, name), ONE, soon())
    assert hand.records(name) == {'900 TXT "theirs"', f'900 TXT "{ONE}"'}


async def test_many_issuances_at_one_name_live_side_by_side(
    challenges: Challenges, zone: Zone, name: str, hand: Hand
) -> None:
    target = ChallengeTarget(zone, name)
    values = [f"value-{n}" for n in range(12)]
    await asyncio.gather(*(challenges.publish(target, value, soon()) for value in values))
    assert hand.records(name) == {f'{TTL} TXT "{value}"' for value in values}
    await asyncio.gather(*(challenges.remove(target, value, soon()) for value in values))
    assert hand.records(name) == set()


async def test_challenge_under_a_wildcard_is_added_and_removed(
    challenges: Challenges, hand: Hand, fresh_label: str
) -> None:
    hand.add(f'*.{fresh_label}.example.test 900 TXT "wild"')
    hostname = f"a.{fresh_label}.example.test"
    target = await challenges.locate(hostname, soon())
    await challenges.publish(target, ONE, soon())
    assert hand.records(target.name) == {f'{TTL} TXT "{ONE}"'}


@pytest.mark.parametrize("hops", [1, 2, 8])
async def test_alias_leads_into_the_other_zone(
    challenges: Challenges,
    hostname: str,
    name: str,
    hand: Hand,
    fresh_label: str,
    net_zone: Zone,
    hops: int,
) -> None:
    goal = f"{fresh_label}.acme.example.net.test"
    path = [name, *(f"hop{n}.{fresh_label}.example.test" for n in range(1, hops)), goal]
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
    hand.add(f"{name} 300 CNAME b.{name}.", f"b.{name} 300 CNAME {name}.")
    with pytest.raises(ChallengeUnavailable, match="of itself") as caught:
        await challenges.locate(hostname, soon())
    assert caught.value.retry_after_seconds is None


async def test_alias_out_of_our_zones_is_refused(
    challenges: Challenges, hostname: str, name: str, hand: Hand
) -> None:
    hand.add(f"{name} 300 CNAME theirs.example.org.")
    with pytest.raises(
        ChallengeUnavailable, match=r"theirs\.example\.org.*is an alias of"
    ) as caught:
        await challenges.locate(hostname, soon())
    assert (caught.value.reason, caught.value.retry_after_seconds) == ("zone-unavailable", None)


async def test_alias_made_up_by_a_wildcard_is_none(
    challenges: Challenges, hand: Hand, fresh_label: str
) -> None:
    hand.add(f"*.{fresh_label}.example.test 300 CNAME theirs.example.org.")
    target = await challenges.locate(f"a.{fresh_label}.example.test", soon())
    assert target.name == f"_acme-challenge.a.{fresh_label}.example.test"
    await challenges.publish(target, ONE, soon())
    assert hand.records(target.name) == {f'{TTL} TXT "{ONE}"'}


async def test_cut_that_appears_while_an_alias_is_confirmed_is_told(
    zones: Zones, hand: Hand, fresh_label: str
) -> None:
    cut = f"{fresh_label}.example.test"
    hand.add(f"_acme-challenge.relay.{cut} 300 CNAME x.example.net.test.")

    class Cutting(Exchange):
        async def ask(
            self, peer: Peer, request: dns.message.Message, *, over: Over, deadline: float
        ) -> dns.message.Message:
            if request.opcode() == dns.opcode.UPDATE:
                hand.add(f"{cut} 300 NS ns.example.org.")
            return await super().ask(peer, request, over=over, deadline=deadline)

    with pytest.raises(ChallengeUnavailable, match="delegation"):
        await Challenges(zones, Cutting()).locate(f"relay.{cut}", soon())


async def test_alias_that_appears_after_locating_is_told(
    challenges: Challenges, hostname: str, name: str, hand: Hand
) -> None:
    target = await challenges.locate(hostname, soon())
    hand.add(f"{name} 300 CNAME theirs.example.org.")
    with pytest.raises(ChallengeUnavailable, match="become an alias"):
        await challenges.publish(target, ONE, soon())
    assert hand.records(name) == {"300 CNAME theirs.example.org."}


@pytest.mark.parametrize("record", ["NS ns.example.org.", "DNAME example.org."])
async def test_hostname_below_a_cut_has_no_challenge(
    challenges: Challenges, hand: Hand, fresh_label: str, record: str
) -> None:
    hand.add(f"{fresh_label}.example.test 300 {record}")
    with pytest.raises(ChallengeUnavailable) as caught:
        await challenges.locate(f"relay.{fresh_label}.example.test", soon())
    assert caught.value.retry_after_seconds is None


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
