"""Writes a certificate into a folder, for `gateway client certificate --out`.

Responsible for: four files with certbot's names, each replaced as a whole, the key readable by its
user alone. Must not: judge what it writes. A reader may see new files beside old ones for a moment:
what serves all the time is the agent's business, which swaps a pair as one. Several may write at
once, one after the other, which the agent's ways of writing (`agent.durable`) rule out. Called by
`cli.client_certificate`.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import signal
import threading
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from gateway.client import Bundle

_KEY_MODE: Final = 0o600
_CERTIFICATE_MODE: Final = 0o644
_KEY_FILE: Final = "privkey.pem"
_ENDING: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class FileNotWritten(Exception):
    """The system did not let a file be written; the text is one sentence with its path."""


def write_bundle(folder: Path, bundle: Bundle) -> dict[str, Path]:
    """Write the files into the folder, which is made if it is missing; answers them by their names.

    All content is on disk before the first file is replaced: where there is no room, or something
    is in the way, nothing changes. A file that is a link is replaced and not followed. May be
    repeated.

    The key is replaced first, the chain that servers read with it at once after it.

    Raises:
        FileNotWritten: nothing was replaced, or not all; the text says which were.

    """
    contents = {
        _KEY_FILE: bundle.private_key_pem,
        "fullchain.pem": bundle.chain_pem,
        "chain.pem": bundle.chain_pem,
        "cert.pem": bundle.leaf_pem,
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _alone_in(folder) as descriptor, _undisturbed():
            _replace_all(folder, contents)
            os.fsync(descriptor)
    except OSError as fault:
        raise FileNotWritten(f"{folder} cannot be written: {fault.strerror}.") from None
    return {name: folder / name for name in sorted(contents)}


def _replace_all(folder: Path, contents: Mapping[str, str]) -> None:
    # Fixed names: what a killed run left behind is taken away by the next one.
    drafts = {name: folder / f".{name}.new" for name in contents}
    replaced: list[str] = []
    at_hand = folder
    try:
        for name, content in contents.items():
            at_hand = folder / name
            if at_hand.is_dir() and not at_hand.is_symlink():
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
            drafts[name].unlink(missing_ok=True)
            _write(drafts[name], content, _KEY_MODE if name == _KEY_FILE else _CERTIFICATE_MODE)
        for name, draft in drafts.items():
            at_hand = folder / name
            draft.replace(at_hand)
            replaced.append(name)
    except OSError as fault:
        done = f"; {' and '.join(replaced)} is new already" if replaced else ""
        raise FileNotWritten(f"{at_hand} cannot be written: {fault.strerror}{done}.") from None
    finally:
        for draft in drafts.values():
            with contextlib.suppress(OSError):
                draft.unlink()


@contextlib.contextmanager
def _alone_in(folder: Path) -> Iterator[int]:
    """Have the folder open, and nobody else write here meanwhile: the files are of one hand."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        # Not every file system of a network has locks.
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """Put signals off that would end the program between two files, or beside a draft of a key.

    By handlers, as only the main thread may set: a mask would be one thread's, and not heeded by
    the others.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    taken: list[int] = []
    handlers = {each: signal.getsignal(each) for each in _ENDING}
    heeded = {each: how for each, how in handlers.items() if how not in (signal.SIG_IGN, None)}
    try:
        for each in heeded:
            signal.signal(each, lambda number, _: taken.append(number))
        yield
    finally:
        for each, handler in heeded.items():
            signal.signal(each, handler)
        for number in taken[:1]:
            signal.raise_signal(number)


def _write(draft: Path, content: str, mode: int) -> None:
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
    with open(descriptor, "w", encoding="utf-8") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
