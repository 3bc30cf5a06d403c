"""Whether an agent works on a state folder, for those who only look.

Responsible for telling it without touching the lock. To try the lock would be simpler, but could
turn away an agent that starts in that moment, and needs a right that other users do not have; the
kernel's list of locks is readable by everybody. An agent in a container is on that list for those
who see its processes. Called by `gateway.cli.agent` and `gateway.cli.agent_check`.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gateway.agent.durable import told
from gateway.agent.lock import NAME

if TYPE_CHECKING:
    from collections.abc import Iterable

_LOCKS: Final = Path("/proc/locks")


@dataclass(frozen=True, slots=True)
class Holder:
    """The process that holds the lock of a state folder."""

    pid: int

    def __str__(self) -> str:
        return f"process {self.pid}"


def holder_of(state_dir: Path) -> Holder | None:
    """Who works on a state folder now; None when nobody does. Repeatable, and disturbs nobody.

    Raises:
        DiskFault: it is not known.

    """
    path = state_dir / NAME
    with told("look at the lock", path):
        try:
            file = path.stat()
        except FileNotFoundError:
            return None
    with told("read", _LOCKS):
        lines = _LOCKS.read_text("ascii", "replace").splitlines()
    return find_holder(lines, file.st_dev, file.st_ino)


def find_holder(lines: Iterable[str], device: int, inode: int) -> Holder | None:
    """The holder of an exclusive `flock` on this file, in lines of `/proc/locks`. Pure.

    `1: FLOCK  ADVISORY  WRITE 1234 fe:00:2508153 0 EOF`; with `->` as its second word it waits.
    """
    for line in lines:
        words = line.split()
        if len(words) < 6 or words[1:2] + words[3:4] != ["FLOCK", "WRITE"]:
            continue
        try:
            major, minor, its_inode = words[5].split(":")
            pid = int(words[4])
            its_device = int(major, 16), int(minor, 16)
        except ValueError:
            continue
        # btrfs shows a file on another device than the lock is listed with; both are numbered 0:N.
        is_same = its_device == (os.major(device), os.minor(device)) or (
            its_device[0] == os.major(device) == 0
        )
        if its_inode == str(inode) and is_same:
            return Holder(pid)
    return None
