"""Reads what the kernel says of a process: memory, descriptors, threads, processor time.

Must not: judge. Linux only, as the lab is. Called by `soak` and `calls`.
"""

import os
import time
from pathlib import Path

from tests.bench.judging import Sample

_TICKS = os.sysconf("SC_CLK_TCK")
_AFTER_COMMAND = 2
"""The third field of `stat` comes first after the command's name, which may hold anything."""

_UTIME, _STIME = 13 - _AFTER_COMMAND, 14 - _AFTER_COMMAND


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


def cpu_seconds(pid: int) -> float:
    """How much processor time a process has used so far, in user space and in the kernel."""
    fields = (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()
    return (int(fields[_UTIME]) + int(fields[_STIME])) / _TICKS
