"""Zones below ours, on the same server or elsewhere, configured or not, delegated or not."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.dns.challenges import Challenges
from gateway.dns.errors import ChallengeUnavailable
from gateway.dns.exchange import Exchange
from gateway.dns.outcome import OutcomeKind
from gateway.dns.zones import Endpoint, Zone, Zones
from tests.integration.dns.conftest import (
    V4,
    V4_OTHER,
    caller_at,
    propagated,
    soon,
    zone_at,
)
from tests.integration.dns.hand import Hand
from tests.integration.dns.lone_bind import LoneBind, lone_bind
from tests.lab.ports import LOOPBACK, free_port

CREATED, CONFLICT = OutcomeKind.CREATED, OutcomeKind.CONFLICT
UNAVAILABLE = OutcomeKind.UNAVAILABLE

FOREIGN = "foreign IN A 203.0.113.7"
DELEGATIONS = {"without a delegation": "", "with a delegation": "sub IN NS ns1.sub"}
ANSWERS = {"plain": "", "minimal": "minimal-responses yes;"}


@pytest.fixture(params=DELEGATIONS)
def delegation(request: pytest.FixtureRequest) -> str:
    return DELEGATIONS[request.param]


@pytest.fixture(params=ANSWERS)
def server(request: pytest.FixtureRequest, tmp_path: Path, delegation: str) -> Iterator[LoneBind]:
    """The SOA is in the authority section of answers, or nowhere but in answers about itself."""
    zones = {"parent.test": f"{FOREIGN}\n{delegation}", "sub.parent.test": FOREIGN}
    with lone_bind(tmp_path, zones, options=ANSWERS[request.param]) as running:
        yield running


@pytest.fixture
def parent(server: LoneBind) -> Zone:
    return zone_at(server.primary, server.tsig, "parent.test", server.primary[1])


@pytest.fixture
def child(server: LoneBind) -> Zone:
    return zone_at(server.primary, server.tsig, "sub.parent.test", server.primary[1])


async def test_names_of_a_child_that_is_not_configured_are_unavailable(
    server: LoneBind, parent: Zone
) -> None:
    hand = Hand(server.primary, server.tsig)
    serials = hand.serial("parent.test"), hand.serial("sub.parent.test")
    for name in ("new.sub.parent.test", "foreign.sub.parent.test", "sub.parent.test"):
        caller = caller_at(name, parent)
        for outcome in (await caller.publish(V4), await caller.inspect()):
            assert (outcome.kind, outcome.retry_after_seconds) == (UNAVAILABLE, None)
            assert "sub.parent.test" in outcome.detail
    assert (hand.serial("parent.test"), hand.serial("sub.parent.test")) == serials


async def test_challenges_below_a_child_that_is_not_configured_are_refused(parent: Zone) -> None:
    challenges = Challenges(Zones([parent]), Exchange())
    with pytest.raises(ChallengeUnavailable, match=r"sub\.parent\.test") as caught:
        await challenges.locate("new.sub.parent.test", soon())
    assert caught.value.retry_after_seconds is None


async def test_names_of_the_parent_are_published_replaced_and_judged(parent: Zone) -> None:
    caller = caller_at("relay.parent.test", parent)
    kinds = [(await caller.publish(record)).kind for record in (V4, V4, V4_OTHER)]
    assert kinds == [CREATED, OutcomeKind.UNCHANGED, OutcomeKind.UPDATED]
    assert (await caller_at("foreign.parent.test", parent).publish(V4)).kind is CONFLICT
    assert (await caller_at("parent.test", parent).publish(V4)).kind is CONFLICT


async def test_configured_child_takes_its_own_names(
    server: LoneBind, parent: Zone, child: Zone
) -> None:
    hand = Hand(server.primary, server.tsig)
    serial = hand.serial("parent.test")
    caller = caller_at("relay.sub.parent.test", parent, child)
    assert (await caller.publish(V4)).kind is CREATED
    assert (await caller.publish(V4)).kind is OutcomeKind.UNCHANGED
    assert (await caller_at("sub.parent.test", parent, child).publish(V4)).kind is CONFLICT
    challenges = Challenges(Zones([parent, child]), Exchange())
    target = await challenges.locate("relay.sub.parent.test", soon())
    assert target.zone == child
    assert hand.serial("parent.test") == serial


@pytest.mark.parametrize("name", ["relay.sub.parent.test", "sub.parent.test"])
async def test_parent_is_not_asked_when_the_child_s_server_is_down(
    server: LoneBind, parent: Zone, name: str
) -> None:
    hand = Hand(server.primary, server.tsig)
    serial = hand.serial("parent.test")
    dead = zone_at(Endpoint(LOOPBACK, free_port()), server.tsig, "sub.parent.test")
    caller = caller_at(name, parent, dead)
    for outcome in (await caller.publish(V4), await caller.inspect(), await caller.withdraw()):
        assert outcome.kind is UNAVAILABLE
        assert outcome.retry_after_seconds is not None
        assert str(dead.primary) in outcome.detail
    with pytest.raises(ChallengeUnavailable) as caught:
        await Challenges(Zones([parent, dead]), Exchange()).locate(name, soon())
    assert caught.value.retry_after_seconds is not None
    assert hand.serial("parent.test") == serial


async def test_zone_that_the_server_has_no_more_is_unavailable_for_now(tmp_path: Path) -> None:
    with lone_bind(tmp_path, {"parent.test": ""}) as server:
        zone = zone_at(server.primary, server.tsig, "gone.parent.test")
        outcome = await caller_at("x.gone.parent.test", zone).publish(V4)
    assert outcome.kind is UNAVAILABLE
    assert "parent.test" in outcome.detail


class TestChallengeNameThatIsAZone:
    """`_acme-challenge.<hostname>` cut out of the zone that holds the hostname."""

    ZONE = "_acme-challenge.relay.parent.test"

    @pytest.fixture
    def server(self, tmp_path: Path, delegation: str) -> Iterator[LoneBind]:
        cut = delegation.replace("sub", "_acme-challenge.relay")
        # The zone file has an address below the zone's name, which is no hostname's.
        options = "check-names primary ignore;"
        zones = {"parent.test": cut, self.ZONE: ""}
        with lone_bind(tmp_path, zones, options=options) as running:
            yield running

    async def test_it_is_used_where_it_is_configured(self, server: LoneBind, parent: Zone) -> None:
        own = zone_at(server.primary, server.tsig, self.ZONE, server.primary[1])
        challenges = Challenges(Zones([parent, own]), Exchange())
        target = await challenges.locate("relay.parent.test", soon())
        assert (target.zone, target.name) == (own, self.ZONE)
        await challenges.publish(target, "value", soon())
        await propagated(target, "value")
        await challenges.remove(target, "value", soon())
        left = Hand(server.primary, server.tsig).records(self.ZONE)
        assert {each.split()[1] for each in left} == {"SOA", "NS"}

    async def test_certificates_are_refused_where_it_is_not(self, parent: Zone) -> None:
        challenges = Challenges(Zones([parent]), Exchange())
        with pytest.raises(ChallengeUnavailable, match="_acme-challenge") as caught:
            await challenges.locate("relay.parent.test", soon())
        assert caught.value.retry_after_seconds is None
        assert (await caller_at("relay.parent.test", parent).publish(V4)).kind is CREATED


async def test_challenge_name_that_is_delegated_elsewhere_is_refused_in_clear_words(
    tmp_path: Path,
) -> None:
    records = "_acme-challenge.relay IN NS ns.elsewhere.example.org."
    with lone_bind(tmp_path, {"parent.test": records}) as server:
        zone = zone_at(server.primary, server.tsig, "parent.test")
        challenges = Challenges(Zones([zone]), Exchange())
        with pytest.raises(ChallengeUnavailable) as caught:
            await challenges.locate("relay.parent.test", soon())
        assert caught.value.retry_after_seconds is None
        for word in ("_acme-challenge.relay.parent.test", "delegated away", "parent.test"):
            assert word in caught.value.detail
        assert (await caller_at("relay.parent.test", zone).publish(V4)).kind is CREATED
