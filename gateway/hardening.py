"""Keeps what a process has in memory out of files: it held private keys and tokens.

Responsible for core dumps, by two means, since each has its gaps: no core file by the resource
limit (which a handler named by `kernel.core_pattern` does not heed), and none at all by the flag
`dumpable` (which the children of the process do not inherit, while they do inherit the limit).
Linux only; elsewhere nothing happens, and nothing that fails here keeps a gateway from starting.

A process that is not dumpable belongs to root under /proc: another process of the same user reads
neither its memory nor its environment, cannot attach to it, and does not see its open files either,
so a second gateway that finds its port in use names this one only when it runs as root.

Called by each command of the server before a secret is read or made: by `gateway.cli.session` for
most of them.
"""

from __future__ import annotations

import contextlib
import ctypes
import resource
import sys
from typing import Final

_PR_SET_DUMPABLE: Final = 4
_NO: Final = 0


def forbid_dumps() -> None:
    """From now on nothing writes this process's memory to a file. May be repeated."""
    # A sandbox may refuse the call; systemd's LimitCORE=0 has done it then.
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, _NO, 0, 0, 0)
