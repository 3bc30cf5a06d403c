"""Runs Redis and the Sentinels of docs/examples/several with the example's own files.

Responsible for: a copy of the example that lies on loopback addresses of its own instead of the
containers' (all of 127.0.0.0/8 is this machine), with fresh secrets; its six servers as processes,
each started by the command that the compose file gives it, in a folder that stands for its volume.
Must not: know what is stored.
Called by: `test_several`.
"""

import re
import secrets
import shutil
import subprocess
from pathlib import Path
from typing import Any

from tests.integration.deploying.composing import read_compose
from tests.integration.deploying.page import ROOT
from tests.lab.process import LabFault, Process, wait_until
from tests.lab.redis import run_redis_cli

EXAMPLE = ROOT / "docs" / "examples" / "several"
SUBNET = "172.30.53."
SERVICE = "gateway"
_LIMIT_SECONDS = 60.0


def copy_example(folder: Path) -> Path:
    """The example with its secrets, on addresses that nobody else here listens on."""
    copy = folder / "several"
    shutil.copytree(EXAMPLE, copy)
    own = f"127.{secrets.randbelow(200) + 20}.{secrets.randbelow(250)}."
    for file in (each for each in copy.rglob("*") if each.is_file()):
        file.write_text(file.read_text("utf-8").replace(SUBNET, own))
    make_secrets(copy)
    (copy / "etc" / "tsig-secret").write_text("AAECAwQFBgcICQoLDA0ODw==")
    settings = copy / "etc" / "gateway.toml"
    text = settings.read_text("utf-8")
    settings.write_text(text.replace("/var/lib/gateway", str(folder / "state")))
    return copy


def make_secrets(copy: Path) -> str:
    """Run the example's `make-secrets`; answer what it said."""
    command = [copy / "make-secrets"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def address_of(service: dict[str, Any]) -> str:
    """The fixed address of a service in the compose file."""
    found = re.fullmatch(r"\{ ipv4_address: ([0-9.]+) \}", service["networks"]["inside"])
    assert found is not None
    return str(found[1])


class RedisSet:
    """The example's Redises and Sentinels, not started yet."""

    def __init__(self, copy: Path) -> None:
        self._secrets = copy / "redis"
        services = read_compose(copy / "docker-compose.yml")["services"]
        self.addresses: dict[str, str] = {
            name: address_of(service) for name, service in services.items()
        }
        self._servers = {
            name: _server(copy, name, service["command"])
            for name, service in services.items()
            if name.startswith(("redis-", "sentinel-"))
        }
        self._sentinels = [name for name in self._servers if name.startswith("sentinel-")]

    def start(self) -> None:
        """Start all, Redises first; return when they have found each other. Raises: LabFault."""
        for name in sorted(self._servers):
            self.start_one(name)
        wait_until(self._is_whole, "the Sentinels know all", _LIMIT_SECONDS)

    def start_one(self, name: str) -> None:
        """Start one, or start it again. Raises: LabFault."""
        self._servers[name].start(lambda: self._answers(name))

    def stop_one(self, name: str) -> None:
        """Stop one. May be repeated."""
        self._servers[name].stop()

    def stop(self) -> None:
        """Stop all. May be repeated."""
        for server in self._servers.values():
            server.stop()

    def ask(self, name: str, *words: str) -> list[str]:
        """What one of them answers, line by line. Raises: LabFault."""
        is_sentinel = name.startswith("sentinel-")
        file = "sentinel-auth.conf" if is_sentinel else "redis-auth.conf"
        text = (self._secrets / file).read_text("utf-8")
        password = re.search(r"^requirepass (\w+)$", text, re.MULTILINE)
        assert password is not None
        place = ["-h", self.addresses[name], "-p", "26379" if is_sentinel else "6379"]
        given = ["--no-auth-warning", "-a", password[1]]
        return run_redis_cli(*place, *given, *words, limit_seconds=5.0).splitlines()

    def fail_over(self) -> str:
        """Have the Sentinels name another primary that takes writes; answer its name.

        Returns when all of them have done with it, so that no other one comes. Raises: LabFault.
        """
        former = self._named_primaries()
        wait_until(self._is_failing_over, "a failover begins", _LIMIT_SECONDS)
        wait_until(
            lambda: len(found := self._named_primaries()) == 1 and found != former,
            "all Sentinels name another primary",
            _LIMIT_SECONDS,
        )
        (address,) = self._named_primaries()
        primary = next(name for name, own in self.addresses.items() if own == address)
        wait_until(lambda: self._takes_writes(primary), "a replica follows it", _LIMIT_SECONDS)
        return primary

    def is_replica_of(self, name: str, primary: str) -> bool:
        """Whether it follows that one, with the connection up."""
        role, address, _, state, *_ = [*self.ask(name, "ROLE"), "", "", ""]
        return (role, address, state) == ("slave", self.addresses[primary], "connected")

    def _named_primaries(self) -> set[str]:
        # Unlike get-master-addr-by-name it names the former one until the failover has ended.
        return {self._state(sentinel)["ip"] for sentinel in self._sentinels}

    def _takes_writes(self, name: str) -> bool:
        # min-replicas-to-write counts those.
        return "min_slaves_good_slaves:0" not in self.ask(name, "INFO", "replication")

    def _is_failing_over(self) -> bool:
        # Refused until it has heard of both replicas lately.
        return self.ask("sentinel-1", "SENTINEL", "failover", SERVICE) == ["OK"]

    def _answers(self, name: str) -> bool:
        try:
            return self.ask(name, "PING") == ["PONG"]
        except LabFault:
            return False

    def _is_whole(self) -> bool:
        states = [self._state(name) for name in self._sentinels]
        return all(
            (state["flags"], state["num-slaves"], state["num-other-sentinels"])
            == ("master", "2", "2")
            for state in states
        ) and all(self.is_replica_of(name, "redis-1") for name in ("redis-2", "redis-3"))

    def _state(self, name: str) -> dict[str, str]:
        lines = self.ask(name, "SENTINEL", "master", SERVICE)
        return dict(zip(lines[::2], lines[1::2], strict=True))


def _server(copy: Path, name: str, command: str) -> Process:
    words = command.strip("[]").replace("/etc/redis/", f"{copy}/redis/").split(", ")
    volume = copy / "volumes" / name
    volume.mkdir(parents=True, mode=0o700)
    return Process(name, words, volume)
