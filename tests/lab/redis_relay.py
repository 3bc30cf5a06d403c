"""Starts a Redis behind a relay, so that the connection to it can be cut without its end.

Responsible for: one Redis, as `tests.lab.redis` starts it, and the relay in front.
Must not: look into what is stored.
Called by: fault tests.
"""

from pathlib import Path

from tests.lab.bind import relay_process
from tests.lab.ports import LOOPBACK, free_port
from tests.lab.process import Process
from tests.lab.redis import RedisProcess, answers_ping, start_redis


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
        self.relay.start(lambda: answers_ping(self._port))

    def stop(self) -> None:
        """Stop both. May be repeated."""
        self.relay.stop()
        self.server.stop()


def start_relayed_redis(folder: Path) -> RelayedRedis:
    """Start Redis with its data in `folder`, and its relay.

    Raises: LabFault. Nothing is left running then.
    """
    server = start_redis(folder)
    port = free_port()
    relay = relay_process(folder, "relay", (LOOPBACK, port), (LOOPBACK, server.port))
    relayed = RelayedRedis(server, relay, port)
    try:
        relayed.start_relay()
    except BaseException:
        relayed.stop()
        raise
    return relayed
