"""Machines whose clocks differ: leases hold all the same, and none of them outlives its owner."""

import secrets
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.faults import skewed
from tests.faults.faultlab import FaultLab
from tests.lab.gateway import GatewayProcess
from tests.lab.ports import LOOPBACK, free_port
from tests.lab.process import Process

HOSTNAMES = 24
SECONDS_MS = 20_000
HOUR_MS = 3_600_000


@contextmanager
def _skewed(fault_lab: FaultLab, ahead_ms: int) -> Iterator[GatewayProcess]:
    """A gateway that works on everything, by a machine's clock that is so much ahead."""
    config_file, port = fault_lab.lab.config.config_file, free_port()
    command = [sys.executable, skewed.__file__, str(ahead_ms)]
    command += ["serve", "--config", str(config_file)]
    environ = {"GATEWAY_HTTP__LISTEN": f"{LOOPBACK}:{port}"}
    name = f"skewed-{secrets.token_hex(4)}"
    gateway = GatewayProcess(Process(name, command, config_file.parent, environ), port)
    gateway.start()
    try:
        yield gateway
    finally:
        gateway.stop()


@pytest.mark.parametrize("ahead_ms", [SECONDS_MS, -SECONDS_MS, HOUR_MS])
def test_each_is_ordered_once_by_gateways_whose_clocks_differ(
    fault_lab: FaultLab, ahead_ms: int
) -> None:
    hostnames = [fault_lab.fresh_hostname() for _ in range(HOSTNAMES)]
    with fault_lab.gateway() as right, _skewed(fault_lab, ahead_ms) as wrong:
        fault_lab.ask_for_some(hostnames, [right.url, wrong.url])
        fault_lab.certificates(hostnames, right.url)
        fault_lab.wait_until_settled(hostnames)
    orders = fault_lab.evidence.orders(hostnames)
    # One that Pebble found invalid is used up: the machine was too busy to show it the challenge.
    usable = Counter(order.hostname for order in orders if order.status != "invalid")
    assert usable == Counter(hostnames)


def test_gateway_whose_clock_is_ahead_leaves_no_lease_for_long_when_it_dies(
    fault_lab: FaultLab,
) -> None:
    hostnames = [fault_lab.fresh_hostname() for _ in range(HOSTNAMES)]
    with _skewed(fault_lab, HOUR_MS) as wrong:
        fault_lab.ask_for_some(hostnames, [wrong.url])
        fault_lab.wait_until_in_the_middle(hostnames)
        wrong.kill()
    documents = fault_lab.evidence.documents(hostnames)
    assert any(document.lease is not None for document in documents.values())
    with fault_lab.gateway() as right:
        fault_lab.certificates(hostnames, right.url)
        fault_lab.wait_until_settled(hostnames)
