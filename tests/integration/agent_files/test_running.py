"""Who holds the lock of a state folder, by the kernel's own list."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from gateway.agent.lock import NAME, agent_lock
from gateway.agent.running import holder_of
from tests.integration.agent_files.apart import Apart
from tests.lab import disks
from tests.lab.process import find_program

LIMIT_SECONDS = 30.0

_ASKING = """
import pathlib, sys
from gateway.agent.durable import DiskFault
from gateway.agent.running import holder_of
try:
    print(holder_of(pathlib.Path(sys.argv[1])))
except DiskFault as fault:
    print(fault)
"""


def _in_two_memories(folder: Path) -> dict[str, Any]:
    """Two disks in memory, and in each a lock with the same number; one of them is held."""
    disks.have_own_mounts()
    held, free = folder / "held", folder / "free"
    for each in (held, free):
        each.mkdir()
        disks.mount_memory(each, "size=1m,mode=755")
        (each / NAME).touch(0o600)
    with agent_lock(held):
        holders = [None if one is None else one.pid for one in map(holder_of, (held, free))]
    numbers = {(each / NAME).stat().st_ino for each in (held, free)}
    return {"holders": holders, "pid": os.getpid(), "numbers": len(numbers)}


def test_lock_with_the_same_number_on_another_disk_is_told_apart(tmp_path: Path) -> None:
    seen = Apart(tmp_path, _in_two_memories, tmp_path).answer()
    assert seen["numbers"] == 1
    assert seen["holders"] == [seen["pid"], None]


def _ask_in_a_namespace_of_its_own(state_dir: Path) -> str:
    """What a process says that sees no other."""
    unshare = find_program("unshare", "util-linux")
    alone = [unshare, "--map-root-user", "--pid", "--fork", "--mount-proc"]
    asked = subprocess.run(
        [*alone, sys.executable, "-c", _ASKING, str(state_dir)],
        capture_output=True,
        text=True,
        check=True,
        timeout=LIMIT_SECONDS,
    )
    return asked.stdout.strip()


def test_who_does_not_see_all_processes_does_not_say_that_none_runs(tmp_path: Path) -> None:
    with agent_lock(tmp_path):
        told = _ask_in_a_namespace_of_its_own(tmp_path)
    assert told == "this process sees only those of its own PID namespace"
