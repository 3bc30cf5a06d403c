"""The files of one version: written, read back, and removed as a folder.

Responsible for: which files there are, who may read them, and that a folder counts only if all of
them fit one another. Must not: know which version is live, or judge dates. Called by `lineage`.
"""

from __future__ import annotations

import os
import stat
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gateway.agent.durable import DiskFault, create_folder, sync_folder, told, write_file
from gateway.client import AnswerInvalid, read_bundle, read_chain

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from gateway.client import Bundle, Chain

LEAF: Final = "cert.pem"
CHAIN: Final = "chain.pem"
FULL_CHAIN: Final = "fullchain.pem"
KEY: Final = "privkey.pem"
COMBINED: Final = "combined.pem"

_PUBLIC: Final = (LEAF, CHAIN, FULL_CHAIN)
_FILES: Final = (*_PUBLIC, KEY, COMBINED)
_SECRET: Final = (KEY, COMBINED)
_PUBLIC_MODE: Final = 0o644
_LONGEST_BYTES: Final = 1024 * 1024
# A named pipe in the place of a file would otherwise hold the agent up for ever.
_READING: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK


@dataclass(frozen=True, slots=True)
class FileAccess:
    """Who may read the files of a version. `key_mode` is that of the files that hold the key.

    `owner` and `group` are numbers, for all files; None leaves them as the system sets them. An
    agent that is not root must be able to read what it gave away (CAP_CHOWN, CAP_DAC_READ_SEARCH).
    `combined` is whether there is a file of key and chain too.
    """

    owner: int | None = None
    group: int | None = None
    key_mode: int = 0o600
    combined: bool = False

    def mode_of(self, name: str) -> int:
        """The mode of the file with this name."""
        return self.key_mode if name in _SECRET else _PUBLIC_MODE

    def allows(self, name: str, status: os.stat_result) -> bool:
        """Whether a file has exactly this access."""
        return (
            stat.S_IMODE(status.st_mode) == self.mode_of(name)
            and self.owner in (None, status.st_uid)
            and self.group in (None, status.st_gid)
        )


@dataclass(frozen=True, slots=True)
class Found:
    """What a folder holds, and whether its files have the access that was asked about."""

    bundle: Bundle
    has_access: bool


def write_version(folder: Path, bundle: Bundle, access: FileAccess) -> None:
    """Make a folder with all files, have them on the disk, and read them back.

    `sync_folder` of the one above is to follow, for its name.

    Raises:
        DiskFault: it is not whole; a part of it may be there.

    """
    create_folder(folder)
    for name, content in _contents(bundle, combined=access.combined).items():
        write_file(folder / name, content, access.mode_of(name), access.owner, access.group)
    sync_folder(folder)
    found = read_version(folder, bundle.hostname, access)
    if found.bundle != bundle:
        raise DiskFault(f"{folder} holds something else than what was written there")
    if not found.has_access:
        # It would be written anew at every look.
        raise DiskFault(f"the disk of {folder} does not keep who may read its files")


def read_version(folder: Path, hostname: str, access: FileAccess) -> Found:
    """Read what a folder holds, all of it through one handle; repeatable.

    Raises:
        DiskFault: it cannot be read, or its files do not fit one another.

    """
    contents, statuses = _read_files(folder, _FILES)
    has_access = access.combined == (COMBINED in contents) and all(
        access.allows(name, status) for name, status in statuses.items()
    )
    return Found(_bundle_of(folder, contents, hostname), has_access)


def read_public(folder: Path, hostname: str) -> Chain:
    """Read what a folder holds but for the key, as somebody does who may not read that.

    Raises:
        DiskFault: it cannot be read, or its files do not fit one another.

    """
    contents, _ = _read_files(folder, _PUBLIC)
    with _judging(folder, contents, _PUBLIC):
        chain = read_chain(contents[CHAIN].decode(), hostname)
    _demand(folder, contents, _public_contents(chain))
    return chain


def is_key_withheld(folder: Path) -> bool:
    """Whether there is a key which this process may not read."""
    try:
        os.close(os.open(folder / KEY, _READING))
        return False
    except PermissionError:
        return True
    except OSError:
        return False


