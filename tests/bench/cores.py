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

_PROC = Path("/proc")


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
    for pid in _processes():
        for task in _PROC.joinpath(str(pid), "task").glob("*"):
            with contextlib.suppress(ProcessLookupError):  # ended meanwhile
                os.sched_setaffinity(int(task.name), cores)


def _processes() -> list[int]:
    """The bench and all that came of it."""
    parents = {}
    for folder in _PROC.glob("[0-9]*"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            # The name in brackets may hold anything.
            rest = folder.joinpath("stat").read_text().rpartition(")")[2].split()
            parents[int(folder.name)] = int(rest[1])
    found = [os.getpid()]
    for pid in found:
        found += [child for child, parent in parents.items() if parent == pid]
    return found
