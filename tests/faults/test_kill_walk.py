"""Killed at any point of an issuance, another gateway ends it: one order, one key, no leftovers.

The points are not listed here. Gateways that are left alone write down every point that they pass;
then, for each of them, a gateway is killed there, with a hostname of its own. Only when all are
dead an ordinary gateway starts, waits until their leases lapse, and goes on.

Orders are counted in Pebble's log, which names every order it takes, and each is read with the
account's key to learn whose it is.
"""

import base64
import signal
from collections import Counter
from dataclasses import dataclass

import pytest
from cryptography import x509

from gateway.certificates.agenda import issuance_of
from gateway.certificates.events import Command
from gateway.store.documents import Document
from tests.faults.evidence import Order, public_key
from tests.faults.faultlab import FaultLab
from tests.faults.points import AFTER, BEFORE, STEP, Point

pytestmark = pytest.mark.timeout(300)


@dataclass(frozen=True)
class Fate:
    """What became of the issuance whose gateway was killed at a point.

    `at_death` is what Redis held when nobody was alive, `at_the_end` when all was done.
    """

    point: Point
    hostname: str
    at_death: Document
    at_the_end: Document
    certificate: dict[str, str]
    orders: tuple[Order, ...]


@dataclass(frozen=True)
class Walk:
    """A whole walk. `lost` are the points between the CA's answer to newOrder and its storing."""

    points: tuple[Point, ...]
    lost: frozenset[Point]
    fates: tuple[Fate, ...]
    challenge_names: frozenset[str]

    def orders_allowed(self, point: Point) -> int:
        """One; two where the only answer that named the first one died with its receiver."""
        return 2 if point in self.lost else 1


@pytest.fixture(scope="module")
def walk(fault_lab: FaultLab, points: tuple[Point, ...]) -> Walk:
    with fault_lab.ended_at(points, signal.SIGKILL) as killed:
        hostname_of = {point: gateway.hostname for point, gateway in killed.items()}
        assert all(gateway.was_killed for gateway in killed.values())
    # Whether an issuance has to rest may differ from what it was in every trace.
    came = tuple(point for point in points if point in killed or not point.is_past_a_rest)
    hostnames = list(hostname_of.values())
    at_death = fault_lab.evidence.documents(hostnames)
    with fault_lab.gateway() as survivor:
        certificates = fault_lab.certificates(hostnames, survivor.url)
        fault_lab.wait_until_settled(hostnames)
    at_the_end = fault_lab.evidence.documents(hostnames)
    orders = fault_lab.evidence.orders(hostnames)
    fates = [
        Fate(
            point,
            name,
            at_death[name],
            at_the_end[name],
            certificates[name],
            tuple(order for order in orders if order.hostname == name),
        )
        for point, name in hostname_of.items()
    ]
    return Walk(
        came,
        _lost_answers(points),
        tuple(fates),
        frozenset(fault_lab.evidence.challenge_names()),
    )


def _lost_answers(points: tuple[Point, ...]) -> frozenset[Point]:
    phase = f"{Command.PLACE_ORDER} 1"
    answered = max(
        points.index(point)
        for point in points
        if (point.phase, point.call, point.side) == (phase, "ca.post", AFTER)
    )
    stored = points.index(Point(f"after {phase}", "redis.commit", 1, AFTER))
    return frozenset(points[answered:stored])


@pytest.fixture(scope="module", autouse=True)
def _table(walk: Walk, tables: list[str]) -> None:
    rows = Counter(point.command for point in walk.points)
    killed = Counter(fate.point.command for fate in walk.fates)
    orders: Counter[str] = Counter()
    for fate in walk.fates:
        orders[fate.point.command] += len(fate.orders)
    lines = [f"{'kill walk':24}{'points':>8}{'killed':>8}{'orders seen':>13}"]
    lines += [f"{name:24}{rows[name]:>8}{killed[name]:>8}{orders[name]:>13}" for name in rows]
    lines += [
        f"{'all':24}{len(walk.points):>8}{len(walk.fates):>8}{orders.total():>13}",
        f"answers of newOrder lost with their gateway: {len(walk.lost)}",
    ]
    tables.append("\n".join(lines))


def test_walk_passes_both_sides_of_every_command(walk: Walk) -> None:
    sides = {(point.command, point.side) for point in walk.points if point.call == STEP}
    assert sides >= {(str(command), side) for command in Command for side in (BEFORE, AFTER)}


def test_walk_kills_a_gateway_at_every_point(walk: Walk) -> None:
    assert {fate.point for fate in walk.fates} == set(walk.points)


def test_killed_anywhere_the_certificate_becomes_ready(
    walk: Walk, subtests: pytest.Subtests
) -> None:
    for fate in walk.fates:
        with subtests.test(str(fate.point)):
            assert fate.certificate["hostname"] == fate.hostname


def test_killed_anywhere_one_order_is_placed(walk: Walk, subtests: pytest.Subtests) -> None:
    for fate in walk.fates:
        with subtests.test(str(fate.point)):
            assert len(fate.orders) == walk.orders_allowed(fate.point)
            assert [order.status for order in fate.orders].count("valid") == 1


def test_killed_anywhere_the_key_stays_the_same(walk: Walk, subtests: pytest.Subtests) -> None:
    for fate in walk.fates:
        issuance = issuance_of(fate.at_death)
        if issuance is None or issuance.csr is None:
            continue
        with subtests.test(str(fate.point)):
            request = x509.load_der_x509_csr(base64.b64decode(issuance.csr))
            assert public_key(request) == public_key(fate.certificate["chainPem"])


def test_killed_anywhere_nothing_is_left_behind(walk: Walk, subtests: pytest.Subtests) -> None:
    for fate in walk.fates:
        with subtests.test(str(fate.point)):
            assert f"_acme-challenge.{fate.hostname}" not in walk.challenge_names
            assert fate.at_the_end.debts == ()
            assert fate.at_the_end.issuance is None
