"""The calls under way to an authority: who waits, for how long, and for what."""

import asyncio

import pytest

from gateway.certificates.authority.calls import Calls
from gateway.certificates.orders import AuthorityFault, FaultKind


class Call:
    """Work that begins, waits to be let go, and answers."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.may_end = asyncio.Event()

    async def __call__(self) -> str:
        self.begun.set()
        await self.may_end.wait()
        return "answer"


async def another() -> str:
    return "another"


@pytest.fixture
def calls() -> Calls:
    """One at a time, for whose end nobody waits for long."""
    return Calls(1, wait_seconds=0.02)


@pytest.fixture
def call() -> Call:
    return Call()


async def test_call_that_found_others_under_way_was_never_begun(calls: Calls, call: Call) -> None:
    first = asyncio.create_task(calls.run(call))
    await call.begun.wait()
    late = Call()
    with pytest.raises(AuthorityFault) as caught:
        await calls.run(late)
    assert caught.value.kind is FaultKind.BUSY
    call.may_end.set()
    assert await first == "answer"
    # The place is free, and what was given up is not made up for.
    assert await calls.run(another) == "another"
    assert not late.begun.is_set()


async def test_call_that_has_begun_is_waited_for_longer_than_a_place_is(
    calls: Calls, call: Call
) -> None:
    running = asyncio.create_task(calls.run(call))
    done, _ = await asyncio.wait({running}, timeout=0.1)
    assert not done
    call.may_end.set()
    assert await running == "answer"


async def test_caller_cancelled_before_its_call_begins_goes_and_the_call_with_it(
    calls: Calls, call: Call
) -> None:
    first = asyncio.create_task(calls.run(call))
    await call.begun.wait()
    late = Call()
    waiting = asyncio.create_task(calls.run(late))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    call.may_end.set()
    assert await first == "answer"
    assert await calls.run(another) == "another"
    assert not late.begun.is_set()


async def test_place_is_free_again_after_a_call_that_failed(calls: Calls) -> None:
    async def fail() -> str:
        raise AuthorityFault(FaultKind.UNREACHABLE, "away")

    for _ in range(2):
        with pytest.raises(AuthorityFault, match="away"):
            await calls.run(fail)
