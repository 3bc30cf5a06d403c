"""All that the bench has started, on fewer cores."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.bench.cores import on_cores

_PARENT = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "print('here', flush=True); input()"])
child.wait()
"""


@pytest.mark.parametrize("count", [1, 2, 1_000])
def test_everything_runs_on_so_many_cores_and_on_all_of_them_afterwards(count: int) -> None:
    allowed = os.sched_getaffinity(0)
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", _PARENT], stdin=pipe, stdout=pipe) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"here\n"
        children = Path(f"/proc/{parent.pid}/task/{parent.pid}/children").read_text().split()
        pids = [os.getpid(), parent.pid, *map(int, children)]
        assert len(pids) == 3
        with on_cores(count):
            told = [os.sched_getaffinity(pid) for pid in pids]
        assert told == [set(sorted(allowed)[:count])] * 3
        assert [os.sched_getaffinity(pid) for pid in pids] == [allowed] * 3
        parent.communicate(b"\n")