def has_other_access(folder: Path, access: FileAccess) -> bool:
    """Whether files there have another access than this one; needs no right to read them.

    Raises:
        DiskFault: it cannot be seen.

    """
    names = _present(folder)
    with told("look at the files of", folder):
        statuses = {name: os.lstat(folder / name) for name in names}
    return access.combined != (COMBINED in statuses) or not all(
        access.allows(name, status) for name, status in statuses.items()
    )


def restrict(folder: Path, access: FileAccess) -> None:
    """Give the files of an older version this access, in place; repeatable.

    Raises:
        DiskFault: some have not got it.

    """
    for name in _present(folder):
        path = folder / name
        with told("set the access of", path):
            descriptor = os.open(path, _READING)
            try:
                status = os.fstat(descriptor)
                if access.allows(name, status):
                    continue
                # Nobody may read it in between who may not before and after.
                os.fchmod(descriptor, stat.S_IMODE(status.st_mode) & access.mode_of(name))
                if access.group is not None:
                    os.fchown(descriptor, -1, access.group)
                os.fchmod(descriptor, access.mode_of(name))
                if access.owner is not None:
                    os.fchown(descriptor, access.owner, -1)
            finally:
                os.close(descriptor)


def remove_version(folder: Path) -> None:
    """Remove a folder that was written here, whole or in part; repeatable.

    Raises:
        DiskFault: it is still there, and untouched if it holds anything that was not written here.

    """
    names = _present(folder)
    with told("remove", folder):
        foreign = sorted(set(os.listdir(folder)) - set(names))
        if foreign:
            raise DiskFault(f"{folder} stays: it holds {foreign[0]!r}, which is not the agent's")
        for name in names:
            (folder / name).unlink()
        folder.rmdir()


def _present(folder: Path) -> list[str]:
    with told("read the folder", folder):
        return [name for name in os.listdir(folder) if name in _FILES]


def _contents(bundle: Bundle, *, combined: bool) -> dict[str, bytes]:
    contents = {**_public_contents(bundle), KEY: bundle.private_key_pem.encode()}
    if combined:
        contents[COMBINED] = f"{bundle.private_key_pem.rstrip()}\n{bundle.chain_pem}".encode()
    return contents


def _public_contents(chain: Chain) -> dict[str, bytes]:
    whole = chain.chain_pem.encode()
    return {LEAF: chain.leaf_pem.encode(), CHAIN: whole, FULL_CHAIN: whole}


def _read_files(
    folder: Path, wanted: tuple[str, ...]
) -> tuple[dict[str, bytes], dict[str, os.stat_result]]:
    """What there is of these files, all of it through one handle: of one version then."""
    with told("open the folder", folder):
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with told("read the folder", folder):
            names = [name for name in os.listdir(handle) if name in wanted]
        read = {name: _read(handle, folder / name) for name in names}
    finally:
        os.close(handle)
    contents = {name: content for name, (content, _) in read.items()}
    return contents, {name: status for name, (_, status) in read.items()}


def _read(handle: int, path: Path) -> tuple[bytes, os.stat_result]:
    with told("read", path):
        descriptor = os.open(path.name, _READING, dir_fd=handle)
        try:
            # Never more than one read: what is longer is no file of the agent's.
            return os.read(descriptor, _LONGEST_BYTES), os.fstat(descriptor)
        finally:
            os.close(descriptor)


def _bundle_of(folder: Path, contents: dict[str, bytes], hostname: str) -> Bundle:
    with _judging(folder, contents, (*_PUBLIC, KEY)):
        bundle = read_bundle(contents[CHAIN].decode(), contents[KEY].decode(), hostname)
    _demand(folder, contents, _contents(bundle, combined=COMBINED in contents))
    return bundle


@contextmanager
def _judging(folder: Path, contents: dict[str, bytes], needed: tuple[str, ...]) -> Iterator[None]:
    """Around the reading of files that are all needed; its failures are faults of the folder."""
    missing = [name for name in needed if name not in contents]
    if missing:
        raise DiskFault(f"{folder / missing[0]} is missing")
    try:
        yield
    except UnicodeDecodeError:
        raise DiskFault(f"{folder} holds files that are not text") from None
    except AnswerInvalid as invalid:
        raise DiskFault(f"{folder} cannot be used: {invalid}") from None


def _demand(folder: Path, contents: dict[str, bytes], wanted: dict[str, bytes]) -> None:
    for name, content in wanted.items():
        if contents[name] != content:
            raise DiskFault(f"{folder / name} does not fit the others there")
