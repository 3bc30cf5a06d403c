"""A gateway that was stopped past its lease, and goes on, changes nothing and notices.

Each of many gateways stops itself (SIGSTOP) in the middle of a step. Another one takes over when
the leases lapse, and ends all issuances. Then the first ones go on (SIGCONT) where they were, with
answers to come or calls still to be made.

None of them sends the CA anything more, since its lease has lapsed. What was sent before it stopped
has come to an order that nobody else knows of, and a challenge record still goes out if the lease
was looked at before: both are entered as debts, and the debts are paid.
"""

import contextlib
import signal
from dataclasses import dataclass, field, replace

import pytest

from gateway.certificates.events import Command
from gateway.store.documents import Document
from tests.faults.doomed import DoomedGateway
from tests.faults.evidence import Order
from tests.faults.faultlab import SETTLING_LIMIT_SECONDS, FaultLab
from tests.faults.points import AFTER, BEFORE, STEP, Point
from tests.lab.process import LabFault, wait_until

GAVE_UP = "work given up"
ORDER_ANSWERED = Point(f"{Command.PLACE_ORDER} 1", STEP, 1, AFTER)
HAS_A_RECORD_OUT = {Command.PUBLISH_CHALLENGE, Command.CHECK_PROPAGATION}
"""That a record was published is not stored before the zone shows it; so long it is owed anew."""

pytestmark = pytest.mark.timeout(300)


@dataclass(frozen=True)
class Fate:
    """An issuance whose gateway was stopped: before it went on, and after."""

    point: Point
    hostname: str
    gave_up: bool
    before: Document
    after: Document
    orders: tuple[Order, ...]
    has_challenge: bool
    last_logged: str = field(repr=False)


@pytest.fixture(scope="module")
def fates(fault_lab: FaultLab, points: tuple[Point, ...]) -> list[Fate]:
    in_a_step = [point for point in points if _is_in_a_step(point)]
    with fault_lab.ended_at(in_a_step, signal.SIGSTOP) as stopped, fault_lab.gateway() as survivor:
        assert stopped.keys() == set(in_a_step)
        hostnames = [gateway.hostname for gateway in stopped.values()]
        fault_lab.certificates(hostnames, survivor.url)
        fault_lab.wait_until_settled(hostnames)
        before = fault_lab.evidence.documents(hostnames)
        # One after the other: dozens that wake in one moment keep Redis, or themselves, from an
        # answer in time. Work is interrupted by that, and what is told then is another story.
        for gateway in stopped.values():
            gateway.resume()
            _wait_until_given_up(gateway)
        fault_lab.wait_until_settled(hostnames)
        after = fault_lab.evidence.documents(hostnames)
    orders = fault_lab.evidence.orders(hostnames)
    names = fault_lab.evidence.challenge_names()
    return [
        Fate(
            point,
            gateway.hostname,
            gateway.has_logged(GAVE_UP),
            before[gateway.hostname],
            after[gateway.hostname],
            tuple(order for order in orders if order.hostname == gateway.hostname),
            f"_acme-challenge.{gateway.hostname}" in names,
            "\n".join(gateway.log_file.read_text(errors="replace").splitlines()[-20:]),
        )
        for point, gateway in stopped.items()
    ]


def _is_in_a_step(point: Point) -> bool:
    """Whether work is under way there: around a whole command, or on the way to another server."""
    is_outward = point.call.startswith(("ca.", "dns.")) and point.side == BEFORE
    return point.command != "get" and (point.call == STEP or is_outward)


def _wait_until_given_up(gateway: DoomedGateway) -> None:
    with contextlib.suppress(LabFault):
        wait_until(lambda: gateway.has_logged(GAVE_UP), "it has given up", SETTLING_LIMIT_SECONDS)


def test_stopped_past_its_lease_a_gateway_notices(
    fates: list[Fate], subtests: pytest.Subtests
) -> None:
    for fate in fates:
        with subtests.test(str(fate.point)):
            assert fate.gave_up, fate.last_logged


def test_stopped_past_its_lease_a_gateway_changes_nothing(
    fates: list[Fate], subtests: pytest.Subtests
) -> None:
    for fate in fates:
        before = fate.before
        if fate.point == ORDER_ANSWERED or fate.point.command in HAS_A_RECORD_OUT:
            # A debt came and was paid: new version and fence, nothing else.
            before = replace(before, version=fate.after.version, fence=fate.after.fence)
        with subtests.test(str(fate.point)):
            assert fate.after == before, fate.last_logged


def test_stopped_past_its_lease_a_gateway_leaves_no_challenge(
    fates: list[Fate], subtests: pytest.Subtests
) -> None:
    for fate in fates:
        with subtests.test(str(fate.point)):
            assert not fate.has_challenge


def test_stopped_past_its_lease_a_gateway_orders_nothing_and_gives_back_what_it_had_ordered(
    fates: list[Fate], subtests: pytest.Subtests
) -> None:
    for fate in fates:
        with subtests.test(str(fate.point)):
            assert [order.status for order in fate.orders].count("valid") == 1
            others = [order for order in fate.orders if order.status != "valid"]
            assert len(others) == (1 if fate.point == ORDER_ANSWERED else 0)
            # Valid: Pebble gave the new order the authorization of the certificate that is served.
            assert all(order.authorization_status != "pending" for order in others)
