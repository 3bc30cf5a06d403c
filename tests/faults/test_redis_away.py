"""Redis away in the middle of a step: what came of it is not lost, and nothing is done twice."""

import signal
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager

from gateway.certificates.events import Command
from gateway.certificates.leases import LEASE_MS
from tests.faults.doomed import DoomedGateway
from tests.faults.faultlab import SETTLING_LIMIT_SECONDS, FaultLab
from tests.faults.points import AFTER, Point
from tests.lab.process import wait_until

AT_ONCE = 3
PAST_LAPSE_SECONDS = 0.3
"""Not a whole number: else who tries once a second would always be the first to see Redis again."""

ORDERED = Point(f"{Command.PLACE_ORDER} 1", "ca.post", 1, AFTER)
SENT = (ORDERED, ORDERED, Point(f"{Command.FINALIZE} 1", "ca.post", 1, AFTER))
WAITS = "waiting for Redis"


def test_order_answered_while_redis_is_away_is_stored_when_it_is_back(fault_lab: FaultLab) -> None:
    _make_account(fault_lab)
    with _stopped(fault_lab, [ORDERED]) as (gateway,):
        fault_lab.lab.redis.kill()
        try:
            gateway.resume()
            _wait_until_all_wait([gateway])
        finally:
            fault_lab.lab.redis.start()
        _finish(fault_lab, [gateway])
    fault_lab.assert_each_ordered_once([gateway.hostname])


def test_steps_answered_while_redis_is_away_longer_than_a_lease_are_not_done_again(
    fault_lab: FaultLab,
) -> None:
    """Another gateway sees the leases lapsed as soon as their owners see Redis again."""
    _make_account(fault_lab)
    with fault_lab.gateway(), _stopped(fault_lab, SENT) as gateways:
        fault_lab.lab.redis.kill()
        lapse_at = time.monotonic() + LEASE_MS / 1000 + PAST_LAPSE_SECONDS
        try:
            for gateway in gateways:
                gateway.resume()
            _wait_until_all_wait(gateways)
            wait_until(
                lambda: time.monotonic() > lapse_at, "the leases lapse", SETTLING_LIMIT_SECONDS
            )
        finally:
            fault_lab.lab.redis.start()
        _finish(fault_lab, gateways)
    fault_lab.assert_each_ordered_once([gateway.hostname for gateway in gateways])


def _make_account(fault_lab: FaultLab) -> None:
    """So that a step's first call is the order."""
    with fault_lab.gateway() as ready:
        fault_lab.certificates([fault_lab.fresh_hostname()], ready.url)


@contextmanager
def _stopped(fault_lab: FaultLab, points: Sequence[Point]) -> Iterator[list[DoomedGateway]]:
    """Gateways, each with a hostname of its own, that are held right after an answer of the CA."""
    with ExitStack() as stack:

        def come_to(point: Point) -> DoomedGateway:
            hostname = fault_lab.fresh_hostname()
            gateway = fault_lab.doomed(hostname, point, signal_number=signal.SIGSTOP)
            gateway.start()
            stack.callback(gateway.kill)
            assert fault_lab.drive(gateway)
            return gateway

        with ThreadPoolExecutor(AT_ONCE) as threads:
            gateways = list(threads.map(come_to, points))
        yield gateways


def _wait_until_all_wait(gateways: Sequence[DoomedGateway]) -> None:
    wait_until(
        lambda: all(gateway.has_logged(WAITS) for gateway in gateways),
        "all of them wait",
        SETTLING_LIMIT_SECONDS,
    )


def _finish(fault_lab: FaultLab, gateways: Sequence[DoomedGateway]) -> None:
    for gateway in gateways:
        fault_lab.wait_until_listening(gateway)
        fault_lab.certificates([gateway.hostname], gateway.url)
    fault_lab.wait_until_settled([gateway.hostname for gateway in gateways])
