"""Several gateways behind nginx, restarted one after the other under load."""

import pytest

from tests.integration.rolling.restarting import (
    GATEWAYS,
    Figures,
    restart_one_after_the_other,
    running_fleet,
)
from tests.lab.bind import BindPair
from tests.lab.pebble import PebbleProcess


@pytest.fixture(scope="module")
def figures(
    tmp_path_factory: pytest.TempPathFactory, bind: BindPair, pebble: PebbleProcess
) -> Figures:
    with running_fleet(tmp_path_factory.mktemp("rolling"), bind, pebble) as fleet:
        return restart_one_after_the_other(fleet, calls_between=12)


def test_no_call_fails_while_gateways_are_restarted(figures: Figures) -> None:
    assert figures.failed == []


def test_every_gateway_ends_by_itself(figures: Figures) -> None:
    assert figures.exit_codes == [0] * GATEWAYS
