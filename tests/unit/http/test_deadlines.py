"""Many time limits on one timer: each ends as `asyncio.timeout` would, and none another's."""

import asyncio

import pytest

from gateway.http.deadlines import Deadlines

LIMIT_SECONDS = 30.0


async def forever(deadlines: Deadlines) -> None:
    with deadlines.within():
        await asyncio.Event().wait()


async def test_what_takes_too_long_ends_with_a_timeout() -> None:
    deadlines = Deadlines(0.01)
    async with asyncio.timeout(LIMIT_SECONDS):
        ended = await asyncio.gather(
            *(forever(deadlines) for _ in range(3)), return_exceptions=True
        )
    assert [type(each) for each in ended] == [TimeoutError] * 3
    task = asyncio.current_task()
    assert task is not None
    assert not task.cancelling()


async def test_what_ends_in_time_is_left_alone_and_so_is_what_follows() -> None:
    deadlines = Deadlines(0.5)
    with deadlines.within():
        await asyncio.sleep(0)
    with pytest.raises(TimeoutError):
        await forever(deadlines)


async def test_one_begins_while_another_is_under_way_and_has_its_own_time() -> None:
    deadlines = Deadlines(0.05)
    ended: list[tuple[int, float]] = []

    async def one(number: int) -> None:
        try:
            await forever(deadlines)
        finally:
            ended.append((number, loop.time()))

    loop = asyncio.get_running_loop()
    first = asyncio.create_task(one(1))
    await asyncio.sleep(0.02)
    began = loop.time()
    second = asyncio.create_task(one(2))
    async with asyncio.timeout(LIMIT_SECONDS):
        await asyncio.wait({first, second})
    assert [number for number, _ in ended] == [1, 2]
    assert ended[1][1] - began >= 0.05
    assert isinstance(first.exception(), TimeoutError)
    assert isinstance(second.exception(), TimeoutError)


async def test_cancellation_from_outside_stays_one() -> None:
    task = asyncio.create_task(forever(Deadlines(LIMIT_SECONDS)))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait({task})
    assert task.cancelled()


async def test_cancellation_from_outside_at_the_same_time_stays_one() -> None:
    deadlines = Deadlines(None)
    task = asyncio.create_task(forever(deadlines))
    await asyncio.sleep(0)
    deadlines.by(0.0)
    asyncio.get_running_loop().call_soon(task.cancel)
    task.cancel()
    await asyncio.wait({task})
    assert task.cancelled()


async def test_cancellation_from_outside_just_after_its_end_stays_one_too() -> None:
    deadline = Deadlines(LIMIT_SECONDS).within()

    async def bounded() -> None:
        with deadline:
            await asyncio.Event().wait()

    task = asyncio.create_task(bounded())
    await asyncio.sleep(0)
    deadline.strike()
    task.cancel()
    await asyncio.wait({task})
    assert task.cancelled()


async def test_task_whose_time_was_over_goes_on_as_if_it_had_never_been_cancelled() -> None:
    task = asyncio.current_task()
    assert task is not None
    with pytest.raises(TimeoutError):
        await forever(Deadlines(0.01))
    assert not task.cancelling()


async def test_error_of_the_block_stays_what_it_is() -> None:
    with pytest.raises(KeyError), Deadlines(LIMIT_SECONDS).within():
        raise KeyError


async def test_without_a_time_it_goes_on_until_one_is_set_for_all() -> None:
    deadlines = Deadlines(None)
    before = asyncio.create_task(forever(deadlines))
    await asyncio.sleep(0)
    deadlines.by(asyncio.get_running_loop().time() + 0.01)
    after = asyncio.create_task(forever(deadlines))
    async with asyncio.timeout(LIMIT_SECONDS):
        await asyncio.wait({before, after})
    assert isinstance(before.exception(), TimeoutError)
    assert isinstance(after.exception(), TimeoutError)
