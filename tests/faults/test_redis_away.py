"""Redis away in the middle of a step: what came of it is not lost, and nothing is done twice."""

import signal

from gateway.certificates.events import Command
from tests.faults.faultlab import SETTLING_LIMIT_SECONDS, FaultLab
from tests.faults.points import AFTER, Point
from tests.lab.process import wait_until


def test_order_answered_while_redis_is_away_is_stored_when_it_is_back(fault_lab: FaultLab) -> None:
    hostname = fault_lab.fresh_hostname()
    answered = Point(f"{Command.PLACE_ORDER} 1", "ca.post", 1, AFTER)
    gateway = fault_lab.doomed(hostname, answered, signal_number=signal.SIGSTOP)
    gateway.start()
    try:
        assert fault_lab.drive(gateway)
        fault_lab.lab.redis.kill()
        try:
            gateway.resume()
            wait_until(
                lambda: gateway.has_logged("waiting for Redis"), "it waits", SETTLING_LIMIT_SECONDS
            )
        finally:
            fault_lab.lab.redis.start()
        fault_lab.wait_until_listening(gateway)
        fault_lab.certificates([hostname], gateway.url)
        fault_lab.wait_until_settled([hostname])
    finally:
        gateway.kill()
    assert [order.status for order in fault_lab.evidence.orders([hostname])] == ["valid"]
    assert f"_acme-challenge.{hostname}" not in fault_lab.evidence.challenge_names()
