"""`gateway agent status` for another user of the machine, such as monitoring."""

import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from gateway.agent.lineage import FileAccess, Lineage
from gateway.agent.lock import agent_lock
from gateway.agent.memory import Memories, Memory
from gateway.cli.agent import command
from gateway.client import Bundle
from tests.integration.agent_files.apart import Apart, become_nobody
from tests.integration.agent_files.conftest import HOSTNAME

CONFIG = f"""\
state_dir = "."

[gateway]
url = "https://gateway.example.com"
token_file = "token"

[[ownership]]
app_id = "relay"
hostname = "{HOSTNAME}"

[ownership.certificate]
combined = true
"""


def _status(config: Path) -> list[Any]:
    arguments = ["--config", str(config), "status"]
    CliRunner().invoke(command, arguments)  # nobody may be kept out of the libraries' folder
    become_nobody()
    ran = CliRunner().invoke(command, arguments)
    return [ran.exit_code, ran.output]


@pytest.fixture
def installed(open_folder: Path, bundles: list[Bundle]) -> Path:
    """The agent's folder, with all as it should be."""
    (open_folder / "agent.toml").write_text(CONFIG)
    lineage = Lineage(open_folder / "certificates", HOSTNAME, FileAccess(combined=True))
    lineage.install(bundles[0])
    now_ms = time.time_ns() // 1_000_000
    Memories(open_folder).write(HOSTNAME, Memory(asked_at_ms=now_ms, renew_after_ms=now_ms))
    (open_folder / "answers").mkdir()
    return open_folder


def as_nobody(folder: Path) -> tuple[int, str]:
    code, output = Apart(folder / "answers", _status, folder / "agent.toml").answer()
    return code, output


def test_user_who_may_not_read_the_key_sees_that_all_is_well(installed: Path) -> None:
    code, output = as_nobody(installed)
    assert "the key cannot be read by this user" in output
    assert "valid until" in output
    assert code == 0


def test_user_who_may_not_take_the_lock_sees_who_holds_it(installed: Path) -> None:
    with agent_lock(installed):
        pid = (installed / "agent.lock").read_text().strip()
        _, output = as_nobody(installed)
    assert output.splitlines()[-1] == f"Agent: running, process {pid}."


@pytest.mark.parametrize("name", ["cert.pem", "chain.pem"])
def test_public_file_that_is_damaged_is_told_to_that_user_as_well(
    installed: Path, name: str
) -> None:
    (installed / "certificates" / "live" / HOSTNAME / name).write_text("nothing")
    code, output = as_nobody(installed)
    assert "not usable: " in output
    assert code == 1
