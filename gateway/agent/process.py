"""One run of a command that may do anything: hang, leave children, print without end.

Responsible for: an environment without what is the agent's alone; reading all that is printed, so
that nobody waits for a reader; knowing when it has ended, and that nobody prints any more. It has a
session, and so a process group, of its own; `starting` begins and ends it. Must not: decide how
long it may take, what of its output is kept, or go through a shell. Called by `hook` and
`printing`.

Not asyncio's own subprocesses: those reap a child as soon as it ends, and then its group's number
may be another's when the group is to be killed; and they wait for its pipes, which a grandchild
may hold for ever.
"""

from __future__ import annotations

import asyncio
import os
import signal
from typing import TYPE_CHECKING, Final

from gateway.agent.starting import NotStarted, begin, end, reason, signal_group

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Mapping, Sequence

    Take = Callable[[bytes], None]

_CHUNK_BYTES: Final = 65536

_OF_THE_AGENT: Final = ("NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC", "CREDENTIALS_DIRECTORY")
"""What systemd tells the agent and nobody else."""


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


def last_line(text: str) -> str | None:
    """The last line of what was printed that has something in it; None without any."""
    return next((line.strip() for line in reversed(text.split("\n")) if line.strip()), None)


async def started(
    command: Sequence[str],
    environment: Mapping[str, str],
    limit_seconds: float,
    take_output: Take,
    take_complaints: Take | None = None,
) -> Process:
    """Start it: in `/`, with nothing to read. It complains where it prints, unless told else.

    Raises:
        NotStarted: it does not run, or had not begun when its time was over.

    """
    apart = take_complaints is not None
    begun = await begin(command, environment, limit_seconds, complains_apart=apart)
    try:
        return Process(begun, take_output, take_complaints)
    except OSError as error:
        end(begun)
        raise NotStarted(reason(error)) from None


class Process:
    """A command that runs, watched by the running event loop. To be closed.

    `has_exited` is set when it has ended, `is_silent` when nobody holds its output open any more.
    Made by `started`.
    """

    def __init__(
        self,
        begun: subprocess.Popen[bytes],
        take_output: Take,
        take_complaints: Take | None,
    ) -> None:
        """Watch it. Raises OSError when the kernel cannot: then it goes on unwatched."""
        self._loop = asyncio.get_running_loop()
        self.has_exited = asyncio.Event()
        self.is_silent = asyncio.Event()
        self._process = begun
        takers = (begun.stdout, take_output), (begun.stderr, take_complaints)
        self._takers = {
            stream.fileno(): take for stream, take in takers if stream is not None and take
        }
        self._exit = os.pidfd_open(begun.pid)
        self._loop.add_reader(self._exit, self._note_exit)
        for descriptor in self._takers:
            self._loop.add_reader(descriptor, self._read, descriptor)

    def signal(self, number: int) -> None:
        """Send its group a signal; nothing once it is reaped."""
        signal_group(self._process, number)

    def reap(self) -> int:
        """Its exit code, when it has exited. From here on nothing that it left is killed."""
        return self._process.wait()

    def close(self) -> None:
        """Let go of it; kills it with its group unless it was reaped."""
        for descriptor in (self._exit, *self._takers):
            self._loop.remove_reader(descriptor)
        os.close(self._exit)
        end(self._process)

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
