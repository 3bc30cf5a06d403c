"""More calls at once than there are connections to Redis: they wait for their turn."""

import asyncio

from tests.faults.crowd import sent_at_once
from tests.faults.faultlab import FaultLab

CALLS = 300
ROUNDS = 4


def test_no_call_of_a_crowd_is_unavailable(fault_lab: FaultLab) -> None:
    hostname = fault_lab.fresh_hostname()
    body = fault_lab.client.asking(hostname)
    with fault_lab.gateway() as gateway:
        fault_lab.certificates([hostname], gateway.url)
        seen = asyncio.run(sent_at_once(gateway.url, [body] * CALLS, ROUNDS))
    assert seen == {"ready": CALLS * ROUNDS}
