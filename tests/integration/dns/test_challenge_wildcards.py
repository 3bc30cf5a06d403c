"""A challenge below a name that only a wildcard answers for: found, and refused or accepted.

The record would make that name an empty non-terminal, and a wildcard answers for no name that is
there (RFC 4592, 2.2.2).
"""

from dataclasses import replace
from pathlib import Path

import pytest

from gateway.dns.challenges import CHALLENGE_TTL_SECONDS, Challenges
from gateway.dns.errors import ChallengeUnavailable
from gateway.dns.exchange import Exchange, Over
from gateway.dns.reading import Reply
from gateway.dns.rendering import Request
from gateway.dns.replies import Peer
from gateway.dns.zones import Zone, Zones
from tests.integration.dns.conftest import V4, Caller, owner_of, soon, zone_at
from tests.integration.dns.hand import Hand
from tests.integration.dns.lone_bind import lone_bind
from tests.integration.dns.test_places import WILD

VALUE = "value-of-one-issuance"
CHALLENGE = {f'{CHALLENGE_TTL_SECONDS} TXT "{VALUE}"'}


@pytest.fixture
def challenges(zones: Zones) -> Challenges:
    return Challenges(zones, Exchange())


@pytest.fixture
def above(fresh_label: str) -> str:
    """The name that the wildcard is below."""
    return f"{fresh_label}.example.test"


async def refusal(challenges: Challenges, hostname: str) -> ChallengeUnavailable:
    with pytest.raises(ChallengeUnavailable) as caught:
        await challenges.locate(hostname, soon())
    return caught.value


@pytest.mark.parametrize("record", WILD)
async def test_challenge_that_would_end_a_wildcard_is_refused_with_the_ways_out(
    challenges: Challenges, hand: Hand, above: str, record: str
) -> None:
    hand.add(f"*.{above} 300 {record}")
    serial = hand.serial("example.test")
    fault = await refusal(challenges, f"relay.{above}")
    assert fault.reason == "zone-unavailable"
    assert f"stop relay.{above} from resolving" in fault.detail
    assert f"only the wildcard *.{above} answers for" in fault.detail
    assert f"publish an address record for relay.{above}" in fault.detail
    assert 'wildcard_hosts = "interrupt" for the zone example.test' in fault.detail
    assert fault.retry_after_seconds is not None
    assert hand.serial("example.test") == serial


async def test_wildcard_further_up_is_found_and_named(
    challenges: Challenges, hand: Hand, above: str
) -> None:
    hand.add(f"*.{above} 300 A 203.0.113.7")
    fault = await refusal(challenges, f"a.b.c.{above}")
    assert f"a.b.c.{above} from resolving, which only the wildcard *.{above}" in fault.detail


async def test_wildcard_below_the_apex_is_found_and_named(tmp_path: Path) -> None:
    with lone_bind(tmp_path, {"wild.test": "* IN A 203.0.113.7"}) as server:
        zone = zone_at(server.primary, server.tsig, "wild.test")
        challenges = Challenges(Zones([zone]), Exchange())
        fault = await refusal(challenges, "relay.wild.test")
        assert "the wildcard *.wild.test answers" in fault.detail
        assert (await challenges.locate("wild.test", soon())).name == "_acme-challenge.wild.test"


async def test_published_record_makes_room_for_the_challenge(
    challenges: Challenges, zones: Zones, hand: Hand, above: str, caller: Caller
) -> None:
    hand.add(f"*.{above} 300 A 203.0.113.7")
    hostname = f"relay.{above}"
    await refusal(challenges, hostname)
    assert (await Caller(caller.publisher, owner_of(hostname)).publish(V4)).record == V4
    before = hand.records(hostname)
    target = await challenges.locate(hostname, soon())
    await challenges.publish(target, VALUE, soon())
    assert hand.records(hostname) == before


async def test_record_of_any_type_makes_room_for_the_challenge(
    challenges: Challenges, hand: Hand, above: str
) -> None:
    hand.add(f"*.{above} 300 A 203.0.113.7", f"relay.{above} 300 MX 10 mail.example.org.")
    assert (
        await challenges.locate(f"relay.{above}", soon())
    ).name == f"_acme-challenge.relay.{above}"


async def test_wildcard_that_goes_while_it_is_looked_at_is_none(
    zones: Zones, hand: Hand, above: str
) -> None:
    hand.add(f"*.{above} 300 A 203.0.113.7")

    class Removing(Exchange):
        async def ask(self, peer: Peer, request: Request, *, over: Over, deadline: float) -> Reply:
            if request.is_update:
                hand.update(f"delete *.{above}")
            return await super().ask(peer, request, over=over, deadline=deadline)

    target = await Challenges(zones, Removing()).locate(f"relay.{above}", soon())
    assert target.name == f"_acme-challenge.relay.{above}"


async def test_name_that_is_empty_already_has_nothing_to_lose(
    challenges: Challenges, hand: Hand, above: str
) -> None:
    hand.add(f"*.{above} 300 A 203.0.113.7", f"below.relay.{above} 300 A 203.0.113.8")
    assert hand.records(f"relay.{above}") == set()
    assert (
        await challenges.locate(f"relay.{above}", soon())
    ).name == f"_acme-challenge.relay.{above}"


async def test_wildcard_below_the_hostname_has_nothing_to_lose(
    challenges: Challenges, hand: Hand, hostname: str
) -> None:
    hand.add(f'*.{hostname} 900 TXT "wild"')
    target = await challenges.locate(hostname, soon())
    await challenges.publish(target, VALUE, soon())
    assert hand.records(target.name) == CHALLENGE
    assert hand.records(f"other.{hostname}") == {'900 TXT "wild"'}


async def test_wildcard_is_interrupted_where_the_zone_says_so_and_is_back_afterwards(
    zone: Zone, hand: Hand, above: str
) -> None:
    hand.add(f"*.{above} 300 A 203.0.113.7")
    hostname = f"relay.{above}"
    challenges = Challenges(Zones([replace(zone, interrupts_wildcards=True)]), Exchange())
    target = await challenges.locate(hostname, soon())
    await challenges.publish(target, VALUE, soon())
    assert hand.records(hostname) == set()
    assert hand.records(f"other.{above}") == {"300 A 203.0.113.7"}
    await challenges.remove(target, VALUE, soon())
    assert hand.records(hostname) == {"300 A 203.0.113.7"}


async def test_alias_to_a_place_under_a_wildcard_is_refused_as_well(
    challenges: Challenges, hand: Hand, hostname: str, fresh_label: str
) -> None:
    above = f"{fresh_label}.example.net.test"
    goal = f"relay.acme.{above}"
    hand.add(f"*.{above} 300 A 203.0.113.7")
    hand.add(f"_acme-challenge.{hostname} 300 CNAME {goal}.")
    fault = await refusal(challenges, hostname)
    assert f"The challenge of {hostname}, at {goal}, would stop acme.{above}" in fault.detail
    assert "for the zone example.net.test" in fault.detail
    hand.add(f'acme.{above} 300 TXT "only challenges below"')
    assert (await challenges.locate(hostname, soon())).name == goal


async def test_hostname_under_a_wildcard_may_have_its_challenge_elsewhere(
    challenges: Challenges, hand: Hand, above: str, fresh_label: str
) -> None:
    """Its alias has made it an empty name before."""
    goal = f"{fresh_label}.acme.example.net.test"
    hand.add(f"*.{above} 300 A 203.0.113.7", f"_acme-challenge.relay.{above} 300 CNAME {goal}.")
    assert (await challenges.locate(f"relay.{above}", soon())).name == goal
