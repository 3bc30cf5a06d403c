"""Writes to disk that leave the old or the new, never a part, whenever the power goes.

Responsible for: what is complete before it gets its name, and on the disk before anybody relies on
it; access that is set before there is content; the one sentence for what a disk refuses.
Must not: know what the files are for.
Called by `lineage`, `memory`, `metrics` and `lock`.

Everything that is being made has a name of its own kind (`new_name`) until it is complete. Those
names are fixed: what a killed run has left is taken over by the next. So there must be one writer,
which `lock` sees to. And nothing is followed that has such a name: whoever may write to the folder
can have put a link there.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

FOLDER_MODE: Final = 0o755
"""Everybody may look for files: only what a file holds can be secret."""

LONGEST_NAME: Final = 255
"""What file systems allow, in bytes; names here are ASCII."""

_NEW: Final = ".new-"
_OWNER_BITS: Final = 0o700


class DiskFault(Exception):
    """What a disk refused, in one sentence with the path; the text is for the operator."""


@contextmanager
def told(deed: str, path: Path | str) -> Iterator[None]:
    """Turn an `OSError` into "cannot <deed> <path>: <reason>".

    Raises:
        DiskFault: in place of it.

    """
    try:
        yield
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise DiskFault(f"cannot {deed} {path}: {reason}") from error


def read_file(path: Path, most_bytes: int) -> bytes:
    """What a file holds, up to so many bytes. Never waits for a writer, as at a named pipe.

    Raises:
        DiskFault: it cannot be read, or is no file.

    """
    with told("read", path), open(path, "rb", opener=_without_waiting) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise DiskFault(f"{path} is no file and in the way: remove it")
        return file.read(most_bytes)


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)


def new_name(name: str) -> str:
    """What something is called until it is complete. No hostname begins like this."""
    return _NEW + fitting(name, LONGEST_NAME - len(_NEW))


def fitting(name: str, longest: int) -> str:
    """The name itself or, where it is too long to be extended, one that stands for it alone."""
    # A hostname may be nearly as long as a name can be.
    return name if len(name) <= longest else hashlib.sha256(name.encode()).hexdigest()


def finished_name(name: str) -> str:
    """What something with this `new_name` is called in the end; empty for all other names.

    Not for names that were too long.
    """
    return name.removeprefix(_NEW) if name.startswith(_NEW) else ""


def make_folder(path: Path) -> None:
    """Make a folder and those above it where they are missing; repeatable.

    Those it makes are open to everybody whatever the umask is; those that exist stay as they are.

    Raises:
        DiskFault: one cannot be made, or something else has its name.

    """
    with told("look for the folder", path):
        if path.is_dir():
            return
    make_folder(path.parent)
    made = path.with_name(new_name(path.name))
    with told("make the folder", made), contextlib.suppress(FileExistsError):
        made.mkdir(FOLDER_MODE)
    _open_to_all(made)
    with told("make the folder", path):
        made.rename(path)
    sync_folder(path.parent)


def create_folder(path: Path) -> None:
    """Make a folder that does not exist yet, open to everybody whatever the umask is.

    `sync_folder` of the one above is to follow, for its name.

    Raises:
        DiskFault: it cannot be made, or something else has its name.

    """
    with told("make the folder", path):
        path.mkdir(FOLDER_MODE)
    _open_to_all(path)


def _open_to_all(folder: Path) -> None:
    with told("open the folder", folder):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        with told("set the mode of", folder):
            if os.fstat(descriptor).st_uid != os.geteuid():
                raise DiskFault(f"{folder} is another user's folder and in the way: remove it")
            os.fchmod(descriptor, FOLDER_MODE)
    finally:
        os.close(descriptor)


def sync_folder(path: Path) -> None:
    """Have the names in a folder on the disk; repeatable.

    Raises:
        DiskFault: nobody knows whether they are.

    """
    with told("sync the folder", path):
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def write_file(
    path: Path, content: bytes, mode: int, owner: int | None = None, group: int | None = None
) -> None:
    """Write a file that does not exist yet, and have its content on the disk.

    Nobody who may not read the file in the end can open it at any moment. `sync_folder` is to
    follow, for its name.

    Raises:
        DiskFault: it could not be written whole; a part of it may be there.

    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    with told("write", path):
        descriptor = os.open(path, flags, mode & _OWNER_BITS)
    try:
        # The owner last: a file that was given away can be changed by its new owner only.
        if group is not None:
            with told(f"give group {group}", path):
                os.fchown(descriptor, -1, group)
        with told("set the mode of", path):
            os.fchmod(descriptor, mode)
        if owner is not None:
            with told(f"give user {owner}", path):
                os.fchown(descriptor, owner, -1)
        with told("write", path):
            _write_all(descriptor, content)
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write_all(descriptor: int, content: bytes) -> None:
    left = memoryview(content)
    while left:
        left = left[os.write(descriptor, left) :]


def replace_file(path: Path, content: bytes, mode: int) -> None:
    """Give a file other content in one step, or make it; repeatable.

    Raises:
        DiskFault: it holds what it held. If only the last sync failed, it holds the new content,
            which a loss of power may undo.

    """
    _replace(path, lambda made: write_file(made, content, mode), remove_name)


def replace_link(path: Path, target: str) -> None:
    """Have a symbolic link lead elsewhere in one step, or make it; repeatable.

    Raises:
        DiskFault: it leads where it led. If only the last sync failed, it leads to `target`, which
            a loss of power may undo.

    """

    def make(made: Path) -> None:
        with told("make the link", made):
            made.symlink_to(target)

    _replace(path, make, _remove_link)


def _replace(path: Path, make: Callable[[Path], None], remove: Callable[[Path], None]) -> None:
    """Make something under its `new_name`, then let it have `path`; `remove` clears that name."""
    made = path.with_name(new_name(path.name))
    remove(made)
    try:
        make(made)
        with told("replace", path):
            made.replace(path)
    except DiskFault:
        with contextlib.suppress(DiskFault):
            remove(made)
        raise
    sync_folder(path.parent)


def _remove_link(path: Path) -> None:
    with told("remove", path):
        if path.is_symlink():
            path.unlink()


def remove_name(path: Path) -> None:
    """Remove a file or a link, where there is one; repeatable.

    Raises:
        DiskFault: it is still there.

    """
    with told("remove", path):
        # Looked for first: a read-only disk refuses to remove even what is not there.
        if os.path.lexists(path):
            path.unlink(missing_ok=True)
