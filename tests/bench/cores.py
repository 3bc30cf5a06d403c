"""Fewer cores than the machine has, for all that a bench has started: how work grows with them.

Responsible for the bench's own threads, and for every thread of every process that came of it, the
servers of the lab too: with a core for the callers and Redis beside it, one gateway has more than
its own. Called by `ready`. Linux only.
"""

import contextlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.bench.watching import processes


def available() -> int:
    """How many there are for the bench."""
    return len(os.sched_getaffinity(0))


@contextmanager
def on_cores(count: int) -> Iterator[None]:
    """Have everything run on so many cores, or on all where there are no more."""
    allowed = sorted(os.sched_getaffinity(0))
    _bind(set(allowed[:count]))
    try:
        yield
    finally:
        _bind(set(allowed))


def _bind(cores: set[int]) -> None:
    """Also what is started from now on, which has the cores of whoever started it."""
    for pid in processes():
        for task in Path(f"/proc/{pid}/task").glob("*"):
            with contextlib.suppress(ProcessLookupError):  # ended meanwhile
                os.sched_setaffinity(int(task.name), cores)
