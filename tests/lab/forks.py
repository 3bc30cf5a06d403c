"""Forks gateway processes from one that has loaded the gateway already.

Responsible for: saving starts. A process of its own spends most of a second of CPU time on its
imports, a fork a few milliseconds; it is a process like any other for all that: with signals, an
environment, standard streams and an exit code of its own.
Must not: be used where the start itself is what matters, as in `scripts/lab`.
Called by: the tests' `conftest`, tests that run commands, and those that kill gateways at exact
points.
"""

import atexit
import contextlib
import ctypes
import multiprocessing
import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.connection import wait
from pathlib import Path

from tests.lab.process import Process

_PR_SET_PDEATHSIG = 1
_COMMANDS = (
    *(
        "accounts",
        "agent",
        "audit",
        "budget",
        "check",
        "claims",
        "client",
        "clients",
        "explain",
        "holdings",
    ),
    *("issuances", "reseal", "restore", "serve", "worker"),
)
_PRELOADED = [
    *("gateway.running", "uvloop", "tests.faults.dying"),
    *("gateway.client", "gateway.agent.once", "gateway.agent.service", "gateway.agent.config"),
    # What a client's first call would load.
    *("httpcore", "anyio._backends._asyncio"),
]

_forks = multiprocessing.get_context("forkserver")
_lock = threading.Lock()
"""multiprocessing asks after all its children at every start; two threads may not at once."""


@atexit.register
def _end_all() -> None:
    """End what is left: multiprocessing would wait at its end for one that is paused."""
    for child in multiprocessing.active_children():
        child.kill()


class Fork:
    """A process that is to run `target`, with what `subprocess.Popen` can do; ends with this one.

    It begins with `start`.
    """

    def __init__(self, target: Callable[..., None], *arguments: object) -> None:
        modules = [f"gateway.cli.{name}" for name in _COMMANDS]
        _forks.set_forkserver_preload([*_PRELOADED, *modules])
        self._process = _forks.Process(target=target, args=arguments, daemon=True)

    def start(self) -> None:
        with _lock:
            self._process.start()

    @property
    def has_begun(self) -> bool:
        return self._process.pid is not None

    @property
    def pid(self) -> int:
        assert self._process.pid is not None, "it has not begun"
        return self._process.pid

    def poll(self) -> int | None:
        """Its exit code, -N when signal N ended it; None as long as it runs."""
        with _lock:
            return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end and answer its exit code.

        Raises: subprocess.TimeoutExpired.
        """
        wait([self._process.sentinel], timeout)
        code = self.poll()
        if code is None:
            raise subprocess.TimeoutExpired("gateway", timeout or 0)
        return code

    def send_signal(self, number: int) -> None:
        # The process from which it was forked may know of its end before this one does.
        with contextlib.suppress(ProcessLookupError):
            if self.poll() is None:
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class ForkedGateway(Process):
    """A program of the lab that is forked: its command is `gateway` with arguments."""

    def _begin(self) -> Fork:
        self.log_file.touch(0o600)
        environ = {**os.environ, **self._environ}
        streams = (self.log_file, self.log_file)
        child = Fork(_run, tuple(self._command[1:]), streams, environ, str(self._folder))
        child.start()
        return child


class Command(Fork):
    """`gateway` with these arguments, in exactly this environment; it has begun."""

    def __init__(self, arguments: Sequence[str], environ: Mapping[str, str]) -> None:
        self._arguments = tuple(arguments)
        self._folder = tempfile.TemporaryDirectory()
        self._streams = Path(self._folder.name, "output"), Path(self._folder.name, "error")
        super().__init__(_run, self._arguments, self._streams, dict(environ), str(Path.cwd()))
        self.start()

    def written(self) -> tuple[str, str]:
        """What it has written so far: its output, and what it said of errors."""
        output, error = (each.read_text() if each.exists() else "" for each in self._streams)
        return output, error

    def ended(self, limit_seconds: float) -> subprocess.CompletedProcess[str]:
        """Wait for its end, and answer what it wrote.

        Raises: subprocess.TimeoutExpired; it is killed then.
        """
        with self._folder:
            try:
                code = self.wait(limit_seconds)
            finally:
                self.kill()
            output, error = (each.read_text() for each in self._streams)
        return subprocess.CompletedProcess(["gateway", *self._arguments], code, output, error)


def run_command(
    arguments: Sequence[str], environ: Mapping[str, str], limit_seconds: float
) -> subprocess.CompletedProcess[str]:
    """Run `gateway` with these arguments in exactly this environment, to its end."""
    return Command(arguments, environ).ended(limit_seconds)


def settle(streams: tuple[Path, Path], environ: Mapping[str, str], folder: str) -> None:
    """In a fork: have its own standard output and error, environment and folder."""
    # A forked process does not inherit its parent's own parent-death signal.
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    os.setpgid(0, 0)
    for descriptor, file in zip((1, 2), streams, strict=True):
        opened = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(opened, descriptor)
        os.close(opened)
    os.environ.clear()
    os.environ.update(environ)
    os.chdir(folder)


def _run(
    arguments: tuple[str, ...],
    streams: tuple[Path, Path],
    environ: Mapping[str, str],
    folder: str,
) -> None:
    from gateway.cli import main

    settle(streams, environ, folder)
    main(list(arguments), prog_name="gateway")
