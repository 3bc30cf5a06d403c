"""The turnstile between zones: one in which every step takes long leaves places to the others."""

import asyncio

import pytest
from hypothesis import given, strategies as st

from gateway.certificates import turnstile
from gateway.certificates.turnstile import Client, Lines, Most, Places, Turnstile, Within
from gateway.contract.names import ClientId, Hostname
from tests.unit.certificates.test_turnstile import FEW, MANY, MOST, Work, settled

DEAD, WELL = "dead.test", "well.test"


def zone_of(hostname: Hostname) -> Within:
    return hostname.partition(".")[2]


def names(zone: str, count: int, prefix: str = "n") -> list[Hostname]:
    return [Hostname(f"{prefix}{number}.{zone}") for number in range(count)]


def lines_of(*waiting: tuple[Client, list[Hostname]]) -> Lines:
    lines = Lines(zone_of)
    for client, hostnames in waiting:
        for hostname in hostnames:
            assert lines.join(hostname, client)
    return lines


def taken(lines: Lines, places: Places, count: int) -> list[Hostname]:
    found = [lines.take(places, MOST) for _ in range(count)]
    return [each[0] for each in found if each is not None]


def places_in(zone: Within, count: int, client: Client = MANY) -> Places:
    places = Places()
    for _ in range(count):
        places.give(client, zone)
    return places


@pytest.mark.parametrize(
    ("count", "most"), [(1, Most(1, 1)), (4, Most(3, 2)), (16, Most(14, 13)), (32, Most(28, 25))]
)
def test_client_may_have_less_in_one_zone_than_in_all(count: int, most: Most) -> None:
    assert Most.of(count) == most


def test_zone_with_fewest_places_is_the_clients_next() -> None:
    lines = lines_of((MANY, [*names(DEAD, 3), *names(WELL, 3)]))
    assert taken(lines, places_in(DEAD, 2), 3) == names(WELL, 3)


def test_zones_of_a_client_take_turns_when_none_is_slow() -> None:
    lines = lines_of((MANY, [*names(DEAD, 3), *names(WELL, 3)]))
    zones = [zone_of(hostname) for hostname in taken(lines, Places(), 4)]
    assert zones == [DEAD, WELL, DEAD, WELL]


def test_client_with_many_zones_has_no_more_turns_than_one_with_few() -> None:
    lines = lines_of((MANY, [*names(DEAD, 3), *names(WELL, 3)]), (FEW, names(WELL, 3, "few")))
    found = [lines.take(Places(), MOST) for _ in range(4)]
    assert [each and each[1] for each in found] == [MANY, FEW, MANY, FEW]


def test_zone_that_has_all_it_may_have_is_passed_over_whoever_waits() -> None:
    lines = lines_of((MANY, names(DEAD, 3)), (FEW, names(DEAD, 1, "few")), (None, names(DEAD, 1)))
    full = places_in(DEAD, MOST.of_one, ClientId("another"))
    assert taken(lines, full, 1) == []
    lines.join(names(WELL, 1)[0], FEW)
    assert taken(lines, full, 2) == names(WELL, 1)


def test_full_line_of_a_zone_leaves_room_to_the_clients_other_zone() -> None:
    lines = lines_of((MANY, names(DEAD, turnstile.LINE_LIMIT)))
    assert not lines.join(Hostname(f"late.{DEAD}"), MANY)
    assert lines.join(Hostname(f"late.{WELL}"), MANY)


def test_hostname_outside_of_all_zones_is_kept_from_nothing() -> None:
    lines = Lines(lambda _: None)
    lines.join(Hostname("n.elsewhere.test"), FEW)
    assert lines.take(places_in(None, 100), MOST) == ("n.elsewhere.test", FEW)


@pytest.mark.parametrize("client", [MANY, FEW], ids=["the same client", "another client"])
@pytest.mark.parametrize("clients", [1, 50])
async def test_dead_zone_leaves_places_to_another_zone(client: ClientId, clients: int) -> None:
    work = Work()
    gate = Turnstile(16, work, zone_of)
    for number, hostname in enumerate(names(DEAD, 50)):
        gate.enter(hostname, MANY if clients == 1 else ClientId(f"client-{number}"))
    await settled()
    most = Most.of(16)
    assert len(work.begun) == (most.of_one_in_zone if clients == 1 else most.of_one)
    (well,) = names(WELL, 1)
    gate.enter(well, client)
    await settled()
    assert work.begun[-1] == well
    gate.close()
    for hostname in list(work.begun):
        work.end(hostname)
    await asyncio.gather(*gate.tasks)


async def test_client_leaves_places_to_others_within_a_zone() -> None:
    work = Work()
    gate = Turnstile(16, work, zone_of)
    for hostname in names(WELL, 50):
        gate.enter(hostname, MANY)
    (late,) = names(WELL, 1, "late")
    gate.enter(late, FEW)
    await settled()
    assert work.begun[-1] == late
    gate.close()
    for hostname in list(work.begun):
        work.end(hostname)
    await asyncio.gather(*gate.tasks)


@given(
    joins=st.lists(
        st.tuples(
            st.sampled_from([*names(DEAD, 5), *names(WELL, 5)]),
            st.sampled_from([MANY, FEW, None]),
            st.booleans(),
        ),
        max_size=40,
    )
)
def test_whatever_joined_is_taken_once(joins: list[tuple[Hostname, Client, bool]]) -> None:
    lines, joined = Lines(zone_of), set()
    for hostname, client, ahead in joins:
        if lines.join(hostname, client, ahead=ahead):
            joined.add(hostname)
    found = taken(lines, Places(), len(joined) + 1)
    assert sorted(found) == sorted(joined)
    assert len(lines) == 0
