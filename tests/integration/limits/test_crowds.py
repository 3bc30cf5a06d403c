"""Calls at once: what comes past the bounds is told so at once, and nothing else happens to it."""

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.integration.service.calling import CONTEXT, Caller, World
from tests.lab.gateway import GatewayConfig, GatewayProcess
from tests.lab.process import wait_until
from tests.lab.redis import RedisProcess

ROUNDS = 10
ARRIVAL_SECONDS = 1.5
"""Less than what a call waits for a Redis that does not answer."""


@pytest.fixture
def narrow_world(config: GatewayConfig, narrow: GatewayProcess) -> World:
    return World(narrow.url, config.admin_token)


def waits_of_the_refused(
    callers: Sequence[Caller], server: RedisProcess, expected: int
) -> list[int]:
    """Call at once while Redis answers nobody, so that no call gets on before all have come.

    Where this machine is so slow that they did not all come in time, once more.
    """
    for caller in callers:
        assert caller.call(CONTEXT)  # strangers have half of the places
    for _ in range(ROUNDS):
        with ThreadPoolExecutor(len(callers)) as threads:
            server.process.pause()
            try:
                calls = [threads.submit(caller.answer, CONTEXT) for caller in callers]
                end = time.monotonic() + ARRIVAL_SECONDS
                wait_until(
                    lambda calls=calls, end=end: (  # type: ignore[misc]
                        sum(call.done() for call in calls) >= expected or time.monotonic() > end
                    ),
                    "the refused are told",
                )
            finally:
                server.process.resume()
            errors = [call.result().get("error") for call in calls]
        refused = [each["data"] for each in errors if each and each["data"]["code"] == "overloaded"]
        assert len(refused) <= expected
        if len(refused) == expected:
            return [each["retryAfterMs"] for each in refused]
    raise AssertionError("the calls never came at once")


def test_caller_with_too_many_calls_under_way_is_overloaded(
    narrow_world: World, limits_redis: RedisProcess
) -> None:
    greedy = narrow_world.client()
    waits = waits_of_the_refused([greedy] * 10, limits_redis, expected=6)
    assert all(100 <= wait <= 10_000 for wait in waits)
    assert greedy.call(CONTEXT)


def test_all_callers_together_have_no_more_than_the_process_takes(
    narrow_world: World, limits_redis: RedisProcess
) -> None:
    callers = [narrow_world.client() for _ in range(5)]
    waits_of_the_refused(callers * 2, limits_redis, expected=4)
    assert all(caller.call(CONTEXT) for caller in callers)
