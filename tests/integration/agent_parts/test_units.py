"""The systemd units of docs/examples/agent, as systemd itself judges them."""

import re
from pathlib import Path

import pytest

from gateway.agent.clocks import Pace
from tests.lab.units import analyze, exposure, write_units

EXAMPLES = Path("docs/examples/agent")
UNITS = ["gateway-agent.service", "gateway-agent-once.service", "gateway-agent-once.timer"]
SERVICES = UNITS[:2]
MOST_EXPOSED = 2.0


@pytest.fixture(scope="module")
def units(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("units")
    write_units(folder, (EXAMPLES / name for name in UNITS))
    return folder


def test_units_are_taken_by_systemd_without_a_word(units: Path) -> None:
    assert analyze("verify", *(str(units / name) for name in UNITS)) == ""


@pytest.mark.parametrize("name", SERVICES)
def test_service_is_hardly_exposed(units: Path, name: str) -> None:
    assert exposure(units / name) <= MOST_EXPOSED


def settings_of(name: str) -> dict[str, str]:
    """What a unit sets; of a key that is there several times, the last."""
    lines = (EXAMPLES / name).read_text().splitlines()
    return dict(re.findall(r"^(\w+)=(.*)$", "\n".join(lines), re.MULTILINE))


@pytest.mark.parametrize("name", SERVICES)
def test_stopping_leaves_a_hook_that_runs_its_grace(name: str) -> None:
    settings = settings_of(name)
    assert settings["KillMode"] == "mixed"
    assert int(settings["TimeoutStopSec"]) > Pace().hook_grace_seconds


@pytest.mark.parametrize("name", SERVICES)
def test_service_waits_for_users_names_and_the_time(name: str) -> None:
    after = settings_of(name)["After"].split()
    assert {"nss-user-lookup.target", "nss-lookup.target", "time-sync.target"} <= set(after)


def test_service_that_fails_each_time_is_started_once_a_minute() -> None:
    assert settings_of("gateway-agent.service")["RestartSec"] == "60"


def test_both_services_have_the_same_sandbox() -> None:
    one, other = (
        (EXAMPLES / name).read_text().partition("# --- What it may")[2] for name in SERVICES
    )
    assert one.partition("\n[Install]")[0].strip() == other.strip()
