"""A flood of calls that nobody vouches for, and what a good client notices of it.

Responsible for: one gateway with its own limits, a good client that publishes and asks again and
again over one connection, first alone and then beside the flood, which runs in a process of its
own and comes from many loopback addresses; and for the figures. On loopback, for some seconds.
Must not: judge; `main` only fails when one of the good client's calls did.
Called by: `scripts/flood`, tests.
"""

import argparse
import asyncio
import json
import multiprocessing
import secrets
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import httpx

from tests.bench.wire import read_answer, request_bytes
from tests.faults.client import outcome_of
from tests.integration.service.calling import GET, NO_TLS, SYNC, World, envelope
from tests.lab.gateway import GatewayProcess, running_gateway
from tests.lab.lab import LabOptions, running_lab
from tests.lab.ports import free_port

LIMITS = {
    "GATEWAY_LIMITS__CALLS_PER_MINUTE": "0",  # the good client calls without pause
    "GATEWAY_LIMITS__UNAUTHENTICATED_PER_MINUTE": "60",
    "GATEWAY_LIMITS__UNAUTHENTICATED_PER_SECOND": "200",
    "GATEWAY_LIMITS__CONCURRENT_CALLS_PER_CREDENTIAL": "64",
}
_ANSWER_LIMIT_SECONDS = 30.0


@dataclass
class Seen:
    """What came back: answers by status or code, and how long each took."""

    outcomes: Counter[str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)

    def line(self, what: str) -> str:
        milliseconds = [each * 1000 for each in self.seconds]
        cuts = statistics.quantiles(milliseconds, n=100)
        outcomes = ", ".join(f"{count} {name}" for name, count in sorted(self.outcomes.items()))
        return f"{what}: p50 {cuts[49]:.1f} ms, p99 {cuts[98]:.1f} ms; {outcomes}"


class GoodClient:
    """A client with one record, which goes on as long as it is told to."""

    def __init__(self, world: World) -> None:
        self._mine = world.ownership()
        self._http = httpx.Client(trust_env=False, timeout=_ANSWER_LIMIT_SECONDS, verify=NO_TLS)

    def call_for(self, seconds: float) -> Seen:
        """Publish the same record again and again, and ask for nothing that is not there."""
        seen = Seen()
        request = {
            "apiToken": self._mine.caller.token,
            "ownership": self._mine.wire,
            "record": {"type": "A", "value": "198.51.100.9"},
        }
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            began = time.monotonic()
            answer = self._http.post(self._mine.caller.url, json=envelope(SYNC, request)).json()
            seen.seconds.append(time.monotonic() - began)
            seen.outcomes[outcome_of(answer)] += 1
        return seen

    def close(self) -> None:
        self._http.close()


def bodies() -> list[bytes]:
    """What the flood sends: tokens that are wrong in their own ways, and what is no call."""
    secret = secrets.token_urlsafe(32)
    tokens = [None, f"gwc_{'0' * 36}_{secret}", f"gwa_{secret}", "x" * 200]
    calls = [json.dumps(envelope(GET, {"apiToken": token})).encode() for token in tokens]
    return [*calls, b"{", b'{"method": 7}', b"[" * 500]


def flood(
    port: int, seconds: float, addresses: int, connections: int, fresh: bool
) -> dict[str, int]:
    """Call without pause from many addresses; how often each code came back.

    `fresh`: each call on a connection of its own, whose answer is not waited for.
    """
    return asyncio.run(_flood(port, seconds, addresses, connections, fresh))


async def _flood(
    port: int, seconds: float, addresses: int, connections: int, fresh: bool
) -> dict[str, int]:
    seen: Counter[str] = Counter()
    end = time.monotonic() + seconds
    wires = [request_bytes(body) for body in bodies()]

    def source_of(number: int) -> tuple[str, int]:
        within = number % addresses
        return f"127.0.{1 + within // 250}.{2 + within % 250}", 0

    async def hit_and_run(number: int) -> None:
        turn = number
        while time.monotonic() < end:
            _, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=source_of(turn))
            writer.write(wires[turn % len(wires)])
            turn += connections
            writer.close()
            seen["not waited for"] += 1

    async def call_from(number: int) -> None:
        source = source_of(number)
        reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=source)
        turn = number
        while time.monotonic() < end:
            writer.write(wires[turn % len(wires)])
            turn += 1
            _, body = await read_answer(reader)
            seen[json.loads(body)["error"]["data"]["code"]] += 1
        writer.close()

    await asyncio.gather(*map(hit_and_run if fresh else call_from, range(connections)))
    return dict(seen)


@contextmanager
def flooding(
    gateway: GatewayProcess,
    seconds: float,
    addresses: int,
    connections: int,
    *,
    fresh: bool = False,
) -> Iterator[Callable[[], dict[str, int]]]:
    """A flood beside the block, in a process of its own; call what it yields for its codes."""
    spawning = multiprocessing.get_context("spawn")
    with spawning.Pool(1) as pool:
        result = pool.apply_async(flood, (gateway.port, seconds, addresses, connections, fresh))
        yield lambda: result.get(seconds + _ANSWER_LIMIT_SECONDS)


def main() -> None:
    """Run it once and print what the good client noticed."""
    parser = argparse.ArgumentParser(prog="scripts/flood", description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=10.0, help="of each of the two parts")
    parser.add_argument("--addresses", type=int, default=200)
    parser.add_argument("--connections", type=int, default=200)
    parser.add_argument("--fresh", action="store_true", help="a new connection for each call")
    options = parser.parse_args()
    with (
        running_lab(LabOptions(gateways=0)) as lab,
        running_gateway(lab.config, port=free_port(), environ=LIMITS) as gateway,
    ):
        good = GoodClient(World(gateway.url, lab.config.admin_token))
        try:
            alone = good.call_for(options.seconds)
            with flooding(
                gateway,
                options.seconds,
                options.addresses,
                options.connections,
                fresh=options.fresh,
            ) as of_flood:
                beside = good.call_for(options.seconds)
                codes = of_flood()
        finally:
            good.close()
    rate = sum(codes.values()) / options.seconds
    shown = ", ".join(f"{count} {code}" for code, count in sorted(codes.items()))
    failed = sum(
        count
        for seen in (alone, beside)
        for outcome, count in seen.outcomes.items()
        if not outcome.startswith("managed-")
    )
    for line in (
        alone.line("alone"),
        beside.line("beside the flood"),
        f"the flood: {rate:.0f} calls a second; {shown}",
        f"the good client's calls that failed: {failed}",
    ):
        print(line)  # noqa: T201 (a command)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
