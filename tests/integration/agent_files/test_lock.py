"""One agent at a time, whatever becomes of the one that holds the lock."""

import os
import pwd
import shutil
import signal
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import gateway.agent.clocks
from gateway.agent.clocks import Clocks, Pace
from gateway.agent.durable import DiskFault
from gateway.agent.hook import Hook
from gateway.agent.lock import Locked, LockLost, WrongUser, agent_lock
from gateway.cli.agent import command
from tests.integration.agent_files.apart import NOBODY, Apart
from tests.lab.forks import run_command
from tests.lab.process import wait_until


def _hold(state_dir: Path, held: Path) -> None:
    with agent_lock(state_dir):
        held.touch()
        time.sleep(600)


@pytest.fixture
def state_dir(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture
def holder(tmp_path: Path, state_dir: Path) -> Apart:
    apart = Apart(tmp_path, _hold, state_dir, tmp_path / "held")
    wait_until((tmp_path / "held").exists, "the lock is held")
    return apart


def test_second_agent_is_refused_with_the_first_ones_pid(holder: Apart, state_dir: Path) -> None:
    with pytest.raises(Locked) as refused, agent_lock(state_dir):
        pass
    assert str(refused.value) == (
        f"another agent is running: process {holder.pid} holds {state_dir}/agent.lock"
    )
    holder.kill()


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGTERM])
def test_lock_is_free_when_its_holder_has_died(
    holder: Apart, state_dir: Path, ending: signal.Signals
) -> None:
    os.kill(holder.pid, ending)
    assert holder.ended() == -ending
    with agent_lock(state_dir):
        assert (state_dir / "agent.lock").read_text() == f"{os.getpid()}\n"


def test_lock_is_free_after_its_use(state_dir: Path) -> None:
    for _ in range(2):
        with agent_lock(state_dir):
            pass


def test_lock_is_free_after_a_fault(state_dir: Path) -> None:
    with pytest.raises(KeyError), agent_lock(state_dir):
        raise KeyError
    with agent_lock(state_dir):
        pass


def test_pid_of_a_dead_holder_locks_nothing_out(state_dir: Path) -> None:
    state_dir.mkdir()
    (state_dir / "agent.lock").write_text(f"{os.getpid()}\n")
    with agent_lock(state_dir):
        pass


def test_pid_is_not_read_from_what_is_none(holder: Apart, state_dir: Path) -> None:
    (state_dir / "agent.lock").write_text("\x1b[31mred")
    with pytest.raises(Locked, match="another process holds"), agent_lock(state_dir):
        pass
    holder.kill()


def test_lock_is_opened_by_nobody_else(state_dir: Path) -> None:
    for _ in range(2):
        with agent_lock(state_dir):
            assert (state_dir / "agent.lock").stat().st_mode & 0o777 == 0o600
        # As an older agent left it.
        (state_dir / "agent.lock").chmod(0o644)


