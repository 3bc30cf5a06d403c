"""What BIND lets the key do: the least privilege that the gateway needs, and what is refused."""

import asyncio
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.dns.challenges import Challenges
from gateway.dns.errors import DnsFault, ServerRefused
from gateway.dns.exchange import Exchange
from gateway.dns.health import check_zone, probe_zone, refused_types
from gateway.dns.outcome import OutcomeKind
from gateway.dns.zones import Zone, Zones
from tests.integration.dns.conftest import (
    V4,
    V4_OTHER,
    V6,
    caller_at,
    propagated,
    soon,
    zone_at,
)
from tests.integration.dns.hand import Hand
from tests.integration.dns.lone_bind import (
    LoneBind,
    bind_with,
    documented_bind,
    lone_bind,
    write_zone,
)
from tests.lab.bind import new_key
from tests.lab.ports import LOOPBACK, free_port

CREATED, UPDATED = OutcomeKind.CREATED, OutcomeKind.UPDATED
DELETED, FAILED = OutcomeKind.DELETED, OutcomeKind.FAILED

HOSTS = "www IN A 203.0.113.7\nrelays IN MX 10 mail"
ALIASES = "_acme-challenge.mail IN CNAME mail.acme.example.com."


async def works(zone: Zone, hostname: str) -> None:
    """A record and a challenge come and go."""
    caller = caller_at(hostname, zone)
    kinds = [(await caller.publish(record)).kind for record in (V4, V4_OTHER, V6)]
    assert [*kinds, (await caller.withdraw()).kind] == [CREATED, UPDATED, UPDATED, DELETED]
    challenges = Challenges(Zones([zone]), Exchange())
    target = await challenges.locate(hostname, soon())
    await challenges.publish(target, "value", soon())
    await propagated(target, "value")
    await challenges.remove(target, "value", soon())


async def is_refused(hand: Hand, *lines: str) -> bool:
    serial = await asyncio.to_thread(hand.serial, "example.com")
    with pytest.raises(subprocess.CalledProcessError) as caught:
        await asyncio.to_thread(hand.update, *lines)
    assert await asyncio.to_thread(hand.serial, "example.com") == serial
    return "REFUSED" in caught.value.stderr


class TestOneZoneAsDocumented:
    @pytest.fixture
    def server(self, tmp_path: Path) -> Iterator[LoneBind]:
        with documented_bind(tmp_path, "one zone", {"example.com": HOSTS}) as running:
            yield running

    async def test_records_challenges_and_the_check_work(self, server: LoneBind) -> None:
        zone = zone_at(server.primary, server.tsig, "example.com", server.primary[1])
        await works(zone, "relay.example.com")
        await works(zone, "a.b.example.com")
        assert (await check_zone(Exchange(), zone, soon())).ok
        assert await refused_types(Exchange(), zone, soon()) == ()

    @pytest.mark.parametrize(
        "line",
        [
            "add example.com 300 A 192.0.2.1",
            "add example.com 300 TXT spf",
            "add example.com 300 NS ns2.example.com.",
            "delete example.com MX",
            "add relay.example.com 300 NS ns.example.org.",
            "add relay.example.com 300 CNAME www.example.com.",
            "add relay.example.com 300 DNAME example.org.",
            "add relay.example.com 300 MX 10 www.example.com.",
            'add relay.example.com 300 CAA 0 issue "ca.test"',
        ],
    )
    async def test_key_can_change_nothing_else(self, server: LoneBind, line: str) -> None:
        assert await is_refused(Hand(server.primary, server.tsig), line)


