"""More calls at once than there are connections to Redis: they wait for their turn."""

import asyncio
from collections import Counter
from contextlib import AsyncExitStack

import httpx

from tests.faults.faultlab import FaultLab
from tests.integration.service.calling import NO_TLS

CALLS = 300
ROUNDS = 4
CALLS_A_CLIENT = 10  # httpx's pool takes time that grows with the square of its connections
ANSWER_LIMIT_SECONDS = 30.0


def test_no_call_of_a_crowd_is_unavailable(fault_lab: FaultLab) -> None:
    hostname = fault_lab.fresh_hostname()
    with fault_lab.gateway() as gateway:
        fault_lab.certificates([hostname], gateway.url)
        seen = asyncio.run(_ask_at_once(gateway.url, fault_lab.client.asking(hostname)))
    assert seen == {"ready": CALLS * ROUNDS}


async def _ask_at_once(url: str, body: dict[str, object]) -> Counter[str]:
    """Ask over many connections, again and again; how often each answer came."""
    seen: Counter[str] = Counter()

    async def ask(http: httpx.AsyncClient) -> None:
        for _ in range(ROUNDS):
            envelope = (await http.post(url, json=body)).json()
            error = envelope.get("error")
            seen[error["data"]["code"] if error else envelope["response"]["status"]] += 1

    async with AsyncExitStack() as stack:
        clients = [
            await stack.enter_async_context(
                httpx.AsyncClient(trust_env=False, timeout=ANSWER_LIMIT_SECONDS, verify=NO_TLS)
            )
            for _ in range(CALLS // CALLS_A_CLIENT)
        ]
        await asyncio.gather(*(ask(http) for http in clients * CALLS_A_CLIENT))
    return seen
