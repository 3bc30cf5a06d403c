"""What each server of a zone answers: a real BIND, and secondaries that follow, lag or are down."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import dns.flags
import dns.message
import pytest

from gateway.contract import DnsRecord
from gateway.contract.names import Hostname
from gateway.dns.answers_now import (
    MOST_CHARACTERS,
    MOST_SERVERS,
    MOST_VALUES,
    NO_TIME,
    AnswersNow,
    Role,
    RRsetSeen,
    ServerAnswer,
    ValueSeen,
    ZoneAnswers,
)
from gateway.dns.exchange import Exchange
from gateway.dns.marker import MarkerKey, Markers
from gateway.dns.zones import Endpoint, Zone, Zones
from tests.integration.dns.conftest import MARKERS, V4, V4_OTHER, V6, Caller, owner_of, zone_at
from tests.integration.dns.hand import Hand
from tests.integration.dns.lagging import NAME, followed_over_a_line
from tests.integration.dns.lines import Ask, line
from tests.integration.dns.lone_bind import lone_bind
from tests.integration.dns.servers import black_hole
from tests.integration.dns.test_propagation import FourOnly
from tests.lab.bind import BindPair
from tests.lab.ports import LOOPBACK, free_port
from tests.lab.process import read_until


async def answers(
    zone: Zone, hostname: str, published: DnsRecord | None = V4, exchange: Exchange | None = None
) -> ZoneAnswers:
    asked = AnswersNow(Zones([zone]), exchange or Exchange(), MARKERS)
    return await asked.of(Hostname(hostname), published)


async def all_seeing(
    zone: Zone,
    hostname: str,
    is_seen: Callable[[ServerAnswer], bool],
    published: DnsRecord | None = V4,
) -> ZoneAnswers:
    """The answers once every server has followed."""
    return await read_until(
        lambda: answers(zone, hostname, published), lambda seen: all(map(is_seen, seen.servers)), 20
    )


def by_address(seen: ZoneAnswers) -> dict[str | None, ServerAnswer]:
    """The name servers' answers."""
    return {each.address: each for each in seen.servers if each.role is Role.NAME_SERVER}


def values(answer: ServerAnswer, type_: str) -> list[str]:
    return [each.text for rrset in answer.rrsets if rrset.type == type_ for each in rrset.values]


async def test_primary_and_secondary_that_serve_the_record_agree(
    caller: Caller, zone: Zone, bind: BindPair, hostname: str
) -> None:
    await caller.publish(V4)
    # The answers to its questions may be of before and after the secondary has it.
    seen = await all_seeing(zone, hostname, lambda each: len(each.rrsets) == 2)
    assert {each.agrees for each in seen.servers} == {True}
    assert (seen.zone, seen.fault, seen.more) == ("example.test", None, 0)
    primary, secondary = (str(Endpoint(*at)) for at in (bind.primary, bind.secondary_as_ns2))
    assert [(each.role, each.address) for each in seen.servers] == [
        (Role.PRIMARY, primary),
        (Role.NAME_SERVER, primary),
        (Role.NAME_SERVER, secondary),
    ]
    assert seen.servers[2].label == f"ns2.example.test:{bind.nameserver_port}"
    marker = f'"{MARKERS.sign(owner_of(hostname), V4.type, V4.value)}"'
    expected = (
        RRsetSeen("A", 300, (ValueSeen(V4.value),)),
        RRsetSeen("TXT", 300, (ValueSeen(marker, is_marker=True, is_own_key=True),)),
    )
    for each in seen.servers:
        assert (each.rcode, each.fault, each.rrsets) == ("NOERROR", None, expected)


async def test_name_that_is_free_is_told_as_not_there(zone: Zone, hostname: str) -> None:
    seen = await answers(zone, hostname, None)
    assert {(each.rcode, each.rrsets, each.agrees) for each in seen.servers} == {
        ("NXDOMAIN", (), None)
    }


async def test_record_that_nobody_serves_is_disagreed_with(zone: Zone, hostname: str) -> None:
    seen = await answers(zone, hostname)
    assert [each.agrees for each in seen.servers] == [False] * 3


