"""A seam around every call that changes a disk or starts a process: there it ends, or is refused.

Responsible for: counting the calls of a process, and at the chosen one sending it SIGKILL or having
the call fail. Must not: know who makes the calls; whatever is added to the product is passed too.
Called by: the walks over what the agent does on disk.

A kill is the real thing. A refusal is a fake, for what no disk can be made to do at a chosen call:
tests on real full and read-only disks are in `tests/integration/agent_files`.
"""

import errno
import functools
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

CHANGING = (
    *("open", "mkdir", "symlink", "rename", "replace", "unlink", "rmdir"),
    *("chmod", "fchmod", "fchown", "write", "pwrite", "ftruncate", "fsync"),
)
"""What may change a disk, of what Python calls by `os`; `open` if it is to write. Between two of
them nothing changes."""

LOOKING = ("listdir", "scandir", "readlink", "read", "fstat")

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT

Side = Literal["before", "after"]


@dataclass(frozen=True, order=True)
class Point:
    """One side of the `number`th call of a process; `call` is what it was in an undisturbed run."""

    number: int
    call: str
    side: Side

    def __str__(self) -> str:
        return f"{self.side} {self.call} ({self.number})"


@dataclass
class Passing:
    """The calls that were made within `passing`, in order."""

    calls: list[str] = field(default_factory=list)

    @property
    def points(self) -> list[Point]:
        """Both sides of each."""
        sides: tuple[Side, Side] = ("before", "after")
        return [
            Point(number, call, side) for number, call in enumerate(self.calls) for side in sides
        ]


@contextmanager
def passing(
    killed_at: Point | None = None, refused_at: int | None = None, *, also: tuple[str, ...] = ()
) -> Iterator[Passing]:
    """Count the calls of `CHANGING` and `also`, and of `Popen`, made in this block.

    With `also` every `open` counts.
    """
    seen = Passing()

    def reach(number: int, side: Side) -> None:
        if killed_at is not None and (killed_at.number, killed_at.side) == (number, side):
            signal.pthread_kill(threading.get_ident(), signal.SIGKILL)

    def around(call: Callable[..., Any], name: str) -> Callable[..., Any]:
        @functools.wraps(call)
        def passed(*arguments: Any, **named: Any) -> Any:
            if name == "open" and not (also or arguments[1] & _WRITING):
                return call(*arguments, **named)
            number = len(seen.calls)
            seen.calls.append(name)
            if number == refused_at:
                raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))
            reach(number, "before")
            try:
                return call(*arguments, **named)
            finally:
                reach(number, "after")

        return passed

    before = {name: getattr(os, name) for name in (*CHANGING, *also)}
    start = subprocess.Popen.__init__
    for name, call in before.items():
        setattr(os, name, around(call, name))
    setattr(subprocess.Popen, "__init__", around(start, "Popen"))  # noqa: B010 (see dying.py)
    try:
        yield seen
    finally:
        for name, call in before.items():
            setattr(os, name, call)
        setattr(subprocess.Popen, "__init__", start)  # noqa: B010
