"""Starts a Redis behind a relay, so that the connection to it can be cut without its end.

Responsible for: one Redis, as `tests.lab.redis` starts it, and the relay in front.
Must not: look into what is stored.
Called by: fault tests.
"""

import socket
import sys
from pathlib import Path

from tests.lab.ports import LOOPBACK, free_port
from tests.lab.process import Process
from tests.lab.redis import RedisProcess, start_redis

_ANSWER_LIMIT_SECONDS = 1.0


class RelayedRedis:
    """A running Redis and its relay; `url` is the relay's and stays the same."""

    def __init__(self, server: RedisProcess, relay: Process, port: int) -> None:
        self.server = server
        self.relay = relay
        self.data_folders = server.data_folders
        self._port = port
        self.url = f"redis://{LOOPBACK}:{port}/0"

    @property
    def pids(self) -> list[int]:
        return [self.server.pid, self.relay.pid]

    def start_relay(self) -> None:
        """Start the relay, or start it again after it was killed."""
        self.relay.start(self._is_relayed)

    def stop(self) -> None:
        """Stop both. May be repeated."""
        self.relay.stop()
        self.server.stop()

    def _is_relayed(self) -> bool:
        try:
            with socket.create_connection((LOOPBACK, self._port), _ANSWER_LIMIT_SECONDS) as peer:
                peer.sendall(b"PING\r\n")
                return peer.recv(64) == b"+PONG\r\n"
        except OSError:
            return False


def start_relayed_redis(folder: Path) -> RelayedRedis:
    """Start Redis with its data in `folder`, and its relay.

    Raises: LabFault. Nothing is left running then.
    """
    server = start_redis(folder)
    port = free_port()
    program = [sys.executable, "-I", str(Path(__file__).with_name("relay.py"))]
    addresses = ["--listen", f"{LOOPBACK}:{port}", "--to", f"{LOOPBACK}:{server.port}"]
    relayed = RelayedRedis(server, Process("relay", [*program, *addresses], folder), port)
    try:
        relayed.start_relay()
    except BaseException:
        relayed.stop()
        raise
    return relayed
