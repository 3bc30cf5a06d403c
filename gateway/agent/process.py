"""One run of a command that may do anything: hang, leave children, print without end.

Responsible for: a session, and so a process group, of its own; an environment without what is the
agent's alone; reading all that is printed, so that nobody waits for a reader; killing the group and
reaping. Must not: decide how long it may take, what of its output is kept, or go through a shell.
Called by `hook` and `printing`.

Not asyncio's own subprocesses: those reap a child as soon as it ends, and then its group's number
may be another's when the group is to be killed; and they wait for its pipes, which a grandchild
may hold for ever.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Take = Callable[[bytes], None]

LAST_WORDS_SECONDS: Final = 1.0
"""How long to wait for what comes at once unless the kernel hangs: an end, a last line."""

_CHUNK_BYTES: Final = 65536

_OF_THE_AGENT: Final = ("NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC", "CREDENTIALS_DIRECTORY")
"""What systemd tells the agent and nobody else."""


class NotStarted(Exception):
    """The command could not be started; the text says why in some words."""


def inherited(withheld: Sequence[str]) -> dict[str, str]:
    """The agent's environment without what is its own, and without the `withheld` variables."""
    kept_back = {*_OF_THE_AGENT, *withheld}
    return {name: value for name, value in os.environ.items() if name not in kept_back}


def ending(code: int) -> str:
    """How a process ended, to go on after its name; -N is signal N."""
    if code == 0:
        return "succeeded"
    if code > 0:
        return f"ended with exit code {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"


async def within(limit_seconds: float, *events: asyncio.Event) -> bool:
    """Whether all of these happen within a time."""
    try:
        async with asyncio.timeout(limit_seconds):
            for event in events:
                await event.wait()
    except TimeoutError:
        return False
    return True


class Process:
    """A command that runs, watched by the running event loop. To be closed.

    `has_exited` is set when it has ended, `is_silent` when nobody holds its output open any more.
    """

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        take_output: Take,
        take_complaints: Take | None = None,
    ) -> None:
        """Start it: in `/`, with nothing to read. It complains where it prints, unless told else.

        Raises:
            NotStarted: it does not run.

        """
        self._loop = asyncio.get_running_loop()
        self.has_exited = asyncio.Event()
        self.is_silent = asyncio.Event()
        try:
            self._process = subprocess.Popen(  # noqa: S603 (the operator's own command)
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT if take_complaints is None else subprocess.PIPE,
                bufsize=0,
                env=environment,
                cwd="/",
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise NotStarted(_reason(error)) from None
        takers = (self._process.stdout, take_output), (self._process.stderr, take_complaints)
        self._takers = {
            stream.fileno(): take for stream, take in takers if stream is not None and take
        }
        self._watch()

    def _watch(self) -> None:
        try:
            self._exit = os.pidfd_open(self._process.pid)
        except OSError as error:
            self._kill_and_reap()
            self._close_streams()
            raise NotStarted(_reason(error)) from None
        self._loop.add_reader(self._exit, self._note_exit)
        for descriptor in self._takers:
            self._loop.add_reader(descriptor, self._read, descriptor)

    def signal(self, number: int) -> None:
        """Send its group a signal; nothing once it is reaped."""
        # Until then the number is still that of its group.
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)

    def reap(self) -> int:
        """Its exit code, when it has exited. From here on nothing that it left is killed."""
        return self._process.wait()

    def close(self) -> None:
        """Let go of it; kills it with its group unless it was reaped."""
        for descriptor in (self._exit, *self._takers):
            self._loop.remove_reader(descriptor)
        os.close(self._exit)
        self._close_streams()
        if self._process.returncode is None:
            self._kill_and_reap()

    def _kill_and_reap(self) -> None:
        self.signal(signal.SIGKILL)
        # One that hangs in the kernel (a dead NFS server) cannot be waited for.
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(LAST_WORDS_SECONDS)

    def _close_streams(self) -> None:
        for stream in (self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()

    def _note_exit(self) -> None:
        self._loop.remove_reader(self._exit)
        self.has_exited.set()

    def _read(self, descriptor: int) -> None:
        chunk = os.read(descriptor, _CHUNK_BYTES)
        if chunk:
            self._takers[descriptor](chunk)
            return
        self._loop.remove_reader(descriptor)
        del self._takers[descriptor]
        if not self._takers:
            self.is_silent.set()


def _reason(error: OSError | ValueError) -> str:
    return getattr(error, "strerror", None) or str(error)
