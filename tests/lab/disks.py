"""Disks that are small, full or read-only, for one process only; and folders without a disk.

Responsible for: mounts that nobody else sees and that end with their process, however it ends.
Must not: mount in a process that goes on afterwards, as it cannot leave its own mounts.
Called by: what tests of files run in a process of its own (`tests.lab.forks`).

As root a process gets mounts of its own; anybody else needs a kernel that lets users have
namespaces, and is root within one. Where neither is allowed it fails.
"""

import ctypes
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.lab.process import LabFault

_CLONE_NEWNS = 0x00020000
_CLONE_NEWUSER = 0x10000000
_MS_RDONLY = 1
_MS_REMOUNT = 32
_MS_BIND = 4096
_MS_REC = 16384
_MS_PRIVATE = 1 << 18

_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 (mkdtemp makes the folder's name)

_libc = ctypes.CDLL(None, use_errno=True)


@contextmanager
def open_folder(*, in_memory: bool = False) -> Iterator[Path]:
    """A temporary folder that every user may enter, unlike pytest's.

    In memory, where the machine has a file system there, thousands of syncs cost nothing.
    """
    is_there = in_memory and os.access(_SHARED_MEMORY, os.W_OK)
    folder = Path(tempfile.mkdtemp(prefix="gateway-", dir=_SHARED_MEMORY if is_there else None))
    try:
        folder.chmod(0o755)
        yield folder
    finally:
        shutil.rmtree(folder)


def have_own_mounts() -> None:
    """Give this process, which must have one thread only, mounts that nobody else sees.

    Raises: LabFault where that is not allowed.
    """
    uid, gid = os.geteuid(), os.getegid()
    flags = _CLONE_NEWNS if uid == 0 else _CLONE_NEWNS | _CLONE_NEWUSER
    _done(_libc.unshare(flags), "have mounts of its own")
    if uid != 0:
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"0 {uid} 1")
        Path("/proc/self/gid_map").write_text(f"0 {gid} 1")
    _mount("none", Path("/"), "", _MS_REC | _MS_PRIVATE)


def mount_memory(folder: Path, options: str) -> None:
    """Put a disk in memory at a folder; `options` are tmpfs' own (`size=64k,nr_inodes=20`)."""
    _mount("tmpfs", folder, "tmpfs", 0, options)


def resize_memory(folder: Path, options: str) -> None:
    """Change the size of a disk that `mount_memory` put there; its content stays."""
    _mount("tmpfs", folder, "tmpfs", _MS_REMOUNT, options)


def make_read_only(folder: Path) -> None:
    """Let nothing be written below a folder, not even by root."""
    _mount(str(folder), folder, "", _MS_BIND)
    _mount("none", folder, "", _MS_REMOUNT | _MS_BIND | _MS_RDONLY)


def _mount(source: str, folder: Path, kind: str, flags: int, options: str = "") -> None:
    arguments = [os.fsencode(each) for each in (source, folder, kind)]
    answer = _libc.mount(*arguments, ctypes.c_ulong(flags), os.fsencode(options) or None)
    _done(answer, f"mount on {folder} ({options or flags})")


def _done(answer: int, deed: str) -> None:
    if answer != 0:
        reason = os.strerror(ctypes.get_errno())
        raise LabFault(f"this process may not {deed}: {reason}; root may, or a user namespace")
