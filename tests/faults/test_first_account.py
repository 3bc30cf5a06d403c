"""Killed at any point of the very first order: one account at the CA, one order, a certificate.

An account belongs to its directory's URL. A query, which Pebble does not look at, makes for each
point a directory of its own, without an account, on the same Redis and the same Pebble.
"""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gateway.certificates.events import Command
from tests.faults.faultlab import FaultLab
from tests.faults.points import AFTER, Point

AT_ONCE = 8


def _directory(fault_lab: FaultLab, name: str) -> dict[str, str]:
    return {"GATEWAY_ACME__0__DIRECTORY": f"{fault_lab.lab.pebble.directory_url}?{name}"}


def _kill_at(fault_lab: FaultLab, point: Point) -> str:
    """Kill a gateway at the point; answers the hostname that it worked on."""
    hostname = fault_lab.fresh_hostname()
    killed = fault_lab.doomed(hostname, point, environ=_directory(fault_lab, hostname))
    try:
        killed.start()
        assert fault_lab.drive(killed), str(point)
        assert killed.was_killed, killed.log_file.read_text()
    finally:
        killed.kill()
    return hostname


def _go_on(fault_lab: FaultLab, hostname: str) -> str:
    """Let another gateway go on; answers the certificate's hostname."""
    survivor = fault_lab.doomed(hostname, environ=_directory(fault_lab, hostname))
    try:
        survivor.start()
        fault_lab.wait_until_listening(survivor)
        certificate = fault_lab.certificates([hostname], survivor.url)[hostname]
        fault_lab.wait_until_settled([hostname])
    finally:
        survivor.kill()
    answered: str = certificate["hostname"]
    return answered


@pytest.mark.timeout(300)
def test_first_account_and_order_are_made_once_wherever_the_gateway_is_killed(
    fault_lab: FaultLab, tmp_path: Path, tables: list[str]
) -> None:
    passed = fault_lab.trace(tmp_path / "trace", _directory(fault_lab, "traced"))
    points = [point for point in passed if point.command == Command.PLACE_ORDER]
    accounts_before, orders_before = fault_lab.evidence.counts()
    with ThreadPoolExecutor(AT_ONCE) as threads:
        killed = list(threads.map(lambda point: _kill_at(fault_lab, point), points))
    # All at once: what they wait for are the leases of the dead.
    with ThreadPoolExecutor(len(killed)) as threads:
        hostnames = list(threads.map(lambda hostname: _go_on(fault_lab, hostname), killed))
    accounts, orders = fault_lab.evidence.counts()
    answered = max(points.index(point) for point in points if _is_answer(point))
    stored = points.index(Point(f"after {Command.PLACE_ORDER} 1", "redis.commit", 1, AFTER))
    lost = stored - answered
    tables.append(
        f"first order of an account: {len(points)} points, {len(hostnames)} processes killed, "
        f"{accounts - accounts_before} accounts, {orders - orders_before} orders, "
        f"{lost} of them lost answers"
    )
    assert len(set(hostnames)) == len(points)
    assert accounts - accounts_before == len(points)
    assert orders - orders_before == len(points) + lost
    assert not {f"_acme-challenge.{name}" for name in hostnames} & (
        fault_lab.evidence.challenge_names()
    )


def _is_answer(point: Point) -> bool:
    return (point.call, point.side) == ("ca.post", AFTER)
