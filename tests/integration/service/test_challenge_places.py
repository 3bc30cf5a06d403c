"""Challenges that cannot go to the hostname's own zone and name, and two gateways at one name."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.integration.dns.hand import Hand
from tests.integration.service.calling import Ownership, World
from tests.integration.service.inside import orders_placed, stored
from tests.lab.gateway import start_gateway, write_gateway_config
from tests.lab.lab import Lab
from tests.lab.pebble import start_pebble
from tests.lab.process import wait_until
from tests.lab.resolver import start_resolver

ADDRESS, WILD = "198.51.100.5", "203.0.113.7"


@pytest.fixture(scope="module")
def elsewhere(service_lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A gateway of another region in the same zones: its Redis, keyring and CA are its own.

    Its CA asks a resolver, so it follows an alias into another zone. It interrupts wildcards.
    """
    bind = service_lab.bind
    with ExitStack() as stack:
        resolver = start_resolver(tmp_path_factory.mktemp("resolver"), bind.zones, bind.primary)
        stack.callback(resolver.stop)
        pebble = start_pebble(tmp_path_factory.mktemp("pebble"), resolver.address)
        stack.callback(pebble.stop)
        folder = tmp_path_factory.mktemp("elsewhere") / "gateway"
        config = write_gateway_config(folder, bind, "embedded", pebble)
        settings = {
            f"GATEWAY_ZONES__{n}__WILDCARD_HOSTS": "interrupt" for n in range(len(bind.zones))
        }
        gateway = start_gateway(config, environ=settings)
        stack.callback(gateway.stop)
        yield World(config.url, config.admin_token)


def challenges_at(hand: Hand, hostname: str) -> set[str]:
    return hand.records(f"_acme-challenge.{hostname}")


def same_name(world: World, ownership: Ownership) -> Ownership:
    return Ownership(world.client(ownership.hostname), ownership.hostname)


def under_a_wildcard(world: World, hand: Hand, label: str) -> Ownership:
    hand.add(f"*.{label}.example.test 300 A {WILD}")
    hostname = f"relay.{label}.example.test"
    return Ownership(world.client(hostname), hostname)


def test_host_that_only_a_wildcard_answers_for_is_refused_until_it_has_a_record(
    service_lab: Lab, world: World, hand: Hand, fresh_label: str
) -> None:
    mine = under_a_wildcard(world, hand, fresh_label)
    answer = mine.get()
    assert (answer["status"], answer["reason"]) == ("refused", "zone-unavailable")
    assert f"would stop {mine.hostname} from resolving" in answer["message"]
    assert answer["retryAfterMs"] > 0
    assert stored(service_lab, mine.hostname) == {}
    assert hand.records(mine.hostname) == {f"300 A {WILD}"}
    assert mine.publish(ADDRESS)["status"] == "managed-created"
    assert mine.certificate()


def test_host_that_only_a_wildcard_answers_for_is_interrupted_where_that_is_set(
    elsewhere: World, hand: Hand, fresh_label: str
) -> None:
    mine = under_a_wildcard(elsewhere, hand, fresh_label)
    assert mine.certificate()
    wait_until(
        lambda: hand.records(mine.hostname) == {f"300 A {WILD}"}, "the wildcard answers again"
    )


def test_chain_of_two_aliases_through_two_zones_is_followed_and_left_as_it_was(
    elsewhere: World, hand: Hand, fresh_label: str
) -> None:
    mine = elsewhere.ownership()
    name, middle, goal = (
        f"_acme-challenge.{mine.hostname}",
        f"{fresh_label}.example.net.test",
        f"{fresh_label}.acme.example.test",
    )
    hand.add(f"{name} 300 CNAME {middle}.")
    hand.add(f"{middle} 300 CNAME {goal}.")
    assert mine.certificate()
    wait_until(lambda: hand.records(goal) == set(), "the challenge is gone from the goal")
    assert hand.records(name) == {f"300 CNAME {middle}."}
    assert hand.records(middle) == {f"300 CNAME {goal}."}


def test_alias_to_somebody_elses_zone_is_refused_with_the_target_and_costs_no_order(
    service_lab: Lab, hand: Hand, mine: Ownership
) -> None:
    name = f"_acme-challenge.{mine.hostname}"
    hand.add(f"{name} 300 CNAME relay.theirs.example.org.")
    before = orders_placed(service_lab)
    answer = mine.settled()
    assert (answer["status"], answer["reason"]) == ("refused", "zone-unavailable")
    assert f"relay.theirs.example.org, which {name} is an alias of" in answer["message"]
    assert orders_placed(service_lab) == before
    assert mine.release() == "released"
    assert hand.records(name) == {"300 CNAME relay.theirs.example.org."}


def test_two_gateways_have_both_values_live_and_both_get_their_certificate(
    service_lab: Lab, elsewhere: World, hand: Hand, mine: Ownership
) -> None:
    there = same_name(elsewhere, mine)
    secondary = service_lab.bind.secondary_process
    secondary.pause()  # a gateway waits for it before it tells the CA
    try:
        assert [each.get()["status"] for each in (mine, there)] == ["pending", "pending"]
        wait_until(lambda: len(challenges_at(hand, mine.hostname)) == 2, "both values are live")
    finally:
        secondary.resume()
    certificates = [each.certificate()["chainPem"] for each in (mine, there)]
    assert len(set(certificates)) == 2
    wait_until(lambda: challenges_at(hand, mine.hostname) == set(), "both values are gone")


def test_release_at_one_gateway_leaves_the_value_of_the_other(
    service_lab: Lab, elsewhere: World, hand: Hand, mine: Ownership
) -> None:
    there = same_name(elsewhere, mine)
    secondary = service_lab.bind.secondary_process
    secondary.pause()
    try:
        mine.get()
        wait_until(lambda: len(challenges_at(hand, mine.hostname)) == 1, "the first is live")
        first = challenges_at(hand, mine.hostname)
        there.get()
        wait_until(lambda: len(challenges_at(hand, mine.hostname)) == 2, "both are live")
        assert mine.release() == "released"
        wait_until(lambda: len(challenges_at(hand, mine.hostname)) == 1, "one is gone")
        assert challenges_at(hand, mine.hostname).isdisjoint(first)
    finally:
        secondary.resume()
    assert there.certificate()
    wait_until(lambda: challenges_at(hand, mine.hostname) == set(), "both values are gone")