async def test_address_that_was_edited_is_seen_and_disagreed_with(
    caller: Caller, zone: Zone, hand: Hand, hostname: str
) -> None:
    await caller.publish(V4)
    hand.update(f"delete {hostname} A", f"add {hostname} 60 A {V4_OTHER.value}")
    seen = await all_seeing(zone, hostname, lambda each: values(each, "A") == [V4_OTHER.value])
    assert [each.agrees for each in seen.servers] == [False] * 3


async def test_second_address_beside_the_record_is_disagreed_with(
    caller: Caller, zone: Zone, hand: Hand, hostname: str
) -> None:
    await caller.publish(V4)
    hand.add(f"{hostname} 300 A {V4_OTHER.value}", f"{hostname} 300 AAAA {V6.value}")
    seen = await all_seeing(zone, hostname, lambda each: len(values(each, "A")) == 2)
    assert [each.agrees for each in seen.servers] == [False] * 3
    seen = await answers(zone, hostname, V6)
    assert [each.agrees for each in seen.servers] == [True] * 3


async def test_secondary_that_lags_is_told_from_one_that_follows(tmp_path: Path) -> None:
    """Its line to its primary hangs: it answers as ever, with the old zone."""
    hostname = f"relay.{NAME}"
    with followed_over_a_line(tmp_path, f"relay 300 IN A {V4.value}") as followed:
        followed.line.pause()
        change = (f"delete {hostname} A", f"add {hostname} 300 A {V4_OTHER.value}")
        Hand(followed.primary.primary, followed.primary.tsig).update(*change)
        seen = by_address(await answers(followed.zone, hostname, V4_OTHER))
        assert [(each.agrees, values(each, "A")) for each in seen.values()] == [
            (True, [V4_OTHER.value]),
            (False, [V4.value]),
        ]


async def test_server_that_is_down_is_a_sentence_and_the_others_are_told(
    caller: Caller, zone: Zone, bind: BindPair, hostname: str
) -> None:
    await caller.publish(V4)
    dead = Endpoint(LOOPBACK, free_port())
    servers = replace(zone, servers=(Endpoint(*bind.primary), dead))
    seen = by_address(await answers(servers, hostname))
    assert seen[str(Endpoint(*bind.primary))].agrees is True
    down = seen[str(dead)]
    assert (down.rcode, down.rrsets, down.agrees, down.is_silent) == (None, (), None, True)
    assert down.fault is not None
    assert str(dead) in down.fault


@pytest.mark.parametrize(("lost", "agrees"), [("A", None), ("TXT", True)])
async def test_server_that_answers_half_is_told_with_what_it_does_not_answer(
    caller: Caller, zone: Zone, bind: BindPair, hostname: str, lost: str, agrees: bool | None
) -> None:
    await caller.publish(V4)

    async def half(request: bytes, ask: Ask) -> bytes | None:
        (question,) = dns.message.from_wire(request).question
        return None if question.rdtype.name == lost else await ask(request)

    async with line(bind.primary, udp=half) as at:
        seen = by_address(await answers(replace(zone, servers=(at,)), hostname))
    told = seen[str(at)]
    assert (told.agrees, told.is_silent, told.is_faulty) == (agrees, False, True)
    assert told.fault is not None
    assert told.fault.startswith(f"It answers the other questions, and not that for {lost}: ")


async def test_servers_that_hang_cost_one_bound_together(
    caller: Caller, zone: Zone, hostname: str, bind: BindPair
) -> None:
    await caller.publish(V4)
    async with black_hole() as one, black_hole() as two, black_hole() as three:
        hanging = replace(zone, standbys=(one,), servers=(two, three, Endpoint(*bind.primary)))
        seen = await answers(hanging, hostname)
    assert [each.agrees for each in seen.servers] == [True, None, None, None, True]
    assert [each.is_silent for each in seen.servers] == [False, True, True, True, False]
    assert all(each.fault for each in seen.servers if not each.agrees)


