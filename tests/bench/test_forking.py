"""What ends the bench is neither lost in a fork nor heeded by what was forked."""

import subprocess
import sys

import pytest

_LIMIT_SECONDS = 60

_SIGNALLED_IN_ITS_FORK = """
import os, signal
from tests.bench.forking import forked_pool
from tests.lab.ending import AskedToEnd, end_on_signals

os.register_at_fork(after_in_parent=lambda: os.kill(os.getpid(), signal.SIG{name}))
end_on_signals()
try:
    with forked_pool(1):
        print("lost")
except AskedToEnd as asked:
    print(asked.exit_status)
"""

_SIGNALLED_TOGETHER = """
import os, signal
from tests.bench.forking import forked_pool
from tests.lab.ending import end_on_signals

end_on_signals()
with forked_pool(2) as pool:
    for process in pool._pool:
        os.kill(process.pid, signal.SIG{name})
    print(pool.map(abs, [-1, -2]))
"""


@pytest.mark.parametrize(("name", "status"), [("INT", 130), ("TERM", 143), ("HUP", 129)])
def test_a_signal_that_falls_into_a_fork_ends_the_bench_after_it(name: str, status: int) -> None:
    assert told_by(_SIGNALLED_IN_ITS_FORK.format(name=name)) == f"{status}\n"


@pytest.mark.parametrize("name", ["INT", "HUP"])
def test_who_was_forked_leaves_what_reaches_the_whole_group_to_its_starter(name: str) -> None:
    assert told_by(_SIGNALLED_TOGETHER.format(name=name)) == "[1, 2]\n"


def told_by(program: str) -> str:
    """What a program says; nothing must be said on standard error."""
    command = [sys.executable, "-c", program]
    ended = subprocess.run(
        command, capture_output=True, text=True, timeout=_LIMIT_SECONDS, check=True
    )
    assert ended.stderr == ""
    return ended.stdout
