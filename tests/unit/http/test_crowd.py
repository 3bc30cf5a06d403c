"""Crowds: how many calls may be under way, who has to wait for a turn, and what the others hear."""

import asyncio
from collections.abc import Callable
from contextlib import ExitStack

import pytest

from gateway.contract import Overloaded
from gateway.http import crowd
from gateway.http.crowd import Crowd, CrowdLimits, Place

LIMIT_SECONDS = 30.0


class Clock:
    """Goes on by `step` each time it is read: a loop that comes round quickly, or slowly."""

    def __init__(self, step: float = 0.0) -> None:
        self.now = 1000.0
        self.step = step

    def __call__(self) -> float:
        self.now += self.step
        return self.now


class Callers:
    """Calls that stay under way until they are let go."""

    def __init__(self, of_crowd: Crowd) -> None:
        self._crowd = of_crowd
        self._let_go = asyncio.Event()
        self.begun: list[str] = []
        self.refused: list[Overloaded] = []

    async def call(self, name: str, *, is_known: bool = True) -> None:
        try:
            with Place(self._crowd, name, is_known=is_known) as place:
                if place.waits:
                    await place.turn()
                self.begun.append(name)
                await self._let_go.wait()
        except Overloaded as refusal:
            self.refused.append(refusal)

    def let_go(self) -> None:
        self._let_go.set()


def begin(callers: Callers, names: list[str], *, is_known: bool = True) -> list[asyncio.Task[None]]:
    return [asyncio.create_task(callers.call(name, is_known=is_known)) for name in names]


async def come_to(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(LIMIT_SECONDS):
        while True:
            if holds():
                return
            await asyncio.sleep(0)


async def end(callers: Callers, tasks: list[asyncio.Task[None]]) -> None:
    callers.let_go()
    async with asyncio.timeout(LIMIT_SECONDS):
        await asyncio.gather(*tasks)


async def test_calls_past_the_bound_are_refused_at_once_and_places_come_back() -> None:
    callers = Callers(of_crowd := Crowd(CrowdLimits(4, 0), Clock()))
    tasks = begin(callers, [f"c{number}" for number in range(6)])
    await come_to(lambda: len(callers.begun) == 4)
    assert len(callers.refused) == 2
    await end(callers, tasks)
    with Place(of_crowd, "c9", is_known=True) as place:
        assert not place.waits


async def test_one_caller_cannot_have_all_places() -> None:
    callers = Callers(Crowd(CrowdLimits(10, 2), Clock()))
    tasks = begin(callers, ["greedy"] * 5 + ["other"])
    await come_to(lambda: len(callers.begun) == 3)
    assert callers.begun == ["greedy", "greedy", "other"]
    assert len(callers.refused) == 3
    await end(callers, tasks)


async def test_strangers_cannot_have_more_than_half_of_the_places() -> None:
    callers = Callers(Crowd(CrowdLimits(6, 0), Clock()))
    tasks = begin(callers, ["stranger"] * 5, is_known=False) + begin(callers, ["known"] * 4)
    await come_to(lambda: len(callers.begun) == 6)
    assert callers.begun == ["stranger"] * 3 + ["known"] * 3
    assert len(callers.refused) == 3
    await end(callers, tasks)


async def test_without_bounds_nobody_is_refused() -> None:
    callers = Callers(Crowd(CrowdLimits(0, 0), Clock()))
    tasks = begin(callers, ["one"] * 600)
    await come_to(lambda: len(callers.begun) == 600)
    await end(callers, tasks)
    assert callers.refused == []


async def test_while_the_loop_is_slow_only_the_first_begin_and_the_rest_as_these_end() -> None:
    callers = Callers(Crowd(CrowdLimits(0, 0), Clock(step=1.0)))
    tasks = begin(callers, [str(number) for number in range(50)])
    for _ in range(200):
        await asyncio.sleep(0)
    assert callers.begun == [str(number) for number in range(32)]
    await end(callers, tasks)
    assert sorted(callers.begun, key=int) == [str(number) for number in range(50)]


async def test_whose_turn_does_not_come_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crowd, "PATIENCE_SECONDS", 0.01)
    callers = Callers(Crowd(CrowdLimits(0, 0), Clock(step=1.0)))
    tasks = begin(callers, ["one"] * 40)
    await come_to(lambda: len(callers.refused) == 8)
    assert len(callers.begun) == 32
    await end(callers, tasks)


async def test_known_callers_do_not_wait_behind_strangers() -> None:
    callers = Callers(Crowd(CrowdLimits(0, 0), Clock(step=1.0)))
    tasks = begin(callers, ["stranger"] * 60, is_known=False)
    await come_to(lambda: len(callers.begun) == 16)
    tasks += begin(callers, ["known"] * 10)
    await come_to(lambda: len(callers.begun) == 26)
    assert callers.begun.count("known") == 10
    await end(callers, tasks)


async def test_call_that_is_given_up_while_it_waits_leaves_its_place() -> None:
    callers = Callers(of_crowd := Crowd(CrowdLimits(33, 0), Clock(step=1.0)))
    tasks = begin(callers, [str(number) for number in range(33)])
    await come_to(lambda: len(callers.begun) == 32)
    tasks[-1].cancel()
    await asyncio.wait({tasks.pop()})
    await end(callers, tasks)
    with Place(of_crowd, "next", is_known=True):
        assert callers.refused == []


async def test_who_had_to_wait_counts_once_let_in_and_nobody_goes_before_who_waits() -> None:
    callers = Callers(of_crowd := Crowd(CrowdLimits(0, 0), Clock(step=1.0)))

    def another() -> Place:
        return Place(of_crowd, "quick", is_known=True)

    with ExitStack() as inside:
        for _ in range(31):
            assert not inside.enter_context(another()).waits
        with another() as last:
            assert not last.waits
            tasks = begin(callers, ["patient"])
            await asyncio.sleep(0)
        with another() as newcomer:
            assert newcomer.waits  # there is room, and somebody who waits for it
        await come_to(lambda: callers.begun == ["patient"])
        with another() as newcomer:
            assert newcomer.waits
        await end(callers, tasks)
        with another() as newcomer:
            assert not newcomer.waits


async def test_wait_goes_by_how_far_apart_calls_have_ended() -> None:
    clock = Clock()
    of_crowd = Crowd(CrowdLimits(20, 0), clock)
    told = []
    for seconds_apart in (0.05, 0.2):
        for _ in range(20):
            callers = Callers(of_crowd)
            tasks = begin(callers, ["one"] * 20)
            await come_to(lambda callers=callers: len(callers.begun) == 20)  # type: ignore[misc]
            clock.step = seconds_apart
            await end(callers, tasks)
            clock.step = 0.0
        callers = Callers(of_crowd)
        tasks = begin(callers, ["one"] * 21)
        await come_to(lambda callers=callers: len(callers.refused) == 1)  # type: ignore[misc]
        told.append(callers.refused[0].retry_after_ms)
        await end(callers, tasks)
    assert 500 < told[0] < 2_000 < told[1] < 6_000