async def test_server_that_refuses_is_told_with_its_rcode(
    zone: Zone, hostname: str, tmp_path: Path
) -> None:
    with lone_bind(tmp_path, {"other.test": ""}) as other:
        at = Endpoint(*other.primary)
        (answer,) = by_address(await answers(replace(zone, servers=(at,)), hostname)).values()
    assert (answer.rcode, answer.agrees) == ("REFUSED", False)
    assert answer.fault is not None
    assert answer.fault.startswith("It answers REFUSED")


async def test_primary_is_asked_with_the_key_and_tells_where_it_is_not_accepted(
    zone: Zone, bind: BindPair, hostname: str
) -> None:
    unknown = replace(zone, key=replace(zone.key, name="unknown"), servers=(zone.primary,))
    primary, server = (await answers(unknown, hostname)).servers
    assert (primary.rcode, server.rcode) == (None, "NXDOMAIN")
    assert primary.fault is not None
    assert "BADKEY" in primary.fault


async def test_hostname_below_a_delegation_is_answered_without_authority(
    zone: Zone, hand: Hand, hostname: str
) -> None:
    hand.add(f"{hostname} 60 NS ns.elsewhere.test.")
    below = f"deep.{hostname}"
    seen = await all_seeing(zone, below, lambda each: each.rcode == "NOERROR")
    assert {each.agrees for each in seen.servers} == {False}
    assert all("without authority" in (each.fault or "") for each in seen.servers)


async def without_authority(request: bytes, ask: Ask) -> bytes:
    """As a cache answers, without the AA bit."""
    reply = await ask(request)
    return reply[:2] + bytes([reply[2] & ~(dns.flags.AA >> 8)]) + reply[3:]


async def test_record_out_of_a_cache_is_shown_and_not_believed(
    caller: Caller, zone: Zone, bind: BindPair, hostname: str
) -> None:
    await caller.publish(V4)
    async with line(bind.primary, udp=without_authority) as cache:
        (answer,) = by_address(await answers(replace(zone, servers=(cache,)), hostname)).values()
    assert (values(answer, "A"), answer.agrees) == ([V4.value], False)
    assert "without authority" in (answer.fault or "")


async def test_what_a_wildcard_makes_up_is_what_the_servers_answer(
    zone: Zone, hand: Hand, hostname: str
) -> None:
    hand.add(f"*.{hostname} 60 A {V4.value}")
    seen = await all_seeing(zone, f"any.{hostname}", lambda each: each.agrees is True)
    assert {values(each, "A")[0] for each in seen.servers} == {V4.value}


async def test_alias_is_told_and_not_what_it_leads_to(
    zone: Zone, hand: Hand, hostname: str
) -> None:
    hand.add(f"to.{hostname} 60 A {V4.value}", f"{hostname} 60 CNAME to.{hostname}.")
    seen = await all_seeing(zone, hostname, lambda each: bool(each.rrsets))
    expected = (RRsetSeen("CNAME", 60, (ValueSeen(f"to.{hostname}."),)),)
    assert {(each.rrsets, each.agrees) for each in seen.servers} == {(expected, False)}


HOSTILE = r'"<script>alert(1)</script>" "\"quoted\" \000\027[2J\195\164"'


async def test_hostile_text_is_escaped_as_in_a_zone_file(
    zone: Zone, hand: Hand, hostname: str
) -> None:
    hand.add(f"{hostname} 60 TXT {HOSTILE}")
    seen = await all_seeing(zone, hostname, lambda each: bool(each.rrsets))
    for each in seen.servers:
        assert values(each, "TXT") == [HOSTILE]
        assert values(each, "TXT")[0].isprintable()


async def test_marker_of_another_key_is_one_all_the_same(
    zone: Zone, hand: Hand, hostname: str
) -> None:
    foreign = Markers([MarkerKey("k2", b"f" * 32)]).sign(owner_of(hostname), "A", V4.value)
    hand.add(f'{hostname} 60 TXT "{foreign}"', f'{hostname} 60 TXT "a note"')
    seen = await all_seeing(zone, hostname, lambda each: bool(each.rrsets))
    assert seen.servers[0].rrsets[0].values == (
        ValueSeen('"a note"'),
        ValueSeen(f'"{foreign}"', is_marker=True),
    )


