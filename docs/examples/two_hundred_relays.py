"""Provision many relays at once: a client, an address record and a certificate for each.

    export GATEWAY_URL=https://gateway.example.com
    export OPERATOR_TOKEN_FILE=/etc/cloudly/gateway-token
    python two_hundred_relays.py --domain relays.example.com
    python two_hundred_relays.py --domain relays.example.com --remove

Each relay is served by a task of its own, a bounded number of them at the same time. One that fails
does not end the others. Run again, it changes no record and orders no certificate. Exit status: 0
when all are served, 1 when some are not, 2 when it was called wrongly.

A control plane would also store each token and each certificate as it comes; `cloudly/`, beside
this file, does. This keeps neither, so it makes new tokens when it is run again.
"""

# ruff: noqa: T201  (its figures are for a person)

import argparse
import asyncio
import os
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from ipaddress import IPv4Network
from pathlib import Path

from gateway.client import AsyncGatewayClient, GatewayError

CERTIFICATE_LIMIT_SECONDS = 300.0
STEPS = ("client", "record", "certificate", "all")


class RelayFailed(Exception):
    """Why one relay is not served: one sentence."""


@dataclass
class Relay:
    """One relay, how many seconds each step of serving it took, and what went wrong."""

    name: str
    hostname: str
    address: str
    took: dict[str, float] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)

    @property
    def client_id(self) -> str:
        """A client for each relay: a token that leaks is good for one hostname."""
        return f"cloudly:{self.name}"

    @property
    def spec(self) -> dict[str, object]:
        """A client that may do this and nothing else."""
        return {
            "clientId": self.client_id,
            "clientType": "relay",
            "hostnamePatterns": [self.hostname],
            "allowedDnsRecordAddresses": [f"{self.address}/32"],
            "capabilities": ["syncDnsRecords", "requestCertificates", "readCertificates"],
        }

    @property
    def ownership(self) -> dict[str, object]:
        """What every call about the hostname names."""
        return {"appId": f"cluster-relay:{self.name}", "hostname": self.hostname}


async def provision(operator: AsyncGatewayClient, relay: Relay) -> None:
    """Serve one relay: its client first, then its record and its certificate at the same time."""
    began = time.monotonic()
    token = await ensure_token(operator, relay)
    relay.took["client"] = time.monotonic() - began
    # Another client would have connections of its own, and with https trusted authorities to load.
    gateway = operator.with_token(token)
    async with asyncio.TaskGroup() as steps:
        steps.create_task(publish(gateway, relay))
        steps.create_task(certify(gateway, relay))
    relay.took["all"] = time.monotonic() - began


async def ensure_token(operator: AsyncGatewayClient, relay: Relay) -> str:
    """The token of a relay's client: it is told once, so one that exists gets a new one."""
    answer = await operator.ensure_client(relay.spec)
    if answer.api_token is None:
        return (await operator.rotate_credential(relay.client_id)).api_token
    return answer.api_token


async def publish(gateway: AsyncGatewayClient, relay: Relay) -> None:
    """Publish the address record of a relay."""
    began = time.monotonic()
    record = {"type": "A", "value": relay.address, "ttl": 60}
    answer = await gateway.sync_dns_record(relay.ownership, record)
    if not answer.status.startswith("managed-"):
        raise RelayFailed(f"{answer.status}: {answer.message}")
    relay.took["record"] = time.monotonic() - began


async def certify(gateway: AsyncGatewayClient, relay: Relay) -> None:
    """Wait for the certificate of a relay, which is judged before it is answered."""
    began = time.monotonic()
    await gateway.wait_for_certificate(relay.ownership, CERTIFICATE_LIMIT_SECONDS)
    relay.took["certificate"] = time.monotonic() - began


async def remove(operator: AsyncGatewayClient, relay: Relay) -> None:
    """Delete a relay's client with all it holds; made first if it is gone, so that this repeats."""
    await operator.ensure_client(relay.spec)
    await operator.remove_client(relay.client_id, release_holdings=True)


