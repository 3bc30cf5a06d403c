"""Hundreds of records published at once by one process: late, or `overloaded`, and nothing else.

Each is some messages to a DNS server and to Redis, with time limits that run out where the process
itself is too slow to read their answers.
"""

import asyncio

from tests.faults.crowd import sent_at_once
from tests.faults.faultlab import FaultLab
from tests.integration.service.calling import SYNC, World, envelope

CALLS = 200


def test_crowd_of_syncs_is_told_the_truth(fault_lab: FaultLab) -> None:
    with fault_lab.gateway() as gateway:
        world = World(gateway.url, fault_lab.lab.config.admin_token)
        token = world.client("*.example.test").token
        bodies = [
            envelope(
                SYNC,
                {
                    "apiToken": token,
                    "ownership": {"appId": "relay", "hostname": fault_lab.fresh_hostname()},
                    "record": {"type": "A", "value": "198.51.100.30"},
                },
            )
            for _ in range(CALLS)
        ]
        seen = asyncio.run(sent_at_once(gateway.url, bodies))
    assert set(seen) <= {"managed-created", "overloaded"}
    assert seen["managed-created"] > 0
