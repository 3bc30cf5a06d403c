"""Many hostnames over three gateways that are killed in turn: every certificate, each ordered once.

An order counts as lost when no gateway ever stored it: the CA's answer, which alone named it, died
with the process that it was for. Redis's own log knows what was ever stored. Only a hostname that
the killed one had leased, without a stored order, can have lost one that way.
"""

from collections import Counter
from contextlib import ExitStack

import pytest

from tests.faults.faultlab import FaultLab, further_gateway
from tests.lab.gateway import GatewayProcess

GATEWAYS = 3
KILLS = 10
HOSTNAMES_A_KILL = 20


@pytest.mark.timeout(300)
def test_every_hostname_is_ordered_once_while_gateways_are_killed_in_turn(
    fault_lab: FaultLab, tables: list[str]
) -> None:
    hostnames: list[str] = []
    cut_off = 0
    in_hand: Counter[str] = Counter()
    with ExitStack() as stack:
        gateways = [
            stack.enter_context(further_gateway(fault_lab.lab, works=True)) for _ in range(GATEWAYS)
        ]
        for kill in range(KILLS):
            victim = gateways[kill % GATEWAYS]
            asked = _ask_for_some(fault_lab, gateways)
            fault_lab.wait_until_in_the_middle(asked)
            victim_pid = victim.pid
            victim.kill()
            hostnames += asked
            cut_off += fault_lab.under_way(asked)
            in_hand.update(_in_hand(fault_lab, hostnames, victim_pid))
            victim.start()
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
    assert [order for order in kept if order.status != "valid"] == []
    assert sorted(order.hostname for order in kept) == sorted(hostnames)
    assert Counter(order.hostname for order in lost) <= in_hand
    assert {order.status for order in lost} <= {"pending"}
    assert not left


def _ask_for_some(fault_lab: FaultLab, gateways: list[GatewayProcess]) -> list[str]:
    """Ask for new hostnames' certificates, all at once, at the gateways in turn."""
    hostnames = [fault_lab.fresh_hostname() for _ in range(HOSTNAMES_A_KILL)]
    fault_lab.ask_for_some(hostnames, [gateway.url for gateway in gateways])
    return hostnames


def _in_hand(fault_lab: FaultLab, hostnames: list[str], pid: int) -> list[str]:
    """The hostnames that a process had leased when it died, and whose order is not stored."""
    return [
        hostname
        for hostname, document in fault_lab.evidence.documents(hostnames).items()
        if document.lease is not None
        and f"-{pid}-" in document.lease.worker
        and not (document.issuance or {}).get("order_url")
    ]
