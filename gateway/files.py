"""Reads the files that the configuration names, none of which may hold a process up.

Responsible for two ways in which a file can hang its reader: what is no regular file (a named pipe
waits for a writer) is refused without waiting, and what lies on a disk that hangs is read in a
thread of its own, waited for within a bound. `asyncio.to_thread` was the alternative: the end of an
event loop waits for its threads, so that one read that hangs would keep a process from ending.
Must not: know what the files are for. Called by whatever of the server reads one.
"""

from __future__ import annotations

import asyncio
import os
import stat
import threading
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, BinaryIO, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_T = TypeVar("_T")


def open_file(path: Path) -> BinaryIO:
    """Open a file for reading; never waits for a writer, as at a named pipe.

    Raises OSError, or ValueError for what is no regular file.
    """
    try:
        file = open(path, "rb", opener=_without_waiting)  # noqa: SIM115 (the caller closes it)
    except IsADirectoryError:
        raise ValueError("it is not a file") from None
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise ValueError("it is not a file")
    return file


def read_file(path: Path, most_bytes: int) -> bytes:
    """What a file holds. Raises as `open_file`, or ValueError for more than so many bytes."""
    with open_file(path) as file:
        content = file.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise ValueError("it is too large")
    return content


def reason_of(fault: OSError | ValueError) -> str:
    """Why a file could not be read, to stand behind "cannot be read: "."""
    return (fault.strerror if isinstance(fault, OSError) else None) or str(fault)


class Reading(Generic[_T]):
    """A read that may hang: waited for within a bound, and never under way twice at once."""

    def __init__(self, read: Callable[[], _T], within_seconds: float) -> None:
        self._read = read
        self._within_seconds = within_seconds
        self._under_way: asyncio.Future[_T] | None = None

    async def result(self) -> _T:
        """What `read` answers or raises; TimeoutError while it hangs, which it may go on with."""
        if self._under_way is None or self._under_way.done():
            self._under_way = _in_thread(self._read)
        done, _ = await asyncio.wait({self._under_way}, timeout=self._within_seconds)
        if not done:
            raise TimeoutError
        return self._under_way.result()


def _in_thread(read: Callable[[], _T]) -> asyncio.Future[_T]:
    loop = asyncio.get_running_loop()
    came_to: asyncio.Future[_T] = loop.create_future()

    def carry_out() -> None:
        try:
            settle = partial(came_to.set_result, read())
        except BaseException as fault:  # noqa: BLE001 (for whoever waits for it)
            settle = partial(_fail, came_to, fault)
        # The loop may be closed by now: then nobody waits any more.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(settle)

    # It ends with the process, whatever it hangs in.
    threading.Thread(target=carry_out, name="reading", daemon=True).start()
    return came_to


def _fail(came_to: asyncio.Future[_T], fault: BaseException) -> None:
    came_to.set_exception(fault)
    came_to.exception()  # it counts as seen: nobody may wait any more


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)
