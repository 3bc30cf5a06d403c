"""The systemd units of docs/examples/systemd, as systemd itself judges them."""

import re
from pathlib import Path

import pytest

from gateway.running import GRACE_SECONDS
from tests.lab.units import analyze, exposure, write_units

EXAMPLES = Path("docs/examples/systemd")
UNITS = ["gateway.service", "gateway-worker.service"]
BACKUP = "gateway-backup.service"
TIMER = "gateway-backup.timer"
MOST_EXPOSED = 2.0


@pytest.fixture(scope="module")
def units(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("units")
    write_units(folder, (EXAMPLES / name for name in (*UNITS, BACKUP, TIMER)))
    return folder


def test_units_are_taken_by_systemd_without_a_word(units: Path) -> None:
    assert analyze("verify", *(str(units / name) for name in (*UNITS, BACKUP, TIMER))) == ""


@pytest.mark.parametrize("name", [*UNITS, BACKUP])
def test_unit_is_hardly_exposed(units: Path, name: str) -> None:
    assert exposure(units / name) <= MOST_EXPOSED


def test_stopping_leaves_calls_and_steps_their_grace() -> None:
    for name in UNITS:
        limit = re.search(r"^TimeoutStopSec=(\d+)$", (EXAMPLES / name).read_text(), re.MULTILINE)
        assert limit is not None
        assert int(limit[1]) > GRACE_SECONDS


def test_both_units_have_the_same_sandbox() -> None:
    one, other = ((EXAMPLES / name).read_text().partition("# --- What it may")[2] for name in UNITS)
    assert one == other != ""
