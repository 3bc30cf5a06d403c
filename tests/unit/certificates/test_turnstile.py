"""The turnstile: shares of clients, order within one, and bounds."""

import asyncio
import contextvars

import pytest
from hypothesis import given, strategies as st

from gateway.certificates import turnstile
from gateway.certificates.turnstile import Client, Lines, Most, Places, Turnstile, Within
from gateway.contract.names import ClientId, Hostname

MANY = ClientId("many")
FEW = ClientId("few")
OTHER = ClientId("other")
MOST = Most(of_one=7, of_one_in_zone=6)


def zone_of(_: Hostname) -> Within:
    """All in one zone: `test_turnstile_zones` has the others."""
    return None


def places(**taken: int) -> Places:
    """So many places taken by each client; those of `nobody` by what has no holder."""
    counted = Places()
    for client, count in taken.items():
        for _ in range(count):
            counted.give(None if client == "nobody" else ClientId(client), None)
    return counted


def names(client: Client, count: int) -> list[Hostname]:
    return [Hostname(f"{client}-{number}.example.test") for number in range(count)]


def lines_of(*waiting: tuple[Client, int]) -> Lines:
    lines = Lines(zone_of)
    for client, count in waiting:
        for hostname in names(client, count):
            assert lines.join(hostname, client)
    return lines


def clients_taken(lines: Lines, count: int, taken_by: Places | None = None) -> list[Client]:
    taken = [lines.take(taken_by or Places(), MOST) for _ in range(count)]
    return [each[1] for each in taken if each is not None]


def test_clients_take_turns_however_many_each_has_waiting() -> None:
    lines = lines_of((MANY, 100), (FEW, 2), (OTHER, 1))
    assert clients_taken(lines, 6) == [MANY, FEW, OTHER, MANY, FEW, MANY]


def test_client_that_comes_late_waits_for_one_turn_of_each() -> None:
    lines = lines_of((MANY, 100), (OTHER, 100))
    clients_taken(lines, 11)
    lines.join(names(FEW, 1)[0], FEW)
    assert FEW in clients_taken(lines, 3)


def test_client_with_fewest_places_is_next_whoever_was_served_last() -> None:
    lines = lines_of((MANY, 9), (FEW, 9))
    assert clients_taken(lines, 3, places(many=3, few=2)) == [FEW, FEW, FEW]


def test_client_that_has_all_it_may_have_is_passed_over() -> None:
    lines = lines_of((MANY, 9), (None, 9))
    assert clients_taken(lines, 2, places(many=7)) == [None, None]
    assert clients_taken(lines, 2, places(many=7, nobody=7)) == []
    assert clients_taken(lines, 1, places(many=6, nobody=7)) == [MANY]


def test_order_within_a_client_is_that_of_arrival() -> None:
    lines = lines_of((MANY, 3))
    taken = [lines.take(Places(), MOST) for _ in range(4)]
    assert taken == [*((hostname, MANY) for hostname in names(MANY, 3)), None]


def test_hostname_that_comes_back_stands_ahead_of_its_own_client_only() -> None:
    lines = lines_of((FEW, 1), (MANY, 3))
    back = Hostname("back.example.test")
    lines.join(back, MANY, ahead=True)
    assert lines.take(Places(), MOST) == (names(FEW, 1)[0], FEW)
    assert lines.take(Places(), MOST) == (back, MANY)


def test_hostname_waits_once_however_often_it_joins() -> None:
    lines = lines_of((MANY, 2), (MANY, 2))
    lines.join(names(MANY, 2)[1], MANY, ahead=True)
    lines.join(names(MANY, 2)[1], None)
    assert len(lines) == 2
    assert lines.take(Places(), MOST) == (names(MANY, 2)[0], MANY)


def test_hostname_that_has_come_to_another_client_waits_in_its_line() -> None:
    lines = Lines(zone_of)
    hostname = names(FEW, 1)[0]
    lines.join(hostname, None)
    lines.join(hostname, FEW)
    assert lines.take(Places(), MOST) == (hostname, FEW)
    assert lines.take(Places(), MOST) is None


def test_hostnames_without_a_holder_wait_until_nobody_else_does() -> None:
    lines = lines_of((None, 2), (MANY, 3))
    assert clients_taken(lines, 5) == [MANY, MANY, MANY, None, None]


def test_hostnames_without_a_holder_are_not_passed_over_for_ever() -> None:
    lines = lines_of((None, 2), (MANY, 100))
    taken = clients_taken(lines, 2 * (turnstile.PATIENCE + 1))
    assert [each for each in taken if each is None] == [None, None]
    assert taken[turnstile.PATIENCE] is None


def test_full_line_refuses_and_leaves_room_to_others() -> None:
    lines = lines_of((MANY, turnstile.LINE_LIMIT))
    late = Hostname("late.example.test")
    assert not lines.join(late, MANY)
    assert late not in lines
    assert lines.join(late, FEW)
    assert lines.join(Hostname("back.example.test"), MANY, ahead=True)


