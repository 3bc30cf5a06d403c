"""Reads what the kernel says of a process: memory, descriptors, threads, processor time.

Must not: judge. Linux only, as the lab is. Called by the benches.
"""

import contextlib
import os
import time
from pathlib import Path

from tests.bench.judging import Sample

_TICKS = os.sysconf("SC_CLK_TCK")
_PARENT, _UTIME, _STIME, _CSTIME = 1, 11, 12, 14
"""Places behind the program's name in `stat`, which has the times of ended children as well."""


def look_at(pid: int) -> Sample:
    """One sample of a running process."""
    folder = Path("/proc") / str(pid)
    status = dict(line.split(":", 1) for line in (folder / "status").read_text().splitlines())
    return Sample(
        at=time.monotonic(),
        rss_bytes=int(status["VmRSS"].split()[0]) * 1024,
        descriptors=len(os.listdir(folder / "fd")),
        threads=int(status["Threads"]),
        cpu_seconds=cpu_seconds(pid),
    )


def cpu_seconds(pid: int, *, with_ended_children: bool = False) -> float:
    """How much processor time a process has used so far, in user space and in the kernel.

    `with_ended_children`: and those of its children that it has waited for.
    """
    _, fields = _stat(pid)
    times = fields[_UTIME : _CSTIME + 1] if with_ended_children else fields[_UTIME : _STIME + 1]
    return sum(map(int, times)) / _TICKS


def program(pid: int) -> str:
    """What the kernel calls the program that a process runs."""
    return _stat(pid)[0]


def processes() -> list[int]:
    """The bench's own process, and every one that came of it and is there."""
    parents = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # ended meanwhile
            parents[int(folder.name)] = int(_stat(int(folder.name))[1][_PARENT])
    found = [os.getpid()]
    for pid in found:
        found += [child for child, parent in parents.items() if parent == pid]
    return found


def other_benches() -> list[int]:
    """The processes of `scripts/bench` that are not this one, nor came of it."""
    own = set(processes())
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # ended meanwhile, or not to be looked at
            words = (folder / "cmdline").read_bytes().split(b"\0")
            if words[1:3] == [b"-m", b"tests.bench"] and int(folder.name) not in own:
                found.append(int(folder.name))
    return sorted(found)


def _stat(pid: int) -> tuple[str, list[str]]:
    """The program's name, which may hold anything, and the fields behind it."""
    name, _, rest = Path(f"/proc/{pid}/stat").read_text().rpartition(")")
    return name.partition("(")[2], rest.split()
