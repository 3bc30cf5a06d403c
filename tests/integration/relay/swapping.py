"""One run of certificate swaps under load: a relay, its clients, and the agent's own parts.

Responsible for: swap after swap (install, deploy hook, wait until clients were shown the new one)
while TLS clients connect without pause, and the figures of it. Overlapping swaps wait for nothing
but the hook, and each hostname goes on by itself, so that nginx may read files as they are swapped.
Must not: judge; `test_swaps` does, and `main` for the script by the exit status.
Called by: `test_swaps`; `scripts/relay-swap`, as `python -m tests.integration.relay.swapping`.
"""

import asyncio
import sys
import tempfile
import time
from argparse import ArgumentParser
from dataclasses import dataclass
from pathlib import Path

from tests.integration.relay.relays import Relay, reload_hook
from tests.lab.ending import AskedToEnd, end_on_signals
from tests.lab.process import LabFault, read_until, wait_until
from tests.lab.tls_load import Bounds, Findings, TlsLoad

HOSTNAMES = tuple(f"relay{number}.example.test" for number in range(3))
_SHOWN_LIMIT_SECONDS = 20.0
_HOOK_TRIES = 10
_SLACK_SECONDS = 60.0
"""For a machine that is busy with other things: the clients stop this long after the last swap."""


@dataclass(frozen=True)
class Options:
    """How many swaps, spread over how many seconds: 0 is one after the other, without a pause."""

    swaps: int = 12
    seconds: float = 0.0
    clients: int = 1
    overlap: bool = False


@dataclass(frozen=True)
class Run:
    """What came of it.

    `installed` holds each hostname's serial numbers, in order; `served` the one that a client was
    shown when all was over.
    """

    options: Options
    load: Findings
    installed: dict[str, list[int]]
    served: dict[str, int]
    failed_hooks: tuple[str, ...]
    complaints: tuple[str, ...]

    @property
    def never_served(self) -> list[int]:
        """Serial numbers that were installed but shown to no client."""
        return [
            serial
            for hostname, serials in self.installed.items()
            for serial in set(serials).difference(self.load.serials(hostname))
        ]

    @property
    def is_lossless(self) -> bool:
        """Whether no client noticed anything, and every certificate was served."""
        load = self.load
        faults = (load.failed_handshakes, load.failed_requests, self.failed_hooks, self.complaints)
        return not any(faults) and not self.never_served

    def figures(self) -> str:
        """The table."""
        load = self.load
        handshakes = len(load.handshakes)
        kinds = ", ".join(f"{kind} {count}" for kind, count in sorted(load.kinds().items()))
        kept = f"{load.kept_requests}, {load.closed_under_request} asked again on a new connection"
        rows = (
            ("swaps", f"{self.options.swaps}, of {len(self.installed)} hostnames"),
            ("handshakes", f"{handshakes}, {handshakes / load.seconds:.0f} a second"),
            ("  kinds", kinds),
            ("  failed", f"{len(load.failed_handshakes)}"),
            ("  longest", f"{load.longest_handshake_seconds * 1000:.0f} ms"),
            ("requests that failed", f"{len(load.failed_requests)}"),
            ("requests on kept connections", kept),
            ("certificates never served", f"{len(self.never_served)}"),
            ("deploy hooks that failed", f"{len(self.failed_hooks)}"),
            ("complaints of nginx", f"{len(self.complaints)}"),
        )
        told = (*load.failed_handshakes, *load.failed_requests, *self.failed_hooks)
        lines = [f"certificate swaps under load, {load.seconds:.0f} s"]
        lines += [f"  {name:<32}{value}" for name, value in rows]
        return "\n".join([*lines, *(told + self.complaints)[:20]])