class TestLeastPrivilegeAsDocumented:
    """Two keys: hosts below one name with their challenges, and the challenges of all others."""

    @pytest.fixture
    def server(self, tmp_path: Path) -> Iterator[LoneBind]:
        zones = {"example.com": f"{HOSTS}\n{ALIASES}", "acme.example.com": ""}
        self.acme_key = new_key("gateway-acme")
        keys = (new_key("gateway"), self.acme_key)
        with documented_bind(tmp_path, "least privilege", zones, keys=keys) as running:
            yield running

    @pytest.fixture
    def zone(self, server: LoneBind) -> Zone:
        return zone_at(server.primary, server.tsig, "example.com", server.primary[1])

    @pytest.fixture
    def acme(self, server: LoneBind) -> Zone:
        return zone_at(server.primary, self.acme_key, "acme.example.com", server.primary[1])

    async def test_hosts_below_the_name_are_published_and_validated(self, zone: Zone) -> None:
        await works(zone, "edge.relays.example.com")

    async def test_challenge_of_another_host_goes_by_its_alias(
        self, zone: Zone, acme: Zone
    ) -> None:
        challenges = Challenges(Zones([zone, acme]), Exchange())
        target = await challenges.locate("mail.example.com", soon())
        assert (target.zone, target.name) == (acme, "mail.acme.example.com")
        await challenges.publish(target, "value", soon())
        await propagated(target, "value")
        await challenges.remove(target, "value", soon())

    async def test_record_outside_fails_naming_types_name_and_refusal(self, zone: Zone) -> None:
        outcome = await caller_at("edge.example.com", zone).publish(V6)
        assert (outcome.kind, outcome.unknown) == (FAILED, False)
        assert outcome.retry_after_seconds is not None
        for word in ("REFUSED", "AAAA, TXT", "edge.example.com", "update-policy", "key gateway"):
            assert word in outcome.detail

    async def test_challenge_without_alias_outside_is_refused(self, zone: Zone) -> None:
        challenges = Challenges(Zones([zone]), Exchange())
        target = await challenges.locate("edge.example.com", soon())
        with pytest.raises(ServerRefused, match=r"TXT at _acme-challenge\.edge\."):
            await challenges.publish(target, "value", soon())

    async def test_looking_needs_no_right_to_write(self, zone: Zone) -> None:
        assert (await caller_at("edge.example.com", zone).inspect()).kind is OutcomeKind.FREE
        assert (await caller_at("www.example.com", zone).inspect()).kind is OutcomeKind.CONFLICT
        assert (await caller_at("edge.example.com", zone).withdraw()).kind is DELETED

    async def test_check_warns_of_the_narrow_rule(self, zone: Zone, acme: Zone) -> None:
        assert (await check_zone(Exchange(), zone, soon())).ok
        assert await refused_types(Exchange(), zone, soon()) == ("A", "AAAA", "TXT")
        assert await refused_types(Exchange(), acme, soon()) == ("A", "AAAA")

    @pytest.mark.parametrize(
        "line",
        [
            "add www.example.com 300 TXT taken",
            "delete www.example.com A",
            "add relays.example.com 300 MX 10 www.example.com.",
            "add edge.relays.example.com 300 CNAME www.example.com.",
            "add _acme-challenge.www.example.com 300 TXT taken",
            "add x.acme.example.com 300 TXT taken",
        ],
    )
    async def test_key_of_the_hosts_can_change_nothing_else(
        self, server: LoneBind, line: str
    ) -> None:
        assert await is_refused(Hand(server.primary, server.tsig), line)

    @pytest.mark.parametrize(
        "line",
        [
            "add mail.acme.example.com 300 A 192.0.2.1",
            "add acme.example.com 300 TXT taken",
            "add mail.acme.example.com 300 CNAME www.example.com.",
            "add edge.relays.example.com 300 TXT taken",
        ],
    )
    async def test_key_of_the_challenges_can_change_nothing_else(
        self, server: LoneBind, line: str
    ) -> None:
        assert await is_refused(Hand(server.primary, self.acme_key), line)


HOSTNAMES = ("a.example.com", "b.example.com", "a.b.example.com", "c.a.b.example.com")
RULES = {
    "zonesub": HOSTNAMES,
    "wildcard *.b.example.com": HOSTNAMES[2:],
    "subdomain b.example.com": HOSTNAMES[1:],
    "name b.example.com": HOSTNAMES[1:2],
}