def test_crowd_lets_every_client_have_one_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turnstile, "CROWD", 10)
    lines = lines_of((MANY, 10))
    first, second = names(FEW, 2)
    assert lines.join(first, FEW)
    assert not lines.join(second, FEW)


CLIENTS = st.sampled_from([MANY, FEW, OTHER, None])


@given(
    joins=st.lists(st.tuples(st.integers(0, 9), CLIENTS, st.booleans()), max_size=40),
    takes=st.integers(0, 50),
)
def test_every_hostname_that_joined_is_taken_once(
    joins: list[tuple[int, Client, bool]], takes: int
) -> None:
    lines = Lines(zone_of)
    joined = set()
    for number, client, ahead in joins:
        hostname = Hostname(f"{number}.example.test")
        if lines.join(hostname, client, ahead=ahead):
            joined.add(hostname)
    taken = [each[0] for _ in range(takes) if (each := lines.take(Places(), MOST)) is not None]
    assert len(taken) == len(set(taken)) == min(takes, len(joined))
    assert len(lines) == len(joined) - len(taken)
    assert set(taken) <= joined


class Work:
    """Work that ends when it is told to."""

    def __init__(self) -> None:
        self.begun: list[Hostname] = []
        self._ends: dict[Hostname, asyncio.Event] = {}

    async def __call__(self, hostname: Hostname) -> None:
        self.begun.append(hostname)
        self._ends[hostname] = asyncio.Event()
        await self._ends[hostname].wait()

    def end(self, hostname: Hostname) -> None:
        self._ends[hostname].set()


async def settled() -> None:
    """Everything that can go on has gone on."""
    for _ in range(5):
        await asyncio.sleep(0)


async def test_no_more_are_worked_on_than_there_are_places() -> None:
    work = Work()
    gate = Turnstile(2, work)
    first, second, third = (names(client, 1)[0] for client in (MANY, FEW, OTHER))
    for hostname, client in ((first, MANY), (second, FEW), (third, OTHER)):
        gate.enter(hostname, client)
    await settled()
    assert work.begun == [first, second]
    work.end(first)
    await settled()
    assert work.begun == [first, second, third]
    assert len(gate.tasks) == 2
    for hostname in (second, third):
        work.end(hostname)
    await asyncio.gather(*gate.tasks)


@pytest.mark.parametrize(("count", "most"), [(1, 1), (2, 1), (4, 3), (32, 28)])
async def test_one_client_leaves_places_to_others(count: int, most: int) -> None:
    work = Work()
    gate = Turnstile(count, work)
    for hostname in names(MANY, 2 * count):
        gate.enter(hostname, MANY)
    await settled()
    assert work.begun == names(MANY, most)
    for hostname in names(FEW, count):
        gate.enter(hostname, FEW)
    await settled()
    assert work.begun[most:] == names(FEW, count - most)
    gate.close()
    for hostname in list(work.begun):
        work.end(hostname)
    await asyncio.gather(*gate.tasks)


async def test_waiting_hostname_costs_no_task() -> None:
    work = Work()
    gate = Turnstile(1, work)
    before = len(asyncio.all_tasks())
    for hostname in names(MANY, 100):
        gate.enter(hostname, MANY)
    await settled()
    assert len(asyncio.all_tasks()) == before + 1
    gate.close()
    work.end(work.begun[0])
    await asyncio.gather(*gate.tasks)


async def test_hostname_entered_while_it_is_worked_on_is_once_more_after_that() -> None:
    work = Work()
    gate = Turnstile(2, work)
    hostname = names(MANY, 1)[0]
    for _ in range(3):
        gate.enter(hostname, MANY)
    await settled()
    assert work.begun == [hostname]
    work.end(hostname)
    await settled()
    assert work.begun == [hostname, hostname]
    work.end(hostname)
    await settled()
    assert hostname not in gate
    assert work.begun == [hostname, hostname]


async def test_closed_turnstile_begins_nothing_more() -> None:
    work = Work()
    gate = Turnstile(1, work)
    first, second, third = names(MANY, 3)
    gate.enter(first, MANY)
    gate.enter(second, MANY)
    await settled()
    gate.enter(first, MANY)
    gate.close()
    gate.enter(third, MANY)
    work.end(first)
    await asyncio.gather(*gate.tasks)
    assert work.begun == [first]


async def test_work_does_not_run_in_the_context_of_who_woke_it() -> None:
    caller: contextvars.ContextVar[str] = contextvars.ContextVar("caller", default="nobody")
    seen: list[str] = []

    async def look(_: Hostname) -> None:
        seen.append(caller.get())
        caller.set("the work before")

    gate = Turnstile(1, look)
    caller.set("a call")
    for hostname in names(MANY, 2):
        gate.enter(hostname, MANY)
    await settled()
    assert seen == ["nobody", "nobody"]


async def test_client_of_a_hostname_is_known_as_long_as_it_is_worked_on() -> None:
    work = Work()
    gate = Turnstile(1, work)
    hostname = names(FEW, 1)[0]
    gate.enter(hostname, FEW)
    await settled()
    assert gate.client_of(hostname) == FEW
    work.end(hostname)
    await settled()
    assert gate.client_of(hostname) is None