async def run(folder: Path, options: Options) -> Run:
    """Run in the new `folder`. Raises: LabFault; TimeoutError when a certificate is not served."""
    relay = Relay(folder, HOSTNAMES)
    for hostname in HOSTNAMES:
        relay.install(hostname)
    relay.nginx.start()
    bounds = Bounds(seconds=options.seconds + _SLACK_SECONDS)
    try:
        with TlsLoad(
            relay.nginx.address, HOSTNAMES, relay.root_file, fresh=options.clients, bounds=bounds
        ) as load:
            swaps = _Swaps(relay, load)
            await swaps.until_shown(*HOSTNAMES)
            await (swaps.overlapping(options) if options.overlap else swaps.in_turn(options))
        wait_until(relay.nginx.is_settled, "the workers of earlier certificates end")
        served = {hostname: relay.served(hostname) for hostname in HOSTNAMES}
    finally:
        relay.nginx.stop()
    return Run(
        options,
        load.findings(),
        relay.installed,
        served,
        tuple(swaps.failed_hooks),
        tuple(relay.nginx.faults()),
    )


class _Swaps:
    """What the agent does with new certificates, as often as a run wants it."""

    def __init__(self, relay: Relay, load: TlsLoad) -> None:
        self.failed_hooks: list[str] = []
        self._relay = relay
        self._load = load
        self._hook = reload_hook(relay.nginx)
        self._turn = asyncio.Lock()

    async def in_turn(self, options: Options) -> None:
        began = time.monotonic()
        for number in range(options.swaps):
            due = began + options.seconds * number / options.swaps
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            hostname = HOSTNAMES[number % len(HOSTNAMES)]
            await self._swap(hostname)
            await self.until_shown(hostname)

    async def overlapping(self, options: Options) -> None:
        async with asyncio.TaskGroup() as group:
            for hostname in HOSTNAMES:
                group.create_task(self._swap_often(hostname, options.swaps // len(HOSTNAMES)))
        await self.until_shown(*HOSTNAMES)

    async def until_shown(self, *hostnames: str) -> None:
        """Wait until clients were shown what was installed last."""

        async def have_shown() -> bool:
            installed = self._relay.installed
            return all(self._load.has_shown(name, installed[name][-1]) for name in hostnames)

        await read_until(have_shown, bool, _SHOWN_LIMIT_SECONDS)

    async def _swap_often(self, hostname: str, times: int) -> None:
        for _ in range(times):
            await self._swap(hostname)

    async def _swap(self, hostname: str) -> None:
        """Install and run the hook, in its turn, until it succeeds, as the agent does."""
        self._relay.install(hostname)
        for _ in range(_HOOK_TRIES):
            async with self._turn:
                result = await self._hook.run(self._relay.hook_environment(hostname))
            if result.succeeded:
                return
            self.failed_hooks.append(f"{result.sentence}: {result.output}")


def main() -> int:
    """Run once and print the figures; 0 when nothing was lost."""
    parser = ArgumentParser(
        prog="scripts/relay-swap",
        description="Swap the certificates of a real nginx, by the agent's own parts, while TLS "
        "clients connect without pause; print what they noticed. Fails when it is anything.",
    )
    parser.add_argument("--swaps", type=int, default=100, metavar="N", help="default 100")
    parser.add_argument(
        "--seconds", type=float, default=60.0, metavar="S", help="to spread them over, default 60"
    )
    parser.add_argument(
        "--clients", type=int, default=2, metavar="N", help="of each kind, default 2"
    )
    told = parser.parse_args()
    end_on_signals()
    try:
        with tempfile.TemporaryDirectory(prefix="gateway-relay-") as folder:
            done = asyncio.run(run(Path(folder), Options(told.swaps, told.seconds, told.clients)))
    except (AskedToEnd, LabFault, TimeoutError) as fault:
        sys.stderr.write(f"relay-swap: ended early, {fault!r}\n")
        return 1
    sys.stdout.write(f"{done.figures()}\n")
    return 0 if done.is_lossless else 1


if __name__ == "__main__":
    sys.exit(main())
