"""Fixtures: one lab for all fault tests, another person's hand in its zones, tables at the end."""

from collections.abc import Iterator

import pytest

from tests.faults.faultlab import FaultLab, further_gateway
from tests.faults.points import Point
from tests.faults.tables import TABLES
from tests.integration.dns.hand import Hand
from tests.lab.lab import LabOptions, running_lab

TRACES = 3


@pytest.fixture(scope="package")
def fault_lab() -> Iterator[FaultLab]:
    with running_lab(LabOptions(gateways=0)) as lab, further_gateway(lab, works=False) as desk:
        fault_lab = FaultLab(lab, desk)
        yield fault_lab
        fault_lab.client.close()


@pytest.fixture(scope="package")
def points(fault_lab: FaultLab, tmp_path_factory: pytest.TempPathFactory) -> tuple[Point, ...]:
    """What undisturbed issuances pass, in order: all that several have in common, polls differ."""
    folder = tmp_path_factory.mktemp("traces")
    traces = [fault_lab.trace(folder / str(number)) for number in range(TRACES)]
    return tuple(point for point in traces[0] if all(point in trace for trace in traces[1:]))


@pytest.fixture(scope="package")
def hand(fault_lab: FaultLab) -> Hand:
    return Hand.at(fault_lab.lab.bind)


@pytest.fixture(scope="session")
def tables(request: pytest.FixtureRequest) -> list[str]:
    """Texts to be shown when all tests are over."""
    return request.config.stash.setdefault(TABLES, [])
