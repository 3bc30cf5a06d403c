"""A gateway whose configuration is changed while it serves, and what it tells of that.

It tells its log, and systemd, whose place `Systemd` takes. Used by the tests of this folder
and of the page.
"""

import os
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.lab.bind import BindPair
from tests.lab.gateway import GatewayConfig, GatewayProcess, running_gateway, write_gateway_config
from tests.lab.pebble import PebbleProcess
from tests.lab.redis import RedisProcess

TAKEN = "configuration taken"
REFUSED = "configuration refused, the former one holds"
JSON_LOG = {"GATEWAY_LOG__FORMAT": "json"}
LIMIT_SECONDS = 30.0
_DATAGRAM_LIMIT = 4096


class Systemd:
    """The socket on which systemd hears from a service; `environ` is what it sets for one."""

    def __init__(self, folder: Path) -> None:
        name = str(folder / "notify")
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(name)
        self._socket.settimeout(LIMIT_SECONDS)
        self.environ = {"NOTIFY_SOCKET": name}

    def close(self) -> None:
        self._socket.close()

    def heard(self) -> dict[str, str]:
        """The next datagram, waited for: what it assigns."""
        text = self._socket.recv(_DATAGRAM_LIMIT).decode()
        return dict(line.split("=", 1) for line in text.splitlines())

    def heard_until(self, name: str) -> list[dict[str, str]]:
        """Every datagram up to the next one that assigns `name`."""
        heard = [self.heard()]
        while name not in heard[-1]:
            heard.append(self.heard())
        return heard

    def forget(self) -> None:
        """Drop what has come: while nobody reads, the kernel holds a few, and further ones fail."""
        self._socket.setblocking(False)
        try:
            while True:
                self._socket.recv(_DATAGRAM_LIMIT)
        except BlockingIOError:
            self._socket.settimeout(LIMIT_SECONDS)


class Site:
    """A running gateway and its file.

    `text` is what the file held at first, `status` the line for `systemctl status` after a reload.
    """

    def __init__(self, config: GatewayConfig, gateway: GatewayProcess, systemd: Systemd) -> None:
        self.config = config
        self.gateway = gateway
        self.status = ""
        self._systemd = systemd
        self.text = config.config_file.read_text()

    def events(self, name: str) -> list[dict[str, Any]]:
        """The lines of one event."""
        return [line for line in self.gateway.log_lines if line["event"] == name]

    def write(self, text: str) -> None:
        """Put another configuration in place, as an editor does."""
        new = self.config.config_file.with_name("gateway.toml.new")
        new.write_text(text)
        new.rename(self.config.config_file)

    def ask(self) -> None:
        """Have it read its configuration anew."""
        os.kill(self.gateway.pid, signal.SIGHUP)

    def reload(self, text: str | None = None) -> list[dict[str, Any]]:
        """Reload with this text, and answer what was logged until that was done."""
        if text is not None:
            self.write(text)
        before = len(self.gateway.log_lines)
        self._systemd.forget()
        asked_us = time.monotonic_ns() // 1_000
        self.ask()
        # Another one may still be under way, which began with the text before.
        while int(self._systemd.heard_until("RELOADING")[-1]["MONOTONIC_USEC"]) < asked_us:
            pass
        self.status = self._systemd.heard_until("READY")[-1]["STATUS"]
        return self.gateway.log_lines[before:]


def replaced(text: str, old: str, new: str) -> str:
    """The text with `old`, which it holds once, replaced."""
    assert text.count(old) == 1, (old, text)
    return text.replace(old, new)


def without_zone(text: str, name: str) -> str:
    """The configuration without one of its zones."""
    first, *zones = text.split("[[zones]]")
    kept = [zone for zone in zones if f'name = "{name}"' not in zone]
    assert len(kept) == len(zones) - 1
    return "[[zones]]".join([first, *kept])


@contextmanager
def running_site(
    folder: Path, bind: BindPair, redis: RedisProcess, pebble: PebbleProcess | None
) -> Iterator[Site]:
    """A gateway that says to systemd when it is ready; `folder` is its own."""
    config = write_gateway_config(folder / "gateway", bind, redis.url, pebble)
    systemd = Systemd(folder)
    with running_gateway(config, environ={**JSON_LOG, **systemd.environ}) as gateway:
        systemd.heard_until("READY")
        yield Site(config, gateway, systemd)
    systemd.close()
