"""What the kernel tells of processes."""

import os
import subprocess
import sys
from pathlib import Path

from tests.bench.watching import other_benches
from tests.lab.process import wait_until

_ORPHAN = 'exec 3<&0; "$0" -m tests.bench <&3 & echo $!'
"""It goes on when the shell has ended, until its standard input does."""


def test_another_bench_is_seen_as_long_as_it_runs(tmp_path: Path) -> None:
    """A stand-in of the same name, which only waits."""
    package = tmp_path / "tests" / "bench"
    package.mkdir(parents=True)
    (package / "__main__.py").write_text("input()")
    pipe = subprocess.PIPE
    environ = {**os.environ, "PYTHONPATH": str(tmp_path)}
    command = ["sh", "-c", _ORPHAN, sys.executable]
    with subprocess.Popen(
        command, stdin=pipe, stdout=pipe, text=True, cwd=tmp_path, env=environ
    ) as shell:
        assert shell.stdin is not None
        assert shell.stdout is not None
        pid = int(shell.stdout.readline())
        shell.wait()
        wait_until(lambda: pid in other_benches(), "it is seen")
        shell.stdin.write("\n")
        shell.stdin.close()
        wait_until(lambda: pid not in other_benches(), "it is gone")
    assert os.getpid() not in other_benches()
