"""Challenge records on every kind of server: by exact value, beside others, through aliases."""

import asyncio
import itertools

import pytest

from gateway.dns.challenges import CHALLENGE_TTL_SECONDS, Challenges, ChallengeTarget
from gateway.dns.errors import ChallengeUnavailable, DnsFault
from gateway.dns.zones import Zone, Zones
from tests.integration.dns.conftest import soon
from tests.integration.dns.hand import Hand
from tests.integration.dns.servers import Meddling
from tests.servers.conftest import Tells
from tests.servers.eyes import Eyes, said

ONE, TWO = "value-of-one-issuance", "value-of-another"
TTL = CHALLENGE_TTL_SECONDS


@pytest.fixture
def name(hostname: str) -> str:
    return f"_acme-challenge.{hostname}"


async def refused_step(challenges: Challenges, hostname: str) -> str:
    fault: DnsFault | None = None
    step = "not located"
    try:
        target = await challenges.locate(hostname, soon())
        step = "not added"
        await challenges.publish(target, ONE, soon())
    except DnsFault as caught:
        fault = caught
    assert fault is not None
    assert fault.retry_after_seconds is None
    return step


def texts(ttl: int, *values: str) -> set[str]:
    return {f'{ttl} TXT "{value}"' for value in values}


async def test_values_are_added_and_removed_one_by_one(
    challenges: Challenges, hostname: str, name: str, eyes: Eyes, tells: Tells
) -> None:
    target = await challenges.locate(hostname, soon())
    for value in (ONE, ONE, TWO):
        await challenges.publish(target, value, soon())
    assert eyes.records(name) == texts(TTL, ONE, TWO)
    for _ in range(2):
        await challenges.remove(target, ONE, soon())
    assert eyes.records(name) == texts(TTL, TWO)
    tells("two values added, one removed twice", "the other stays")


async def test_removing_what_was_never_added(
    challenges: Challenges, hostname: str, name: str, hand: Hand, eyes: Eyes, tells: Tells
) -> None:
    hand.add(f'{name} 900 TXT "theirs"')
    target = await challenges.locate(hostname, soon())
    serial = eyes.serial()
    await challenges.remove(target, ONE, soon())
    assert eyes.records(name) == texts(900, "theirs")
    tells("a value removed that was never added", f"serial + {eyes.serial() - serial}")


async def test_foreign_values_keep_value_and_ttl(
    challenges: Challenges, hostname: str, name: str, hand: Hand, eyes: Eyes, tells: Tells
) -> None:
    hand.add(f'{name} 900 TXT "theirs"', f'{name} 900 CAA 0 issue "ca.test"')
    before = eyes.records(name)
    target = await challenges.locate(hostname, soon())
    await challenges.publish(target, ONE, soon())
    assert eyes.records(name) == before | texts(900, ONE)
    await challenges.remove(target, ONE, soon())
    assert eyes.records(name) == before
    tells("beside a foreign value of another TTL", "added with its TTL, removed")


async def test_foreign_value_that_comes_meanwhile_keeps_its_ttl(
    zones: Zones, name: str, hand: Hand, eyes: Eyes, zone: Zone, tells: Tells
) -> None:
    def meddle(n: int) -> None:
        if n == 1:
            hand.add(f'{name} 900 TXT "theirs"')

    await Challenges(zones, Meddling(meddle)).publish(ChallengeTarget(zone, name), ONE, soon())
    assert eyes.records(name) == texts(900, "theirs", ONE)
    tells("a foreign value that comes after reading", "keeps its TTL")


async def test_many_issuances_at_one_name_live_side_by_side(
    challenges: Challenges, zone: Zone, name: str, eyes: Eyes, tells: Tells
) -> None:
    target = ChallengeTarget(zone, name)
    values = [f"value-{n}" for n in range(8)]
    await asyncio.gather(*(challenges.publish(target, value, soon()) for value in values))
    assert eyes.records(name) == texts(TTL, *values)
    await asyncio.gather(*(challenges.remove(target, value, soon()) for value in values))
    assert eyes.records(name) == set()
    tells("eight issuances of one name at once", "all values live, then none")


