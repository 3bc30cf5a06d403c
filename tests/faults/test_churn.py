"""Many hostnames over three gateways that are killed in turn: every certificate, each ordered once.

An order counts as lost when no gateway ever stored it: the CA's answer, which alone named it, died
with the process that it was for. Redis's own log knows what was ever stored.
"""

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from tests.faults.faultlab import SETTLING_LIMIT_SECONDS, FaultLab, running_gateway
from tests.lab.gateway import GatewayProcess
from tests.lab.process import wait_until

GATEWAYS = 3
KILLS = 6
HOSTNAMES_A_KILL = 10


@pytest.mark.timeout(300)
def test_every_hostname_is_ordered_once_while_gateways_are_killed_in_turn(
    fault_lab: FaultLab, tables: list[str]
) -> None:
    hostnames: list[str] = []
    cut_off = 0
    with ExitStack() as stack:
        gateways = [
            stack.enter_context(running_gateway(fault_lab.lab, works=True)) for _ in range(GATEWAYS)
        ]
        for kill in range(KILLS):
            victim = gateways[kill % GATEWAYS]
            asked = _ask_for_some(fault_lab, gateways)
            _wait_until_in_the_middle(fault_lab, asked)
            victim.kill()
            cut_off += _under_way(fault_lab, asked)
            victim.start()
            hostnames += asked
        certificates = fault_lab.certificates(hostnames, gateways[0].url)
        fault_lab.wait_until_settled(hostnames)

    orders = fault_lab.evidence.orders(hostnames)
    stored = fault_lab.evidence.stored_order_urls()
    kept = [order for order in orders if order.url in stored]
    lost = [order for order in orders if order.url not in stored]
    left = {f"_acme-challenge.{name}" for name in hostnames} & fault_lab.evidence.challenge_names()
    tables.append(
        f"{len(hostnames)} hostnames, {GATEWAYS} gateways killed {KILLS} times in turn, {cut_off} "
        f"under way: {len(certificates)} certificates, {len(orders)} orders, "
        f"{len(lost)} of them lost answers, {len(left)} challenge records left"
    )
    assert cut_off > 0
    assert sorted(order.hostname for order in kept) == sorted(hostnames)
    assert {order.status for order in kept} == {"valid"}
    assert {order.status for order in lost} <= {"pending"}
    assert not left


def _ask_for_some(fault_lab: FaultLab, gateways: list[GatewayProcess]) -> list[str]:
    """Ask for new hostnames' certificates, all at once, at the gateways in turn."""
    hostnames = [fault_lab.fresh_hostname() for _ in range(HOSTNAMES_A_KILL)]
    urls = [gateways[number % GATEWAYS].url for number in range(HOSTNAMES_A_KILL)]
    with ThreadPoolExecutor(HOSTNAMES_A_KILL) as threads:
        list(threads.map(fault_lab.client.get, urls, hostnames))
    return hostnames


def _wait_until_in_the_middle(fault_lab: FaultLab, hostnames: list[str]) -> None:
    """Wait until the first order is there."""
    wait_until(
        lambda: any(
            each.certificate or (each.issuance or {}).get("order_url")
            for each in fault_lab.evidence.documents(hostnames).values()
        ),
        "an order is under way",
        SETTLING_LIMIT_SECONDS,
    )


def _under_way(fault_lab: FaultLab, hostnames: list[str]) -> int:
    documents = fault_lab.evidence.documents(hostnames).values()
    return len([each for each in documents if each.issuance is not None])