@pytest.mark.parametrize("rule", RULES)
async def test_rule_of_each_kind_admits_what_the_table_says(tmp_path: Path, rule: str) -> None:
    policy = f"update-policy {{ grant gateway {rule} A AAAA TXT; }};"
    with lone_bind(tmp_path, {"example.com": ""}, permission=policy) as server:
        zone = zone_at(server.primary, server.tsig, "example.com")
        created = [
            hostname
            for hostname in HOSTNAMES
            if (await caller_at(hostname, zone).publish(V4)).kind is CREATED
        ]
    assert created == list(RULES[rule])


async def test_deny_before_a_grant_takes_a_name_out(tmp_path: Path) -> None:
    policy = """update-policy {
      deny gateway name ns2.example.com ANY;
      grant gateway wildcard *.example.com A AAAA TXT;
    };"""
    with lone_bind(tmp_path, {"example.com": ""}, permission=policy) as server:
        zone = zone_at(server.primary, server.tsig, "example.com")
        assert (await caller_at("ns2.example.com", zone).publish(V4)).kind is FAILED
        assert (await caller_at("ns3.example.com", zone).publish(V4)).kind is CREATED


@pytest.mark.parametrize("permission", ["A AAAA", "TXT", "A TXT"])
async def test_record_of_which_a_part_is_forbidden_is_not_published_at_all(
    tmp_path: Path, permission: str
) -> None:
    policy = f"update-policy {{ grant gateway zonesub {permission}; }};"
    with lone_bind(tmp_path, {"example.com": ""}, permission=policy) as server:
        zone = zone_at(server.primary, server.tsig, "example.com")
        caller = caller_at("relay.example.com", zone)
        assert (await caller.publish(V6)).kind is FAILED
        assert (await caller.inspect()).kind is OutcomeKind.FREE


async def test_zone_that_the_key_may_not_query_is_refused_in_clear_words(tmp_path: Path) -> None:
    """BIND takes no update from whom it answers nothing, whatever allow-update says."""
    permission = "allow-query { none; }; allow-update { key gateway; };"
    config = f'zone "example.com" {{ type primary; file "example.com.zone"; {permission} }};'
    write_zone(tmp_path, "example.com")
    with bind_with(
        tmp_path, [new_key("gateway")], config, lambda server: server.refuses("example.com")
    ) as server:
        zone = zone_at(server.primary, server.tsig, "example.com")
        outcome = await caller_at("relay.example.com", zone).publish(V4)
        probed = await probe_zone(Exchange(), zone, soon())
        with pytest.raises(DnsFault, match="allow-query"):
            await Challenges(Zones([zone]), Exchange()).locate("relay.example.com", soon())
    assert outcome.kind is FAILED
    assert "REFUSED" in outcome.detail
    assert "allow-query" in outcome.detail
    assert not probed.ok
    assert "REFUSED" in probed.detail


async def test_hidden_primary_that_only_keys_may_query_works_with_its_secondary(
    tmp_path: Path,
) -> None:
    (tmp_path / "secondary").mkdir()
    port = free_port()
    keys = (new_key("gateway"), new_key("transfer"))
    with documented_bind(
        tmp_path,
        "hidden primary",
        {"example.com": ""},
        keys=keys,
        is_ready=lambda server: server.serves("example.com", keys[0]),
        replacing={"192.0.2.54": f"{LOOPBACK} port {port}"},
    ) as primary:
        source = "{} port {}".format(*primary.primary)
        with documented_bind(
            tmp_path / "secondary",
            "secondary",
            {},
            keys=keys[1:],
            is_ready=lambda server: server.serves("example.com"),
            replacing={"192.0.2.53": source},
            port=port,
        ):
            # The NS RRset says where the secondaries are: here one, on a port of its own.
            zone = zone_at(primary.primary, keys[0], "example.com", port)
            assert not primary.serves("example.com")
            await works(zone, "relay.example.com")
            assert (await check_zone(Exchange(), zone, soon())).ok