@pytest.mark.parametrize(
    ("behaviour", "hops"),
    [("an alias into another zone of ours", 1), ("a chain of two aliases into it", 2)],
)
async def test_alias_leads_into_the_other_zone(
    challenges: Challenges,
    hostname: str,
    name: str,
    hand: Hand,
    eyes: Eyes,
    fresh_label: str,
    net_zone: Zone,
    tells: Tells,
    behaviour: str,
    hops: int,
) -> None:
    goal = f"{fresh_label}.acme.example.net.test"
    path = [name, *(f"hop{n}.{fresh_label}.example.test" for n in range(1, hops)), goal]
    for here, there in itertools.pairwise(path):
        hand.add(f"{here} 300 CNAME {there}.")
    target = await challenges.locate(hostname, soon())
    assert target == ChallengeTarget(net_zone, goal)
    await challenges.publish(target, ONE, soon())
    assert eyes.records(goal) == texts(TTL, ONE)
    assert await challenges.locate(hostname, soon()) == target
    await challenges.remove(target, ONE, soon())
    assert eyes.records(goal) == set()
    assert eyes.records(name) == {f"300 CNAME {path[1]}."}
    tells(behaviour, "followed, added there, removed")


async def test_alias_out_of_our_zones_is_refused(
    challenges: Challenges, hostname: str, name: str, hand: Hand, tells: Tells
) -> None:
    hand.add(f"{name} 300 CNAME theirs.example.org.")
    with pytest.raises(
        ChallengeUnavailable, match=r"theirs\.example\.org.*is an alias of"
    ) as caught:
        await challenges.locate(hostname, soon())
    assert (caught.value.reason, caught.value.retry_after_seconds) == ("zone-unavailable", None)
    tells("an alias out of our zones", "refused, naming the target")


async def test_aliases_in_a_loop_are_refused(
    challenges: Challenges, hostname: str, name: str, hand: Hand, tells: Tells
) -> None:
    hand.add(f"{name} 300 CNAME b.{name}.", f"b.{name} 300 CNAME {name}.")
    with pytest.raises(ChallengeUnavailable) as caught:
        await challenges.locate(hostname, soon())
    is_named = "loop of aliases" in caught.value.detail
    words = "refused, naming the loop" if is_named else said(caught.value.detail)
    tells("aliases in a loop", words)


async def test_alias_made_up_by_a_wildcard_is_none(
    challenges: Challenges, hand: Hand, eyes: Eyes, fresh_label: str, tells: Tells
) -> None:
    hand.add(f"*.{fresh_label}.example.test 300 CNAME theirs.example.org.")
    hand.add(f"a.{fresh_label}.example.test 300 A 203.0.113.7")
    hand.add(f"*.a.{fresh_label}.example.test 300 CNAME theirs.example.org.")
    target = await challenges.locate(f"a.{fresh_label}.example.test", soon())
    assert target.name == f"_acme-challenge.a.{fresh_label}.example.test"
    await challenges.publish(target, ONE, soon())
    assert eyes.records(target.name) == texts(TTL, ONE)
    tells("an alias that a wildcard makes up", "none: added at the name itself")


async def test_challenge_under_a_wildcard_text(
    challenges: Challenges, hand: Hand, eyes: Eyes, fresh_label: str, tells: Tells
) -> None:
    hostname = f"a.{fresh_label}.example.test"
    hand.add(f"{hostname} 300 A 203.0.113.7", f'*.{hostname} 900 TXT "wild"')
    target = await challenges.locate(hostname, soon())
    await challenges.publish(target, ONE, soon())
    assert eyes.records(target.name) == texts(TTL, ONE)
    await challenges.remove(target, ONE, soon())
    assert eyes.records(target.name) == set()
    tells("below a wildcard TXT", "added with its own TTL, removed")


async def test_alias_that_appears_after_locating_is_told(
    challenges: Challenges, hostname: str, name: str, hand: Hand, eyes: Eyes, tells: Tells
) -> None:
    target = await challenges.locate(hostname, soon())
    hand.add(f"{name} 300 CNAME theirs.example.org.")
    with pytest.raises(ChallengeUnavailable, match="become an alias"):
        await challenges.publish(target, ONE, soon())
    assert eyes.records(name) == {"300 CNAME theirs.example.org."}
    tells("an alias that appears after locating", "refused, untouched")


async def test_hostname_below_a_cut_has_no_challenge(
    challenges: Challenges, hand: Hand, fresh_label: str, tells: Tells
) -> None:
    told = []
    for n, record in enumerate(["NS ns.example.org.", "DNAME example.org."]):
        hand.add(f"c{n}.{fresh_label}.example.test 300 {record}")
        told.append(await refused_step(challenges, f"relay.c{n}.{fresh_label}.example.test"))
    tells("a challenge below a delegation, below a DNAME", ", ".join(told))
