"""One agent at a time for a state folder and for a folder of certificates.

Responsible for locks that the kernel gives up with their holder, however that ends, for saying who
holds one, and for keeping root from writing what the folder's own user could not read. Must not:
judge by the pid in the file, which outlives its writer; it is for people only. Called by
`gateway.cli.agent`, around a whole run.

The file stays when the lock is given up: if it were removed, two agents could each hold a lock on
a file of that name. Nobody else may open it: a lock can be taken by who may only read.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pwd
import stat
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Final

from gateway.agent.durable import DiskFault, make_folder, told

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NAME: Final = "agent.lock"
_MODE: Final = 0o600
_LONGEST_PID: Final = 20
# Not inherited by the deploy hook: what that leaves running would go on holding the lock.
_OPENING: Final = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


class Locked(Exception):
    """Another agent works on the same folder; the text names it."""


class LockLost(Exception):
    """The lock that is held keeps nobody out any more; one sentence."""


class WrongUser(Exception):
    """Root would leave files here that the user whose folder it is cannot read; one sentence."""


class Held:
    """The locks that an agent holds: their files, by descriptor and path."""

    def __init__(self) -> None:
        self._files: dict[int, Path] = {}

    def add(self, descriptor: int, path: Path) -> None:
        """Take in a lock that was taken."""
        self._files[descriptor] = path

    def demand(self) -> None:
        """Waits for the disk.

        Raises:
            LockLost: a file is no longer at its path, so that another agent may have begun there.

        """
        for descriptor, path in self._files.items():
            if not _is_at(path, descriptor):
                raise LockLost(
                    f"{path} is not the file that this agent has locked: it was moved or replaced "
                    "while the agent ran"
                )


def _is_at(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.lstat(), os.fstat(descriptor))
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True  # nobody knows


@contextmanager
def agent_lock(state_dir: Path, certificates_dir: Path | None = None) -> Iterator[Held]:
    """Hold the locks of these folders, which are made if they are missing. Does not wait.

    Two configurations may name one folder of certificates, and each its own state.

    Raises:
        WrongUser: this is root, and the state folder another user's; nothing was made.
        Locked: another agent holds one of them.
        DiskFault: a lock's file cannot be made or opened.

    """
    _refuse_root(state_dir)
    folders = [state_dir] if certificates_dir is None else [state_dir, certificates_dir]
    held = Held()
    with ExitStack() as stack:
        seen = set()
        for folder in folders:
            make_folder(folder)
            with told("look at the folder", folder):
                status = folder.stat()
            # One folder may have two names, and a second lock on it would be refused.
            if (status.st_dev, status.st_ino) not in seen:
                seen.add((status.st_dev, status.st_ino))
                held.add(stack.enter_context(_lock(folder / NAME)), folder / NAME)
        yield held


def _refuse_root(state_dir: Path) -> None:
    if os.geteuid() != 0:
        # Another user is kept out by the lock's mode.
        return
    with told("look at the folder", state_dir):
        try:
            owner = state_dir.stat().st_uid
        except (FileNotFoundError, NotADirectoryError):
            return
    if owner != 0:
        name = _name_of(owner)
        raise WrongUser(
            f"{state_dir} belongs to the user {name or owner}, who could not read what root writes "
            f"there: run this as that user, with sudo -u " + (name or f"'#{owner}'")
        )


def _name_of(user: int) -> str | None:
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return None


@contextmanager
def _lock(path: Path) -> Iterator[int]:
    with told("open the lock", path):
        descriptor = os.open(path, _OPENING, _MODE)
    try:
        _close_to_others(descriptor, path)
        _take(descriptor, path)
        yield descriptor
    finally:
        os.close(descriptor)


def _close_to_others(descriptor: int, path: Path) -> None:
    with told("set the mode of", path):
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            raise DiskFault(f"{path} is no file and in the way: remove it")
        if stat.S_IMODE(mode) != _MODE:
            os.fchmod(descriptor, _MODE)


def _take(descriptor: int, path: Path) -> None:
    with told("take the lock", path):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = _holder(descriptor)
            raise Locked(f"another agent is running: {holder} holds {path}") from None
    # The pid is for people: a full disk is no reason not to run.
    with contextlib.suppress(OSError):
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)


def _holder(descriptor: int) -> str:
    pid = os.pread(descriptor, _LONGEST_PID, 0).decode("ascii", "replace").strip()
    return f"process {pid}" if pid.isdigit() else "another process"
