"""Starts a command, without waiting for the kernel on the event loop.

Responsible for: a thread that waits in its place, since a program on a mount that is dead holds up
whoever starts it; for a time within which it begins; and for the end of what comes to run when
nobody wants it any more. Must not: watch what runs. Called by `process`.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import threading
from typing import TYPE_CHECKING, Final

from gateway.agent.disk import PROGRAMS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

LAST_WORDS_SECONDS: Final = 1.0
"""How long to wait for what comes at once unless the kernel hangs: an end, a last line."""


class NotStarted(Exception):
    """The command could not be started; the text says why in some words."""


async def begin(
    command: Sequence[str],
    environment: Mapping[str, str],
    limit_seconds: float,
    *,
    complains_apart: bool,
) -> subprocess.Popen[bytes]:
    """Start it: in `/`, in a session of its own, with nothing to read, and pipes to print to.

    If it begins only after the time is over, or after this was cancelled, it is killed then.

    Raises:
        NotStarted: it does not run.

    """
    start = _Start(command, environment, complains_apart=complains_apart)
    if start.would_hang:
        raise NotStarted("an earlier start of this program still waits for the disk")
    limit = asyncio.timeout(limit_seconds)
    try:
        async with limit:
            return await PROGRAMS.run(start.carry_out)
    except asyncio.CancelledError:
        start.give_up()
        raise
    except (OSError, ValueError) as error:
        start.give_up()
        # A disk on the network may answer that its time is over: that is another TimeoutError.
        late = f"it had not begun within {limit_seconds:g} seconds" if limit.expired() else None
        raise NotStarted(late or reason(error)) from None


def signal_group(process: subprocess.Popen[bytes], number: int) -> None:
    """Send a process and its group a signal; nothing once it is reaped."""
    # Until then the number is still that of its group.
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)


def end(process: subprocess.Popen[bytes]) -> None:
    """Let go of a process; kills it with its group unless it was reaped."""
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            stream.close()
    if process.returncode is None:
        signal_group(process, signal.SIGKILL)
        # One that hangs in the kernel (a dead NFS server) cannot be waited for.
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(LAST_WORDS_SECONDS)


def reason(error: OSError | ValueError) -> str:
    """Why something of this was refused, in some words."""
    return getattr(error, "strerror", None) or str(error)


class _Start:
    """One start. The thread that makes it cannot be called back, so both sides look what is."""

    _turn: Final = threading.Lock()
    _hanging: Final[dict[int, str]] = {}
    """The programs of starts that were given up and have not ended. Trying again would take one
    thread after the other."""

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], *, complains_apart: bool
    ) -> None:
        self._command = command
        self._environment = environment
        self._complaints = subprocess.PIPE if complains_apart else subprocess.STDOUT
        self._is_under_way = self._is_given_up = False
        self._begun: subprocess.Popen[bytes] | None = None

    @property
    def would_hang(self) -> bool:
        with self._turn:
            return self._command[0] in self._hanging.values()

    def carry_out(self) -> subprocess.Popen[bytes]:
        """Wait for the kernel. Raises OSError, or ValueError for what no command can be."""
        if not self._enter():
            raise NotStarted("nobody waits for it any more")
        begun = None
        try:
            begun = subprocess.Popen(  # noqa: S603 (the operator's own command)
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=self._complaints,
                bufsize=0,
                env=self._environment,
                cwd="/",
                start_new_session=True,
            )
        finally:
            is_late = self._leave(begun)
        if is_late:
            end(begun)
        return begun

    def give_up(self) -> None:
        """Nobody waits for it any more: it is killed, now or when it begins."""
        with self._turn:
            self._is_given_up = True
            if self._is_under_way:
                self._hanging[id(self)] = self._command[0]
        if self._begun is not None:
            end(self._begun)

    def _enter(self) -> bool:
        with self._turn:
            self._is_under_way = not self._is_given_up
            return self._is_under_way

    def _leave(self, begun: subprocess.Popen[bytes] | None) -> bool:
        """Whether it was given up meanwhile."""
        with self._turn:
            self._is_under_way, self._begun = False, begun
            self._hanging.pop(id(self), None)
            return self._is_given_up
