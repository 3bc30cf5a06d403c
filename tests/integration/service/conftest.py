"""Fixtures: one lab with two gateways at debug level, another person's hand in its zones."""

from collections.abc import Iterator

import pytest

from tests.integration.dns.hand import Hand
from tests.integration.service.calling import Ownership, World
from tests.lab.lab import Lab, LabOptions, running_lab


@pytest.fixture(scope="package")
def service_lab() -> Iterator[Lab]:
    with running_lab(LabOptions(gateways=2, log_level="debug")) as lab:
        yield lab


@pytest.fixture(scope="package")
def world(service_lab: Lab) -> World:
    return World(service_lab.config.url, service_lab.config.admin_token)


@pytest.fixture(scope="package")
def second_url(service_lab: Lab) -> str:
    """Another gateway on the same Redis."""
    return service_lab.gateways[1].url


@pytest.fixture(scope="package")
def hand(service_lab: Lab) -> Hand:
    return Hand.at(service_lab.bind)


@pytest.fixture
def mine(world: World) -> Ownership:
    return world.ownership()
