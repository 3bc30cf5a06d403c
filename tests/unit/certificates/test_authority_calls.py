"""The threads of an authority: who waits, for how long, and for what."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextvars import ContextVar

import pytest

from gateway.certificates.authority.threads import Threads
from gateway.certificates.orders import AuthorityFault, FaultKind

LIMIT_SECONDS = 10.0


class Call:
    """Work that begins, waits to be let go, and answers."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.may_end = threading.Event()

    def __call__(self) -> str:
        self.begun.set()
        assert self.may_end.wait(LIMIT_SECONDS)
        return "answer"

    async def wait_until_begun(self) -> None:
        assert await asyncio.to_thread(self.begun.wait, LIMIT_SECONDS)


@pytest.fixture
async def call() -> AsyncIterator[Call]:
    call = Call()
    yield call
    call.may_end.set()


@pytest.fixture
async def threads() -> AsyncIterator[Threads]:
    """One thread, for which nobody waits for long."""
    threads = Threads(1, wait_seconds=0.02)
    yield threads
    threads.close()


async def cancelled(task: asyncio.Task[str], times: int = 1) -> None:
    """Cancel a task, and give it every opportunity to end."""
    for _ in range(times):
        task.cancel()
        for _ in range(5):
            await asyncio.sleep(0)


async def test_call_that_found_no_thread_in_time_was_never_begun(
    threads: Threads, call: Call
) -> None:
    first = asyncio.create_task(threads.run(call))
    await call.wait_until_begun()
    late = Call()
    with pytest.raises(AuthorityFault) as caught:
        await threads.run(late)
    assert caught.value.kind is FaultKind.BUSY
    call.may_end.set()
    assert await first == "answer"
    # The thread is free, and what was given up is not made up for.
    assert await threads.run(lambda: "another") == "another"
    assert not late.begun.is_set()


async def test_call_that_has_begun_is_waited_for_longer_than_a_thread_is(
    threads: Threads, call: Call
) -> None:
    running = asyncio.create_task(threads.run(call))
    done, _ = await asyncio.wait({running}, timeout=0.1)
    assert not done
    call.may_end.set()
    assert await running == "answer"


async def test_cancelled_caller_gets_the_answer_of_a_call_that_has_begun(
    threads: Threads, call: Call
) -> None:
    running = asyncio.create_task(threads.run(call))
    await call.wait_until_begun()
    await cancelled(running, times=3)
    assert not running.done()
    call.may_end.set()
    assert await running == "answer"


async def test_time_limit_of_a_caller_does_not_throw_an_answer_away(
    threads: Threads, call: Call
) -> None:
    async def bounded() -> str:
        async with asyncio.timeout(0.01):
            return await threads.run(call)

    running = asyncio.create_task(bounded())
    done, _ = await asyncio.wait({running}, timeout=0.1)
    assert not done
    call.may_end.set()
    assert await running == "answer"


async def test_cancelled_caller_gets_what_the_call_raises(threads: Threads, call: Call) -> None:
    def fail() -> str:
        call()
        raise AuthorityFault(FaultKind.UNREACHABLE, "away")

    running = asyncio.create_task(threads.run(fail))
    await call.wait_until_begun()
    await cancelled(running)
    call.may_end.set()
    with pytest.raises(AuthorityFault, match="away"):
        await running


async def test_caller_cancelled_before_its_call_begins_goes_and_the_call_with_it(
    threads: Threads, call: Call
) -> None:
    first = asyncio.create_task(threads.run(call))
    await call.wait_until_begun()
    late = Call()
    waiting = asyncio.create_task(threads.run(late))
    await cancelled(waiting)
    assert waiting.cancelled()
    call.may_end.set()
    assert await first == "answer"
    assert await threads.run(lambda: "another") == "another"
    assert not late.begun.is_set()


async def test_call_that_may_be_left_is_left_at_once(threads: Threads, call: Call) -> None:
    running = asyncio.create_task(threads.run(call, may_be_left=True))
    await call.wait_until_begun()
    await cancelled(running)
    assert running.cancelled()


async def test_nobody_who_was_cancelled_waits_any_longer_once_all_is_closed(
    threads: Threads, call: Call
) -> None:
    running = asyncio.create_task(threads.run(call))
    await call.wait_until_begun()
    await cancelled(running)
    assert not running.done()
    threads.close()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_caller_that_was_not_cancelled_gets_its_answer_though_all_is_closed(
    threads: Threads, call: Call
) -> None:
    running = asyncio.create_task(threads.run(call))
    await call.wait_until_begun()
    threads.close()
    call.may_end.set()
    assert await running == "answer"


async def test_context_of_the_caller_goes_along(threads: Threads) -> None:
    name: ContextVar[str] = ContextVar("name")
    name.set("mine")
    assert await threads.run(name.get) == "mine"
