"""Folders of another user, full disks and read-only ones: told by `status` and by `check`."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from gateway.agent.lineage import FileAccess, Lineage
from gateway.agent.lock import NAME
from gateway.agent.memory import Memories, Memory
from gateway.cli.agent import command
from gateway.client import Bundle
from tests.integration.agent_files.apart import Apart, become_nobody
from tests.integration.agent_files.conftest import HOSTNAME
from tests.lab import disks
from tests.lab.liar import Liar, Says

CONFIG = """\
state_dir = "above/state"
textfile = "metrics/agent.prom"

[gateway]
url = "{url}"
token_env = "TOKEN"

[[ownership]]
app_id = "relay"
hostname = "{hostname}"

[ownership.certificate]
deploy_hook = ["hooks/reload"]
"""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """That of a server which is no gateway, and says so at once."""
    with Liar() as server:
        server.answers(Says(b"Hello."))
        yield server.url


@pytest.fixture
def machine(open_folder: Path, bundles: list[Bundle], url: str) -> Path:
    """The folder of an agent that has served, with its configuration."""
    (open_folder / "agent.toml").write_text(CONFIG.format(url=url, hostname=HOSTNAME))
    (open_folder / "metrics").mkdir()
    hook = open_folder / "hooks" / "reload"
    hook.parent.mkdir()
    hook.write_text("#!/bin/sh\n")
    hook.chmod(0o755)
    state = open_folder / "above" / "state"
    Lineage(state / "certificates", HOSTNAME, FileAccess()).install(bundles[0])
    Memories(state).write(HOSTNAME, Memory(asked_at_ms=1))
    for folder in (state, state / "certificates"):
        (folder / NAME).touch(0o600)
    (open_folder / "answers").mkdir()
    return open_folder


def _run(config: Path, *arguments: str) -> list[Any]:
    ran = CliRunner().invoke(command, ["--config", str(config), *arguments])
    return [ran.exit_code, ran.stdout]


def _as_nobody(config: Path) -> dict[str, list[Any]]:
    _run(config, "status")
    _run(config, "check")  # nobody may be kept out of the libraries' folder
    become_nobody()
    return {name: _run(config, name, "--json") for name in ("status", "check")}


def _failures(answer: list[Any]) -> dict[str, str]:
    """What a check finds wrong, with what it would have done."""
    checks = json.loads(answer[1])["checks"]
    wrong = [each for each in checks if each["state"] == "failed" and each["part"] != "gateway"]
    return {f"{each['part']}: {each['finding']}": each["remedy"] for each in wrong}


@pytest.mark.parametrize(
    ("closed", "part", "words"),
    [
        ("above", "state_dir", "{closed} is closed to nobody."),
        ("above/state", "state_dir", "{closed} is closed to nobody."),
        ("above/state/certificates", "certificates_dir", "{closed} is closed to nobody."),
        ("above/state/certificates/archive", "certificates_dir", "{closed} is closed to nobody."),
        ("metrics", "textfile", "{closed} is closed to nobody."),
        ("hooks", HOSTNAME, "The deploy hook's program {closed}/reload is not seen: {closed} is "),
    ],
)
def test_folder_of_another_user_is_told(machine: Path, closed: str, part: str, words: str) -> None:
    (machine / closed).chmod(0o700)
    told = Apart(machine / "answers", _as_nobody, machine / "agent.toml").answer()
    status = json.loads(told["status"][1])
    assert told["status"][0] == 1
    assert len(status["ownerships"]) == 1
    assert told["check"][0] == 1
    expected = words.format(closed=machine / closed)
    assert [each for each in _failures(told["check"]) if each.startswith(f"{part}: {expected}")]


def _on_a_disk(machine: Path, spoil: Callable[[Path], None]) -> list[Any]:
    disks.have_own_mounts()
    spoil(machine)
    return _run(machine / "agent.toml", "check", "--json")


def _read_only(machine: Path) -> None:
    disks.make_read_only(machine / "above")


def _small(machine: Path) -> None:
    disks.mount_memory(machine / "above", "size=28k,mode=755")


def _few_names(machine: Path) -> None:
    disks.mount_memory(machine / "above", "size=2m,nr_inodes=5,mode=755")


@pytest.mark.parametrize(
    ("spoil", "said", "remedy"),
    [
        (_read_only, "{state} is on a disk that is mounted read-only.", "mount that for writing"),
        (_small, "28 KiB are free on the disk of {above}; 1024 are needed.", "make room on it"),
        (_few_names, "The disk of {above} takes 4 more files; 16 are needed.", "remove files"),
    ],
    ids=["read-only", "bytes", "names"],
)
def test_disk_that_takes_nothing_is_told_with_what_helps(
    machine: Path, spoil: Callable[[Path], None], said: str, remedy: str
) -> None:
    told = _failures(Apart(machine / "answers", _on_a_disk, machine, spoil).answer())
    above = machine / "above"
    for part in ("state_dir", "certificates_dir"):
        folder = above / "state" if part == "state_dir" else above / "state" / "certificates"
        expected = f"{part}: {said.format(state=folder, above=above)}"
        assert told[expected].startswith(remedy)
    assert not [each for each in told.values() if "chown" in each]