async def for_each(
    relays: list[Relay], at_once: int, work: Callable[[Relay], Awaitable[None]]
) -> None:
    """Do the work for all relays, `at_once` of them at a time; failures are kept with the relay."""
    slots = asyncio.Semaphore(at_once)

    async def one(relay: Relay) -> None:
        async with slots:
            try:
                await work(relay)
            except* (GatewayError, RelayFailed) as failures:
                relay.faults.extend(str(failure) for failure in failures.exceptions)

    async with asyncio.TaskGroup() as tasks:
        for relay in relays:
            tasks.create_task(one(relay))


async def run(options: argparse.Namespace, url: str, token: str) -> int:
    """Serve or remove all relays, print the figures; the exit status."""
    relays = make_relays(options.count, options.domain, options.network)
    began = time.monotonic()
    async with AsyncGatewayClient(url, token, on_repeat=FirstFailure().tell) as operator:
        if options.remove:
            await for_each(relays, options.at_once, lambda relay: remove(operator, relay))
        else:
            await for_each(relays, options.at_once, lambda relay: provision(operator, relay))
    seconds = time.monotonic() - began

    failed = [relay for relay in relays if relay.faults]
    for relay in failed:
        print(f"{relay.hostname}: {'; '.join(relay.faults)}", file=sys.stderr)
    done = len(relays) - len(failed)
    what = "removed" if options.remove else "served"
    rate = f"{done / seconds:.1f} per second, {options.at_once} at a time"
    print(f"{done} of {len(relays)} relays {what} in {seconds:.1f} s, {rate}")
    print_steps(relays)
    return 1 if failed else 0


class FirstFailure:
    """Tells once that calls are made again, so that nobody waits without knowing for what."""

    def __init__(self) -> None:
        self._is_told = False

    def tell(self, failure: GatewayError) -> None:
        """Say it of the first failure only: two hundred relays have the same."""
        if not self._is_told:
            print(f"{failure} Trying again.", file=sys.stderr)
        self._is_told = True


def print_steps(relays: list[Relay]) -> None:
    """The median and the slowest of each step that was taken."""
    for step in STEPS:
        taken = {relay.hostname: relay.took[step] for relay in relays if step in relay.took}
        if taken:
            slowest = max(taken, key=lambda hostname: taken[hostname])
            median = statistics.median(taken.values())
            print(f"{step:<12}median {median:6.2f} s, slowest {taken[slowest]:6.2f} s ({slowest})")


def make_relays(count: int, domain: str, network: IPv4Network) -> list[Relay]:
    """Relays with a hostname under the domain and an address out of the network each."""
    return [
        Relay(f"relay-{number}", f"relay-{number}.{domain}", str(network[number]))
        for number in range(1, count + 1)
    ]


def read_options() -> argparse.Namespace:
    """The options. No token is among them: everybody on the machine can read an argument list."""
    parser = argparse.ArgumentParser(description="Provision many relays at a gateway.")
    parser.add_argument("--domain", required=True, help="the relays are relay-1.DOMAIN and so on")
    parser.add_argument("--count", type=int, default=200, help="how many relays (%(default)s)")
    parser.add_argument("--at-once", type=int, default=50, help="served at a time (%(default)s)")
    parser.add_argument("--network", type=IPv4Network, default=IPv4Network("198.51.100.0/24"))
    parser.add_argument("--remove", action="store_true", help="take all of it back")
    options = parser.parse_args()
    most = options.network.num_addresses - 1
    if most < 1:
        parser.error(f"--network {options.network} has no address for a relay: name a wider one")
    if options.at_once < 1 or not 0 < options.count <= most:
        parser.error(f"--count must be from 1 to {most}, --at-once 1 or more")
    return options


def read_environment() -> tuple[str, str]:
    """The gateway's URL and the operator's token.

    Raises: ValueError that names what is missing.
    """
    url = os.environ.get("GATEWAY_URL")
    token_file = os.environ.get("OPERATOR_TOKEN_FILE")
    if not url or not token_file:
        raise ValueError("GATEWAY_URL and OPERATOR_TOKEN_FILE must be set.")
    try:
        return url, Path(token_file).read_text(encoding="utf-8").strip()
    except OSError as error:
        raise ValueError(f"{token_file}: {error.strerror}.") from error


def main() -> int:
    """Read what is needed and run."""
    options = read_options()
    try:
        url, token = read_environment()
        return asyncio.run(run(options, url, token))
    except ValueError as fault:  # the client says so of a URL, too
        print(fault, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
