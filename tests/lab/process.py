"""Starts, watches and stops one program of the lab.

Responsible for: a log file for each program, the end of every program with its parent (also when
the parent is killed), stopping by process id only, and saying why a start failed.
Must not: know what the program is; that is its own module's business.
Called by: the modules of `tests.lab`, and fault tests that kill, pause and restart servers.

A child dies with its parent through the kernel's parent-death signal, set by `setpriv` of
util-linux (which every Debian has) before it becomes the program. A `preexec_fn` would do the same
but is unsafe, and warned of, in a process with threads. The kernel ties the signal to the *thread*
that started the child: start servers from a thread that lives as long as they shall.
"""

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

START_LIMIT_SECONDS = 30.0
STOP_LIMIT_SECONDS = 10.0
_POLL_SECONDS = 0.02
_LOG_TAIL_LINES = 25

_T = TypeVar("_T")


class LabFault(RuntimeError):
    """A part of the lab could not be started; the text is for the person at the terminal."""


def find_program(program: str, debian_package: str) -> str:
    """Return the path of an installed program.

    Raises: LabFault that names the Debian package when it is missing.
    """
    # Debian keeps servers in /usr/sbin, which an ordinary user's PATH leaves out.
    path = shutil.which(program, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    if path is None:
        raise LabFault(f"{program} is missing: install the Debian package {debian_package}")
    return path


def pause(pid: int) -> None:
    """Stop a process (SIGSTOP), and return when all of its threads have stopped.

    One goes on for a while on a busy machine, with what the program was just asked.
    """
    os.kill(pid, signal.SIGSTOP)
    wait_until(lambda: _is_stopped(pid), f"process {pid} has stopped")


def _is_stopped(pid: int) -> bool:
    stopped = []
    for stat in Path(f"/proc/{pid}/task").glob("*/stat"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # the thread has ended
            # The state stands behind the program's name, which may hold anything.
            stopped.append(stat.read_text().rpartition(")")[2].split()[0] in {"T", "t"})
    return all(stopped)


def wait_until(
    condition: Callable[[], bool],
    what: str,
    limit_seconds: float = START_LIMIT_SECONDS,
    *,
    pause_seconds: float = _POLL_SECONDS,
) -> None:
    """Poll `condition` until it holds; with longer pauses where that costs what it waits for time.

    Raises: LabFault with `what` was awaited when the limit is over.
    """
    end = time.monotonic() + limit_seconds
    while not condition():
        if time.monotonic() > end:
            raise LabFault(f"{what}: not within {limit_seconds:g} s")
        time.sleep(pause_seconds)


async def read_until(
    read: Callable[[], Awaitable[_T]],
    holds: Callable[[_T], bool],
    limit_seconds: float = START_LIMIT_SECONDS,
) -> _T:
    """Read again and again until what was read holds; answers that.

    Raises: TimeoutError when the limit is over.
    """
    async with asyncio.timeout(limit_seconds):
        while not holds(value := await read()):  # noqa: ASYNC110 (servers tell nobody)
            await asyncio.sleep(_POLL_SECONDS)
    return value


class Child(Protocol):
    """What is used of a `subprocess.Popen`."""

    @property
    def pid(self) -> int: ...

    def poll(self) -> int | None: ...

    def wait(self, timeout: float | None = None) -> int: ...

    def send_signal(self, number: int, /) -> None: ...

    def terminate(self) -> None: ...

    def kill(self) -> None: ...


class Process:
    """One program with its log file; can be started again after it was stopped or killed.

    `environ` is added to this process's own environment. Output of every run is appended to
    `<folder>/<name>.log`.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        folder: Path,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self.log_file = folder / f"{name}.log"
        self._command = tuple(command)
        self._folder = folder
        self._environ = dict(environ or {})
        self._child: Child | None = None

    @property
    def pid(self) -> int:
        """The id of the current or the last run."""
        if self._child is None:
            raise LabFault(f"{self.name} was never started")
        return self._child.pid

    @property
    def is_running(self) -> bool:
        return self._child is not None and self._child.poll() is None

    @property
    def exit_code(self) -> int | None:
        """Of the last run, -N when signal N ended it; None as long as it runs."""
        return None if self._child is None else self._child.poll()

    def start(self, is_ready: Callable[[], bool]) -> None:
        """Start the program and wait until `is_ready()`.

        Raises: LabFault with the end of the log when it ends before, or takes too long. It is
        stopped then.
        """
        self._child = self._begin()
        try:
            wait_until(lambda: not self.is_running or is_ready(), f"{self.name} gets ready")
        except LabFault as fault:
            self.stop()
            raise LabFault(f"{fault}\n{self.log_tail()}") from None
        except BaseException:
            self.stop()
            raise
        if not self.is_running:
            raise LabFault(f"{self.name} ended at its start\n{self.log_tail()}")

    def _begin(self) -> Child:
        setpriv = find_program("setpriv", "util-linux")
        with self.log_file.open("ab") as log:
            return subprocess.Popen(
                [setpriv, "--pdeathsig", "KILL", "--", *self._command],
                cwd=self._folder,
                env={**os.environ, **self._environ},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                # Its own group: ^C at the terminal reaches the lab only, which stops its
                # programs in order.
                process_group=0,
            )

    def stop(self) -> None:
        """End the program politely, then by force. May be repeated."""
        if self._child is None or not self.is_running:
            return
        self._child.terminate()
        # A paused program would never see the signal before it goes on.
        self._child.send_signal(signal.SIGCONT)
        try:
            self._child.wait(STOP_LIMIT_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """End the program at once, as a power cut would. May be repeated."""
        if self._child is not None:
            self._child.kill()
            self._child.wait()

    def pause(self) -> None:
        """Let the program hang, with its sockets open, until `resume`."""
        pause(self.pid)

    def resume(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def log_tail(self) -> str:
        """The end of the log, for a person who wants to know why."""
        lines = self.log_file.read_text(errors="replace").splitlines()[-_LOG_TAIL_LINES:]
        return "\n".join([f"--- end of {self.log_file}", *lines])
