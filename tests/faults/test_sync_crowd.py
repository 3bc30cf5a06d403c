"""Hundreds of records published at once by one process: late, or `overloaded`, and nothing else.

Each is some messages to a DNS server and to Redis, with time limits that run out where the process
itself is too slow to read their answers.
"""

import asyncio
from collections import Counter
from contextlib import AsyncExitStack

import httpx

from tests.faults.faultlab import FaultLab
from tests.integration.service.calling import NO_TLS, SYNC, World, envelope

CALLS = 200
CALLS_A_CLIENT = 10  # httpx's pool takes time that grows with the square of its connections
ANSWER_LIMIT_SECONDS = 30.0


def test_crowd_of_syncs_is_told_the_truth(fault_lab: FaultLab) -> None:
    with fault_lab.gateway() as gateway:
        world = World(gateway.url, fault_lab.lab.config.admin_token)
        token = world.client("*.example.test").token
        bodies = [
            envelope(
                SYNC,
                {
                    "apiToken": token,
                    "ownership": {"appId": "relay", "hostname": fault_lab.fresh_hostname()},
                    "record": {"type": "A", "value": "198.51.100.30"},
                },
            )
            for _ in range(CALLS)
        ]
        seen = asyncio.run(_sent_at_once(gateway.url, bodies))
    assert set(seen) <= {"managed-created", "overloaded"}
    assert seen["managed-created"] > 0


async def _sent_at_once(url: str, bodies: list[dict[str, object]]) -> Counter[str]:
    """How often each status or code came back."""
    seen: Counter[str] = Counter()

    async def send(http: httpx.AsyncClient, body: dict[str, object]) -> None:
        answer = (await http.post(url, json=body)).json()
        error = answer.get("error")
        seen[error["data"]["code"] if error else answer["response"]["status"]] += 1

    async with AsyncExitStack() as stack:
        clients = [
            await stack.enter_async_context(
                httpx.AsyncClient(trust_env=False, timeout=ANSWER_LIMIT_SECONDS, verify=NO_TLS)
            )
            for _ in range(CALLS // CALLS_A_CLIENT)
        ]
        pairs = zip(clients * CALLS_A_CLIENT, bodies, strict=True)
        await asyncio.gather(*(send(http, body) for http, body in pairs))
    return seen
