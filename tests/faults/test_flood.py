"""A flood of calls that nobody vouches for, beside a good client."""

from collections.abc import Iterator

import pytest

from tests.faults.faultlab import FaultLab
from tests.faults.floodrun import LIMITS, GoodClient, flooding
from tests.integration.service.calling import World
from tests.lab.gateway import GatewayProcess, running_gateway
from tests.lab.ports import free_port

SECONDS = 3.0
ADDRESSES, CONNECTIONS = 20, 20


@pytest.fixture
def gateway(fault_lab: FaultLab) -> Iterator[GatewayProcess]:
    """A gateway with the limits that it has unless told otherwise."""
    port = free_port()
    config = fault_lab.lab.config
    with running_gateway(config, f"flooded-{port}", port=port, environ=LIMITS) as gateway:
        yield gateway


def test_good_client_goes_on_beside_a_flood(fault_lab: FaultLab, gateway: GatewayProcess) -> None:
    good = GoodClient(World(gateway.url, fault_lab.lab.config.admin_token))
    try:
        good.call_for(0.1)  # from here on its token is one that was right
        with flooding(gateway, SECONDS, ADDRESSES, CONNECTIONS) as of_flood:
            beside = good.call_for(SECONDS)
            codes = of_flood()
    finally:
        good.close()
    assert set(beside.outcomes) == {"managed-unchanged"}
    assert set(codes) == {"unauthorized", "envelope-invalid", "overloaded"}
