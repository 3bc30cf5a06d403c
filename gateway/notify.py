"""Tells systemd how a process is: ready, alive, reloading, about to stop, and a line of status.

Responsible for the datagrams of sd_notify(3) and for how often the watchdog wants to hear. Without
systemd, or when it does not listen, nothing happens: telling is no reason to fail. Must not: decide
whether the process is well, or import anything of the gateway: the agent and the server both use
it, and neither may know the other. Called by `gateway.agent.service` and `gateway.running`.
"""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

_MICROSECONDS: Final = 1_000_000
_BEATS_PER_LIMIT: Final = 3
_SHOWN_CHARACTERS: Final = 200


class Notifier:
    """The way to systemd that a unit of `Type=notify` has. Never blocks, never raises.

    `environ` is the process's: NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID are read from it once.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._address = _address(environ.get("NOTIFY_SOCKET", ""))
        self._watchdog_seconds = _watchdog_seconds(environ)

    @property
    def beat_seconds(self) -> float | None:
        """How often to call `alive`: a third of the watchdog's limit. None without a watchdog."""
        limit = self._watchdog_seconds
        return None if limit is None else limit / _BEATS_PER_LIMIT

    def ready(self, status: str = "") -> None:
        """The process is up, or has reloaded."""
        self._send("READY=1", *_status(status))

    def status(self, status: str) -> None:
        """One line for `systemctl status`."""
        self._send(*_status(status))

    def alive(self) -> None:
        """The process still works; nothing is sent without a watchdog."""
        if self._watchdog_seconds is not None:
            self._send("WATCHDOG=1")

    def reloading(self, monotonic_us: int) -> None:
        """The process reads its configuration anew; `ready` says when it has.

        `monotonic_us` is CLOCK_MONOTONIC now: systemd tells by it which reload this answers.
        """
        self._send("RELOADING=1", f"MONOTONIC_USEC={monotonic_us}")

    def stopping(self) -> None:
        """The process is about to end."""
        self._send("STOPPING=1")

    def _send(self, *assignments: str) -> None:
        if self._address is None or not assignments:
            return
        # A full socket or one that is gone loses the datagram: a process that serves goes on.
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.setblocking(False)
            sender.sendto("\n".join(assignments).encode(), self._address)


def _address(name: str) -> str | bytes | None:
    """Where the datagrams go; `@` stands for the zero byte of an abstract socket."""
    if name.startswith("/"):
        return name
    return b"\0" + os.fsencode(name[1:]) if name.startswith("@") else None


def _watchdog_seconds(environ: Mapping[str, str]) -> float | None:
    """The watchdog's limit, unless it is meant for another process."""
    limit, process = environ.get("WATCHDOG_USEC", ""), environ.get("WATCHDOG_PID", "")
    if not (limit.isascii() and limit.isdigit()) or int(limit[:20]) == 0:
        return None
    return int(limit[:20]) / _MICROSECONDS if process in ("", str(os.getpid())) else None


def _status(text: str) -> list[str]:
    """At most one assignment: a line break in it would begin another."""
    line = " ".join(text.split())[:_SHOWN_CHARACTERS]
    return [f"STATUS={line}"] if line else []
