"""Starts a Redis that loses nothing it acknowledged.

Responsible for: one `redis-server` on a free loopback port, append-only with an fsync at every
write, so that a test may kill it and find everything again after `restart`.
Must not: look into what is stored.
Called by: `tests.lab.lab`, `redis_sentinel`, `redis_cluster`, the fixture `redis_server`, fault
tests.
"""

import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from tests.lab.ports import LOOPBACK, free_port
from tests.lab.process import LabFault, Process, find_program

_ANSWER_LIMIT_SECONDS = 1.0
_CLI_LIMIT_SECONDS = 5.0


class RedisDeployment(Protocol):
    """What a lab must know of its Redis, of whatever kind; each kind has a module of its own."""

    @property
    def url(self) -> str:
        """What `redis.url` is to be."""

    @property
    def pids(self) -> list[int]:
        """The processes of its servers."""

    @property
    def data_folders(self) -> list[Path]:
        """Where its servers write their append-only files."""

    def stop(self) -> None:
        """Stop it. May be repeated."""


class RedisProcess:
    """A running Redis; `url` stays the same over restarts."""

    def __init__(self, process: Process, port: int, folder: Path) -> None:
        self.process = process
        self.port = port
        self.url = f"redis://{LOOPBACK}:{port}/0"
        self.data_folders = [folder]

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def pids(self) -> list[int]:
        return [self.pid]

    def start(self) -> None:
        """Start it, or start it again after `stop` or `kill`, with what it had stored."""
        # While it loads its file it takes connections but answers -LOADING.
        self.process.start(lambda: answers_ping(self.port))

    def stop(self) -> None:
        """Stop it. May be repeated."""
        self.process.stop()

    def kill(self) -> None:
        """Kill it in the middle of whatever it does. May be repeated."""
        self.process.kill()


def answers_ping(port: int) -> bool:
    """Is there a Redis that answers calls now?"""
    try:
        with socket.create_connection((LOOPBACK, port), _ANSWER_LIMIT_SECONDS) as peer:
            peer.sendall(b"PING\r\n")
            return peer.recv(64) == b"+PONG\r\n"
    except OSError:
        return False


def start_redis(folder: Path, *options: str) -> RedisProcess:
    """Start Redis with its data in `folder`; `options` are further ones of the program.

    Raises: LabFault.
    """
    port = free_port()
    command = [find_program("redis-server", "redis-server"), "--port", str(port)]
    command += ["--bind", LOOPBACK, "--dir", str(folder), "--save", ""]
    command += ["--appendonly", "yes", "--appendfsync", "always", *options]
    server = RedisProcess(Process("redis", command, folder), port, folder)
    server.start()
    return server


@contextmanager
def running_redis(folder: Path) -> Iterator[RedisProcess]:
    """The same as `start_redis`, as long as the block runs."""
    server = start_redis(folder)
    try:
        yield server
    finally:
        server.stop()


def ask_redis(port: int, *words: str) -> str:
    """Answer what `redis-cli` prints for one command.

    Raises: LabFault when it cannot be carried out within a few seconds.
    """
    return run_redis_cli("-h", LOOPBACK, "-p", str(port), *words, limit_seconds=_CLI_LIMIT_SECONDS)


def run_redis_cli(*arguments: str, limit_seconds: float) -> str:
    """Run `redis-cli` to its end; answer what it printed.

    Raises: LabFault.
    """
    command = [find_program("redis-cli", "redis-tools"), *arguments]
    try:
        ended = subprocess.run(
            command, capture_output=True, text=True, timeout=limit_seconds, check=False
        )
    except subprocess.TimeoutExpired:
        raise LabFault(f"{' '.join(command)}: not within {limit_seconds:g} s") from None
    if ended.returncode:
        raise LabFault(f"{' '.join(command)}: {ended.stdout}{ended.stderr}")
    return ended.stdout
