"""A gateway as a process of its own, not forked: its first moments, and what a crash leaves."""

import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.integration.running.site import Site, Systemd
from tests.lab.ports import LOOPBACK, free_port
from tests.lab.process import find_program, wait_until

LIMIT_SECONDS = 30

# Answers the flag and the limit, then whether it may still see its own open files.
PROTECTED = """
import ctypes, os, resource
from gateway.hardening import forbid_dumps
forbid_dumps()
print(ctypes.CDLL(None).prctl(3, 0, 0, 0, 0), *resource.getrlimit(resource.RLIMIT_CORE))
print(os.path.exists("/proc/self/fd/1"))
"""

# Carries a command out, then answers the same of itself.
ENDS_PROTECTED = """
import ctypes, resource, sys
from gateway.cli import main
try:
    main(sys.argv[1:])
except SystemExit:
    pass
print(ctypes.CDLL(None).prctl(3, 0, 0, 0, 0), *resource.getrlimit(resource.RLIMIT_CORE))
"""


@dataclass(frozen=True)
class Crash:
    """A gateway's life: what it told systemd, how it ended, and what was left in its folder."""

    told: list[dict[str, str]]
    code: int
    status: int
    left: list[str]


def minds_hangups(pid: int) -> bool:
    """Whether SIGHUP does not end the process: it holds it back, or hears it already."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    masks = [int(line.split()[1], 16) for line in lines if line.startswith(("SigBlk:", "SigCgt:"))]
    return any(mask >> (signal.SIGHUP - 1) & 1 for mask in masks)


@pytest.fixture(scope="module")
def crash(tmp_path_factory: pytest.TempPathFactory, one_site: Site) -> Crash:
    """It is told to reload before it has read its configuration, and crashes once that is done."""
    folder = tmp_path_factory.mktemp("own")
    systemd = Systemd(folder)
    # It may leave a core as far as its parent is concerned.
    command = [find_program("prlimit", "util-linux"), "--core=unlimited", "--"]
    command += [str(Path(sys.executable).with_name("gateway")), "serve"]
    command += ["--config", str(one_site.config.config_file)]
    own = {**systemd.environ, "GATEWAY_HTTP__LISTEN": f"{LOOPBACK}:{free_port()}"}
    with (folder / "log").open("wb") as log:
        child = subprocess.Popen(command, cwd=folder, env={**os.environ, **own}, stderr=log)
    try:
        wait_until(lambda: minds_hangups(child.pid), "it minds signals")
        child.send_signal(signal.SIGHUP)
        told = systemd.heard_until("RELOADING") + systemd.heard_until("READY")
        child.send_signal(signal.SIGABRT)
        ended = os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    finally:
        child.kill()
        child.wait()
        systemd.close()
    assert ended is not None
    left = sorted(path.name for path in folder.iterdir())
    return Crash(told, ended.si_code, ended.si_status, left)


def test_reload_asked_for_while_it_starts_is_carried_out(crash: Crash) -> None:
    words = [name for each in crash.told for name in ("READY", "RELOADING") if name in each]
    # The first READY is the start's: in the middle of the reload it would seem to be that one's.
    assert words == ["READY", "RELOADING", "READY"]


def test_gateway_that_crashes_leaves_no_core(crash: Crash) -> None:
    # The kernel says with the code whether it made one, for a file or for whoever it pipes them to.
    assert (crash.code, crash.status) == (os.CLD_KILLED, signal.SIGABRT)
    if not Path("/proc/sys/kernel/core_pattern").read_text().startswith(("/", "|")):
        assert crash.left == ["log", "notify"]


@pytest.mark.parametrize("command", [("check", "--config"), ("init",)])
def test_commands_that_start_nothing_leave_no_core_either(
    tmp_path: Path, command: tuple[str, ...]
) -> None:
    # The one finds no file there, the other no folder that it may make: neither gets far.
    where = tmp_path / "file"
    where.touch()
    done = subprocess.run(
        [sys.executable, "-c", ENDS_PROTECTED, *command, str(where / "there")],
        check=True,
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
    )
    assert done.stdout.splitlines()[-1] == "0 0 0"


def test_process_is_not_dumpable_and_has_no_room_for_a_core() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROTECTED],
        check=True,
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
    )
    assert done.stdout.splitlines() == ["0 0 0", "True"]
