"""Starts a Redis that loses nothing it acknowledged.

Responsible for: one `redis-server` on a free loopback port, append-only with an fsync at every
write, so that a test may kill it and find everything again after `restart`.
Must not: look into what is stored.
Called by: `tests.lab.lab`, the fixture `redis_server`, fault tests.
"""

import socket
from pathlib import Path

from tests.lab.ports import LOOPBACK, free_port
from tests.lab.process import Process, find_program

_ANSWER_LIMIT_SECONDS = 1.0


class RedisProcess:
    """A running Redis; `url` stays the same over restarts."""

    def __init__(self, process: Process, port: int) -> None:
        self.process = process
        self.port = port
        self.url = f"redis://{LOOPBACK}:{port}/0"

    @property
    def pid(self) -> int:
        return self.process.pid

    def start(self) -> None:
        """Start it, or start it again after `stop` or `kill`, with what it had stored."""
        self.process.start(self._is_ready)

    def stop(self) -> None:
        """Stop it. May be repeated."""
        self.process.stop()

    def kill(self) -> None:
        """Kill it in the middle of whatever it does. May be repeated."""
        self.process.kill()

    def _is_ready(self) -> bool:
        # While it loads its file it takes connections but answers -LOADING.
        try:
            with socket.create_connection((LOOPBACK, self.port), _ANSWER_LIMIT_SECONDS) as peer:
                peer.sendall(b"PING\r\n")
                return peer.recv(64) == b"+PONG\r\n"
        except OSError:
            return False


def start_redis(folder: Path) -> RedisProcess:
    """Start Redis with its data in `folder`.

    Raises: LabFault.
    """
    port = free_port()
    command = [find_program("redis-server", "redis-server"), "--port", str(port)]
    command += ["--bind", LOOPBACK, "--dir", str(folder), "--save", ""]
    command += ["--appendonly", "yes", "--appendfsync", "always"]
    server = RedisProcess(Process("redis", command, folder), port)
    server.start()
    return server