async def test_many_and_long_values_are_cut_and_counted(
    zone: Zone, hand: Hand, hostname: str
) -> None:
    long = " ".join(f'"{"x" * 250}"' for _ in range(6))
    hand.add(*(f'{hostname} 60 TXT "{n:02}" {long}' for n in range(MOST_VALUES + 3)))
    seen = await all_seeing(zone, hostname, lambda each: bool(each.rrsets))
    for each in seen.servers:
        (rrset,) = each.rrsets
        assert (len(rrset.values), rrset.more) == (MOST_VALUES, 3)
        text = rrset.values[0].text
        assert text[MOST_CHARACTERS:] == f" (cut: {len(long) + 5} characters)"


async def test_more_servers_than_are_asked_are_counted(zone: Zone, hostname: str) -> None:
    same = replace(zone, servers=(zone.primary,) * (MOST_SERVERS + 2))
    seen = await answers(same, hostname)
    assert (len(seen.servers), seen.more) == (1 + MOST_SERVERS, 2)


async def test_server_without_an_address_is_told(tmp_path: Path) -> None:
    with lone_bind(tmp_path, {"parent.test": "@ IN NS no-such-host.invalid."}) as server:
        port = server.primary[1]
        zone = zone_at(server.primary, server.tsig, "parent.test", port)
        lost = by_address(await answers(zone, "relay.parent.test"))[None]
    assert (lost.label, lost.agrees) == (f"no-such-host.invalid:{port}", None)
    assert lost.is_silent
    assert lost.fault == "Its name has no address."


async def test_server_that_this_machine_has_no_route_to_neither_agrees_nor_not(
    zone: Zone, hostname: str
) -> None:
    six = Endpoint("2001:db8::53", 53)
    seen = await answers(replace(zone, servers=(six,)), hostname, V4, FourOnly())
    assert (by_address(seen)[str(six)].agrees, by_address(seen)[str(six)].is_silent) == (
        None,
        False,
    )


async def test_primary_that_is_down_leaves_the_name_servers_unknown(
    bind: BindPair, hostname: str
) -> None:
    dead = Endpoint(LOOPBACK, free_port())
    seen = await answers(zone_at(dead, bind.tsig), hostname)
    assert [(each.role, each.is_silent) for each in seen.servers] == [(Role.PRIMARY, True)]
    assert seen.fault is not None
    assert str(dead) in seen.fault


async def test_standby_tells_the_name_servers_where_the_primary_is_down(
    zone: Zone, hostname: str
) -> None:
    dead = Endpoint(LOOPBACK, free_port())
    seen = await answers(replace(zone, primary=dead, standbys=(zone.primary,)), hostname)
    assert seen.fault is None
    assert len(by_address(seen)) == 2


async def test_where_no_time_is_left_each_server_says_so(
    zone: Zone, hostname: str, bind: BindPair
) -> None:
    timeless = replace(zone, servers=(Endpoint(*bind.primary),))
    asked = AnswersNow(Zones([timeless]), Exchange(), MARKERS)
    seen = await asked.of(Hostname(hostname), V4, limit_seconds=0.0)
    assert [each.fault for each in seen.servers] == [NO_TIME] * 2


async def test_hostname_of_no_configured_zone_has_no_servers(zone: Zone) -> None:
    assert await answers(zone, "a.elsewhere.invalid") == ZoneAnswers(None)


@pytest.mark.parametrize("published", [None, V4])
async def test_name_is_compared_whatever_its_spelling_in_the_answer(
    caller: Caller, zone: Zone, hand: Hand, hostname: str, published: DnsRecord | None
) -> None:
    hand.add(f"{hostname.upper()} 300 A {V4.value}")
    agrees = None if published is None else True
    seen = await all_seeing(zone, hostname, lambda each: bool(each.rrsets), published)
    assert {each.agrees for each in seen.servers} == {agrees}
