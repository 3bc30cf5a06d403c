"""The systemd units of docs/examples/systemd, as systemd itself judges them."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.running import GRACE_SECONDS
from tests.lab.process import find_program

EXAMPLES = Path("docs/examples/systemd")
UNITS = ["gateway.service", "gateway-worker.service"]
BACKUP = "gateway-backup.service"
TIMER = "gateway-backup.timer"
MOST_EXPOSED = 2.0
"""Out of 10; systemd calls up to 4 "OK"."""


@pytest.fixture(scope="module")
def units(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The units with a program that is there: systemd looks for it."""
    folder = tmp_path_factory.mktemp("units")
    program = Path(sys.executable).with_name("gateway")
    for name in (*UNITS, BACKUP, TIMER):
        text = (EXAMPLES / name).read_text()
        (folder / name).write_text(text.replace("/opt/gateway/bin/gateway", str(program)))
    return folder


def analyze(*arguments: str) -> str:
    program = find_program("systemd-analyze", "systemd")
    done = subprocess.run(
        [program, *arguments], check=False, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_units_are_taken_by_systemd_without_a_word(units: Path) -> None:
    assert analyze("verify", *(str(units / name) for name in (*UNITS, BACKUP, TIMER))) == ""


@pytest.mark.parametrize("name", [*UNITS, BACKUP])
def test_unit_is_hardly_exposed(units: Path, name: str) -> None:
    told = analyze("security", "--offline=true", "--no-pager", str(units / name))
    level = re.search(r"Overall exposure level for \S+: ([0-9.]+)", told)
    assert level is not None
    assert float(level[1]) <= MOST_EXPOSED


def test_stopping_leaves_calls_and_steps_their_grace() -> None:
    for name in UNITS:
        limit = re.search(r"^TimeoutStopSec=(\d+)$", (EXAMPLES / name).read_text(), re.MULTILINE)
        assert limit is not None
        assert int(limit[1]) > GRACE_SECONDS


def test_both_units_have_the_same_sandbox() -> None:
    one, other = ((EXAMPLES / name).read_text().partition("# --- What it may")[2] for name in UNITS)
    assert one == other != ""
