"""A rolling restart of several gateways behind nginx, while clients call without pause.

Responsible for: the gateways on one Redis with nginx in front, one restart after the other, and the
figures of it. Must not: judge; the test does, and `main` for the script by the exit status.
Called by: `test_rolling_restart`; `scripts/rolling-restart`, as
`python -m tests.integration.rolling.restarting`.
"""

import sys
import tempfile
import time
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.integration.rolling.callers import Callers
from tests.integration.service.calling import World
from tests.lab.bind import start_bind_pair
from tests.lab.dns_server import DnsServer
from tests.lab.ending import AskedToEnd, end_on_signals
from tests.lab.gateway import GatewayProcess, start_gateway, write_gateway_config
from tests.lab.nginx_gateways import NginxBeforeGateways
from tests.lab.npm_client import NpmClient
from tests.lab.pebble import AcmeServer, start_pebble
from tests.lab.ports import free_port
from tests.lab.process import LabFault
from tests.lab.redis import start_redis

GATEWAYS = 3
NPM_CLIENTS = 2
PYTHON_CLIENTS = 4
CALLS_BETWEEN = 30

# As the docs have it for a proxy on the same machine; the load of one client is beyond a client's.
_ENVIRON = {
    "GATEWAY_HTTP__TRUSTED_PROXIES": '["127.0.0.1"]',
    "GATEWAY_LIMITS__CALLS_PER_MINUTE": "0",
}


@dataclass
class Figures:
    """What came of it. Of each stop: how long it took in seconds, and the exit code."""

    made: int = 0
    failed: list[str] = field(default_factory=list)
    stop_seconds: list[float] = field(default_factory=list)
    exit_codes: list[int | None] = field(default_factory=list)
    by_client: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Fleet:
    """Gateways on one Redis, and nginx in front of them."""

    gateways: tuple[GatewayProcess, ...]
    nginx: NginxBeforeGateways
    world: World
    folder: Path


@contextmanager
def running_fleet(folder: Path, bind: DnsServer, pebble: AcmeServer) -> Iterator[Fleet]:
    """Start all of it on a Redis of its own in `folder`.

    Raises: LabFault.
    """
    with ExitStack() as stack:
        (folder / "redis").mkdir()
        redis = start_redis(folder / "redis")
        stack.callback(redis.stop)
        config = write_gateway_config(folder / "gateway", bind, redis.url, pebble)
        ports = [config.port, *(free_port() for _ in range(GATEWAYS - 1))]
        gateways = []
        for number, port in enumerate(ports, start=1):
            gateway = start_gateway(config, f"gateway-{number}", port=port, environ=_ENVIRON)
            stack.callback(gateway.stop)
            gateways.append(gateway)
        nginx = NginxBeforeGateways(folder / "nginx", ports)
        nginx.start()
        stack.callback(nginx.stop)
        yield Fleet(tuple(gateways), nginx, World(nginx.url, config.admin_token), folder)


def restart_one_after_the_other(
    fleet: Fleet, rounds: int = 1, calls_between: int = CALLS_BETWEEN
) -> Figures:
    """Restart every gateway, `rounds` times, while clients call through nginx.

    `calls_between` is how many calls each client makes before another gateway is restarted.

    Raises: LabFault.
    """
    figures = Figures()
    ownerships = [fleet.world.ownership() for _ in range(NPM_CLIENTS + PYTHON_CLIENTS)]
    for ownership in ownerships:
        ownership.certificate()
    with ExitStack() as stack:
        npm_clients = []
        for number in range(NPM_CLIENTS):
            npm_clients.append(NpmClient(fleet.folder / f"npm-{number}.log"))
            stack.callback(npm_clients[-1].stop)
        callers = stack.enter_context(Callers(fleet.nginx.url, ownerships, npm_clients))
        for _ in range(rounds):
            for gateway in fleet.gateways:
                callers.wait_for_more(calls_between)
                begun = time.monotonic()
                gateway.stop()
                figures.stop_seconds.append(time.monotonic() - begun)
                figures.exit_codes.append(gateway.process.exit_code)
                gateway.start()
        callers.wait_for_more(calls_between)
    figures.made, figures.failed = callers.made, callers.failed
    figures.by_client = {tally.name: tally.made for tally in callers.tallies}
    return figures


def main() -> int:
    """Run it in a lab of its own, print the figures; the exit status is 1 when a call failed."""
    parser = ArgumentParser(prog="scripts/rolling-restart")
    parser.add_argument("--rounds", type=int, default=3, help="how often each is restarted (3)")
    rounds = parser.parse_args().rounds
    end_on_signals()
    try:
        with tempfile.TemporaryDirectory(prefix="gateway-rolling-") as name, ExitStack() as stack:
            folder = Path(name)
            for part in ("bind", "pebble", "fleet"):
                (folder / part).mkdir()
            bind = start_bind_pair(folder / "bind")
            stack.callback(bind.stop)
            pebble = start_pebble(folder / "pebble", bind.primary)
            stack.callback(pebble.stop)
            with running_fleet(folder / "fleet", bind, pebble) as fleet:
                figures = restart_one_after_the_other(fleet, rounds)
    except AskedToEnd:
        return 1
    except LabFault as fault:
        sys.stderr.write(f"{fault}\n")
        return 1
    sys.stdout.write(_shown(figures))
    return 1 if figures.failed else 0


def _shown(figures: Figures) -> str:
    lines = [f"{name:10} {made:7} calls" for name, made in figures.by_client.items()]
    lines.append(f"{'all':10} {figures.made:7} calls, {len(figures.failed)} failed")
    longest = max(figures.stop_seconds)
    lines.append(f"{len(figures.stop_seconds)} stops, the longest in {longest:.1f} s")
    lines += [f"failed: {what}" for what in figures.failed[:20]]
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    sys.exit(main())
