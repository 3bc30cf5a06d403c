"""Fixtures: a lab whose gateway has a metrics listener, and a worker of its own beside it."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.integration.metrics.scraping import Scraper
from tests.integration.service.calling import World
from tests.lab.gateway import GatewayProcess, prepare_gateway
from tests.lab.lab import Lab, LabOptions, running_lab
from tests.lab.ports import free_port

ORDERS_PER_3_HOURS = 300


@dataclass(frozen=True)
class MeteredLab:
    """The lab, its gateway, and what that shows."""

    lab: Lab
    gateway: GatewayProcess
    metrics: Scraper
    world: World


def metered(port: int) -> dict[str, str]:
    """The environment that has a gateway show its figures there, and count all each second."""
    return {
        "GATEWAY_METRICS__LISTEN": f"127.0.0.1:{port}",
        "GATEWAY_METRICS__CENSUS_SECONDS": "1",
        "GATEWAY_ACME__0__BUDGET__ORDERS_PER_3_HOURS": str(ORDERS_PER_3_HOURS),
    }


@pytest.fixture(scope="package")
def metered_lab() -> Iterator[MeteredLab]:
    """Tests may stop its parts, and have them run again before they end."""
    with running_lab(LabOptions(gateways=0)) as lab:
        port = free_port()
        gateway = prepare_gateway(lab.config, environ=metered(port))
        gateway.start()
        try:
            world = World(lab.config.url, lab.config.admin_token)
            yield MeteredLab(lab, gateway, Scraper(port), world)
        finally:
            gateway.stop()


@pytest.fixture
def metrics(metered_lab: MeteredLab) -> Scraper:
    return metered_lab.metrics


@pytest.fixture
def world(metered_lab: MeteredLab) -> World:
    return metered_lab.world
