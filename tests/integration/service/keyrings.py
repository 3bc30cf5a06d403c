"""A lab whose keyring changes: its file, its gateways restarted, and what lies under which key.

Used by the tests of `gateway reseal`. Reads Redis and the zone; knows no key.
"""

import base64
import contextlib
import os
import secrets
import signal
import subprocess
import tomllib
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import redis

from tests.integration.dns.hand import Hand
from tests.integration.service.calling import Ownership, World
from tests.lab.forks import Command
from tests.lab.lab import Lab

LIMIT_SECONDS = 60.0
AT_ONCE = 8


class KeyringLab:
    """A running lab and its keyring file, which begins with the one key `lab-1`."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.world = World(lab.config.url, lab.config.admin_token)
        self.hand = Hand.at(lab.bind)
        settings = tomllib.loads(lab.config.config_file.read_text())
        self.file = Path(settings["keyring_file"])
        self._lines = dict(line.split() for line in self.file.read_text().splitlines())

    def hold(self, *key_ids: str) -> None:
        """Write the keyring file with these keys, in this order; unknown ones are made."""
        for key_id in key_ids:
            new = base64.b64encode(secrets.token_bytes(32)).decode()
            self._lines.setdefault(key_id, new)
        self.file.write_text("".join(f"{each} {self._lines[each]}\n" for each in key_ids))

    def restart(self) -> None:
        for gateway in self.lab.gateways:
            gateway.stop()
            gateway.start()

    def ownerships(self, count: int) -> list[Ownership]:
        """That many hostnames, each with a record and a certificate."""
        mine = [self.world.ownership() for _ in range(count)]

        def fill(each: Ownership) -> None:
            assert each.publish("198.51.100.5")["status"] == "managed-created"
            each.certificate()

        with ThreadPoolExecutor(AT_ONCE) as threads:
            list(threads.map(fill, mine))
        return mine

    def start_reseal(self, *arguments: str) -> Command:
        typed = ["reseal", *arguments, "--config", str(self.lab.config.config_file)]
        return Command(typed, os.environ)

    def reseal(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self.start_reseal(*arguments).ended(LIMIT_SECONDS)

    def sealed(self) -> Counter[str]:
        """How many sealed values lie in Redis under each key."""
        found: Counter[str] = Counter()
        with redis.Redis.from_url(self.lab.redis.url, decode_responses=True) as connection:
            for key in set(connection.scan_iter("*", _type="hash")):
                for value in connection.hgetall(key).values():
                    found.update(key_id for key_id in self._lines if f"v1:{key_id}:" in value)
        return found

    def markers(self, mine: list[Ownership]) -> Counter[str]:
        """How many markers lie in the zone at these names under each key."""
        texts = [text for each in mine for text in self.hand.records(each.hostname)]
        return Counter(
            key_id
            for text in texts
            for key_id in self._lines
            if f"gateway-owner=v1:{key_id}:" in text
        )


def is_connected(process: Command, port: int) -> bool:
    """Whether the process has a TCP connection to this port of the machine."""
    folder = Path(f"/proc/{process.pid}")
    lines = [line.split() for line in (folder / "net/tcp").read_text().splitlines()[1:]]
    inodes = {line[9] for line in lines if int(line[2].split(":")[1], 16) == port}
    sockets = {f"socket:[{inode}]" for inode in inodes}
    with contextlib.suppress(FileNotFoundError):  # one was closed meanwhile
        return any(os.readlink(each) in sockets for each in (folder / "fd").iterdir())
    return False


def is_at_work(process: Command) -> bool:
    """Whether the process catches the signals that end it in order, which it does at work."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    caught = int(
        next(line for line in status.splitlines() if line.startswith("SigCgt")).split()[1], 16
    )
    return all(caught >> (number - 1) & 1 for number in (signal.SIGTERM, signal.SIGINT))
