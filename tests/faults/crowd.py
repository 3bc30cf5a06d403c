"""A crowd of calls at one gateway, all at once.

Responsible for: sending them, and counting what came back.
Must not: judge; the tests do.
Called by: `test_redis_crowd`, `test_sync_crowd`.
"""

import asyncio
from collections import Counter
from collections.abc import Sequence
from contextlib import AsyncExitStack

import httpx

from tests.faults.client import outcome_of
from tests.integration.service.calling import NO_TLS

_CALLS_A_CLIENT = 10  # httpx's pool takes time that grows with the square of its connections
_ANSWER_LIMIT_SECONDS = 30.0


async def sent_at_once(
    url: str, bodies: Sequence[dict[str, object]], rounds: int = 1
) -> Counter[str]:
    """Send each over a connection of its own, `rounds` times; how often each outcome came back.

    Their number is a multiple of ten.
    """
    seen: Counter[str] = Counter()

    async def send(http: httpx.AsyncClient, body: dict[str, object]) -> None:
        for _ in range(rounds):
            seen[outcome_of((await http.post(url, json=body)).json())] += 1

    async with AsyncExitStack() as stack:
        clients = [
            await stack.enter_async_context(
                httpx.AsyncClient(trust_env=False, timeout=_ANSWER_LIMIT_SECONDS, verify=NO_TLS)
            )
            for _ in range(len(bodies) // _CALLS_A_CLIENT)
        ]
        pairs = zip(clients * _CALLS_A_CLIENT, bodies, strict=True)
        await asyncio.gather(*(send(http, body) for http, body in pairs))
    return seen