def test_link_in_the_locks_place_is_not_followed(tmp_path: Path, state_dir: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    state_dir.mkdir()
    (state_dir / "agent.lock").symlink_to(tmp_path / "mine")
    fault = r"/agent\.lock: Too many levels of symbolic links$"
    with pytest.raises(DiskFault, match=fault), agent_lock(state_dir):
        pass
    assert (tmp_path / "mine").read_text() == "mine"


def test_named_pipe_in_the_locks_place_is_told(state_dir: Path) -> None:
    state_dir.mkdir()
    os.mkfifo(state_dir / "agent.lock")
    with pytest.raises(DiskFault, match="is no file"), agent_lock(state_dir):
        pass


def test_second_agent_for_the_same_certificates_is_refused(tmp_path: Path) -> None:
    one, other, certificates = (tmp_path / name for name in ("one", "other", "certificates"))
    with agent_lock(one, certificates):
        with pytest.raises(Locked, match=f"holds {certificates}"), agent_lock(other, certificates):
            pass
        # What it took before it was refused is free.
        with agent_lock(other):
            pass


def test_one_folder_under_two_names_is_locked_once(tmp_path: Path, state_dir: Path) -> None:
    state_dir.mkdir()
    (tmp_path / "certificates").symlink_to(state_dir)
    with agent_lock(state_dir, tmp_path / "certificates"):
        pass


@pytest.mark.parametrize(
    "displace",
    [
        lambda folder: folder.rename(folder.with_name("moved")),
        shutil.rmtree,
        lambda folder: (folder / "agent.lock").unlink(),
        lambda folder: shutil.copy(folder / "agent.lock", folder / "a").replace(
            folder / "agent.lock"
        ),
    ],
    ids=["moved", "removed", "unlocked", "replaced"],
)
@pytest.mark.parametrize("displaced", ["state", "certificates"])
def test_lock_that_keeps_nobody_out_any_more_is_noticed(
    tmp_path: Path, state_dir: Path, displaced: str, displace: Callable[[Path], Any]
) -> None:
    with agent_lock(state_dir, tmp_path / "certificates") as held:
        held.demand()
        displace(tmp_path / displaced)
        with pytest.raises(LockLost, match=f"^{tmp_path / displaced}/agent.lock is not the file"):
            held.demand()


def test_lock_of_a_folder_that_has_another_name_too_is_no_other(
    tmp_path: Path, state_dir: Path
) -> None:
    state_dir.mkdir()
    (tmp_path / "other").symlink_to(state_dir)
    with agent_lock(tmp_path / "other") as held:
        held.demand()


CONFIG = """\
state_dir = "state"

[gateway]
url = "https://127.0.0.1:1"
token_env = "TOKEN"

[[ownership]]
app_id = "a"
hostname = "a.example.com"

[ownership.record]
value = "198.51.100.85"
"""


def _stay(config: Path) -> list[Any]:
    """An agent that looks every 50 ms in place of every minute, until it ends by itself."""
    quick: Any = partial(Clocks, pace=Pace(look_ms=50))
    gateway.agent.clocks.Clocks = quick  # type: ignore[misc]
    ran = CliRunner().invoke(command, ["--config", str(config)])
    return [ran.exit_code, ran.output]


def test_agent_whose_folder_is_moved_away_ends_with_a_sentence(tmp_path: Path) -> None:
    config, state = tmp_path / "agent.toml", tmp_path / "state"
    config.write_text(CONFIG)
    staying = Apart(tmp_path, _stay, config)
    wait_until((state / "state" / "a.example.com.json").exists, "the agent has begun")
    state.rename(tmp_path / "moved")
    code, output = staying.answer()
    assert code == 1
    assert f"{state}/agent.lock is not the file that this agent has locked" in output
    assert "Traceback" not in output


@pytest.fixture
def service_folder(state_dir: Path) -> Path:
    """A state folder that belongs to a user of its own, as that of the units does."""
    state_dir.mkdir()
    os.chown(state_dir, NOBODY, NOBODY)
    return state_dir


def test_root_leaves_nothing_in_another_users_folder(service_folder: Path) -> None:
    user = pwd.getpwuid(NOBODY).pw_name
    with pytest.raises(WrongUser) as refused, agent_lock(service_folder):
        pass
    assert str(refused.value) == (
        f"{service_folder} belongs to the user {user}, who could not read what root writes there: "
        f"run this as that user, with sudo -u {user}"
    )
    assert os.listdir(service_folder) == []


def test_user_without_a_name_is_told_by_its_number(service_folder: Path) -> None:
    os.chown(service_folder, NOBODY - 1, -1)
    with (
        pytest.raises(WrongUser, match=f"with sudo -u '#{NOBODY - 1}'"),
        agent_lock(service_folder),
    ):
        pass


def test_command_ends_with_2_where_root_is_the_wrong_user(
    tmp_path: Path, service_folder: Path
) -> None:
    config = tmp_path / "agent.toml"
    config.write_text(
        f'state_dir = "{service_folder}"\n'
        f'[gateway]\nurl = "https://127.0.0.1"\ntoken_file = "{tmp_path}/token"\n'
        '[[ownership]]\napp_id = "a"\nhostname = "a.example.com"\n'
        '[ownership.record]\nvalue = "198.51.100.85"\n'
    )
    ended = run_command(["agent", "--config", str(config), "--once"], os.environ, 30)
    assert ended.returncode == 2
    assert "sudo -u" in ended.stderr
    assert os.listdir(service_folder) == []


def test_folder_in_the_locks_place_is_told(state_dir: Path) -> None:
    (state_dir / "agent.lock").mkdir(parents=True)
    with pytest.raises(DiskFault, match=r"/agent\.lock: Is a directory$"), agent_lock(state_dir):
        pass


async def test_lock_is_not_held_by_what_a_hook_leaves_running(
    tmp_path: Path, state_dir: Path
) -> None:
    hook = Hook(("/bin/sh", "-c", "sleep 600 >/dev/null 2>&1 & echo $!"), 10)
    with agent_lock(state_dir):
        result = await hook.run({})
    try:
        with agent_lock(state_dir):
            pass
    finally:
        os.kill(int(result.output), signal.SIGKILL)
