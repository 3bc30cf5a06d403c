"""Whether an agent works on a state folder, for those who only look.

Responsible for telling it without touching the lock. To try the lock would be simpler, but could
turn away an agent that starts in that moment, and needs a right that other users do not have; the
kernel's list of locks is readable by everybody. It leaves out those of processes that the reader
does not see, so within a PID namespace of its own nobody knows that none runs. Called by
`gateway.cli.agent` and `gateway.cli.agent_check`.

The list names the device of the file system, which is that of the mount. A file's own device is
another one where a file system has several (btrfs), and a number for every tmpfs is not enough to
tell one from the next: so the mount is looked up.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gateway.agent.durable import DiskFault, told
from gateway.agent.lock import NAME

if TYPE_CHECKING:
    from collections.abc import Iterable

_LOCKS: Final = Path("/proc/locks")
_MOUNTS: Final = Path("/proc/self/mountinfo")
_PID_NAMESPACE: Final = Path("/proc/self/ns/pid")
_WHOLE_MACHINE: Final = "pid:[4026531836]"  # the kernel's own number for the first namespace


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
            # Needs no right to read it, and waits for nobody.
            descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        try:
            inode = os.fstat(descriptor).st_ino
            mount = mount_in(Path(f"/proc/self/fdinfo/{descriptor}").read_text())
        finally:
            os.close(descriptor)
    with told("read", _MOUNTS):
        device = device_of(_MOUNTS.read_text("utf-8", "replace").splitlines(), mount)
    if device is None:
        raise DiskFault(f"the mount of {path} is not among those in {_MOUNTS}")
    with told("read", _LOCKS):
        lines = _LOCKS.read_text("ascii", "replace").splitlines()
    holder = find_holder(lines, device, inode)
    if holder is None and not _sees_all():
        raise DiskFault("this process sees only those of its own PID namespace")
    return holder


def _sees_all() -> bool:
    with told("read", _PID_NAMESPACE):
        return str(_PID_NAMESPACE.readlink()) == _WHOLE_MACHINE


def mount_in(fdinfo: str) -> str:
    """The number of a file's mount, in its `/proc/self/fdinfo`; empty without one. Pure."""
    lines = (line.split() for line in fdinfo.splitlines())
    return next((words[1] for words in lines if words[:1] == ["mnt_id:"]), "")


def device_of(mountinfo: Iterable[str], mount: str) -> tuple[int, int] | None:
    """Major and minor number of a mount, in lines of `/proc/self/mountinfo`. Pure.

    `29 1 0:25 / /srv rw - tmpfs …`: the mount, the one above it, the device.
    """
    for line in mountinfo:
        words = line.split(maxsplit=3)
        if words[:1] == [mount] and len(words) > 2:
            major, _, minor = words[2].partition(":")
            return int(major), int(minor)
    return None


def find_holder(lines: Iterable[str], device: tuple[int, int], inode: int) -> Holder | None:
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
        if its_inode == str(inode) and its_device == device:
            return Holder(pid)
    return None
