"""Starts nginx as a relay that serves what the agent keeps, with the configuration the docs show.

Responsible for: the TLS half of a relay on a free loopback port, for any number of hostnames; a
start, a start that waits for a deploy hook to order it, reloads, and what nginx complained of.
Must not: write certificates; it reads them from where the agent puts them.
Called by: tests of relays, `scripts/relay-swap`.

`docs/examples/agent/nginx.conf` is what is run, with the lab's own names, folder and port put in:
what is measured here is what an operator copies.
"""

import os
import signal
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.lab.nginx_process import TEMPORARY_PATHS, ending_with_us, nginx_command
from tests.lab.ports import LOOPBACK, free_port
from tests.lab.process import LabFault, Process, wait_until

EXAMPLE_FILE = Path(__file__).parents[2] / "docs" / "examples" / "agent" / "nginx.conf"
"""A `server` block, in which `_site` puts the lab's own values."""

WORKERS = 2
_LISTENING = "0A"
"""The kernel's number of that state; it counts there what is yet to be accepted."""
_FAULT_LEVELS = ("[emerg]", "[alert]", "[crit]", "[error]")

_MAIN = """\
daemon off;
worker_processes {workers};
pid {folder}/nginx.pid;
error_log {folder}/error.log notice;
events {{ worker_connections 1024; }}
http {{
    access_log off;
    {temporary_paths}
    include {folder}/sites/*.conf;
}}
"""

# What a service manager does at `systemctl reload-or-restart nginx`, and just as synchronously.
_RELOAD_OR_START = """\
#!/bin/sh
set -eu
if [ -s {folder}/nginx.pid ]; then
  exec {reload}
fi
{test}
echo start >{folder}/order
"""


class Nginx:
    """An nginx, once started; its address and configuration stay the same over restarts.

    `certificates_dir` is the agent's: `live/<hostname>` in it holds each hostname's files. Commands
    for deploy hooks: `reload_command` for a running nginx, `reload_or_start_command` also for one
    that `start_on_order` has left waiting. Every `*.conf` in `sites_folder` is read.
    """

    def __init__(self, folder: Path, certificates_dir: Path, hostnames: Sequence[str]) -> None:
        self.port = free_port()
        self.address = (LOOPBACK, self.port)
        self.sites_folder = folder / "sites"
        self._folder = folder
        self._error_log = folder / "error.log"
        command = nginx_command(folder)
        served = ending_with_us(command)
        self.test_command = [*command, "-t", "-q"]
        self.reload_command = [*command, "-s", "reload"]
        self.reload_or_start_command = [str(folder / "reload-or-start")]
        (folder / "temporary").mkdir()
        self.sites_folder.mkdir()
        for hostname in hostnames:
            site = _site(certificates_dir, hostname, self.address)
            (self.sites_folder / f"{hostname}.conf").write_text(site)
        main = _MAIN.format(
            workers=WORKERS, folder=folder, temporary_paths=TEMPORARY_PATHS.format(folder=folder)
        )
        (folder / "nginx.conf").write_text(main)
        self._write_order()
        self.process = Process("nginx", served, folder)
        self._waiting = Process(
            "nginx", ["/bin/sh", "-c", 'read _ <order && exec "$@"', "-", *served], folder
        )

    @property
    def pid(self) -> int:
        """The master's."""
        return self.process.pid

    def start(self) -> None:
        """Start it, or start it again after `stop`.

        Raises: LabFault, also when a certificate is missing.
        """
        self.process.start(self._is_ready)

    def start_on_order(self) -> None:
        """Have it ready to start, as an nginx that had no certificate yet, and return.

        It starts when `reload_or_start_command` is run.

        Raises: LabFault.
        """
        self.process = self._waiting
        self.process.start(lambda: True)

    def stop(self) -> None:
        """Stop it. May be repeated."""
        self.process.stop()

    def reload(self) -> None:
        """Have it read its configuration and certificates again.

        Returns when no worker with the old ones accepts connections any more. May be repeated.

        Raises: LabFault with nginx's complaint when it keeps the old ones.
        """
        begin = self._error_log.stat().st_size
        os.kill(self.pid, signal.SIGHUP)
        wait_until(lambda: self._is_over(begin), "nginx reloads")

    def workers(self) -> list[int]:
        """The process ids of its workers, of those too that are only finishing what they began."""
        children = Path(f"/proc/{self.pid}/task/{self.pid}/children")
        return [int(pid) for pid in children.read_text().split()]

    def is_settled(self) -> bool:
        """Whether the workers of earlier configurations are gone, connections and all."""
        return len(self.workers()) == WORKERS

    def unaccepted(self) -> int | None:
        """How many connections wait for a worker to accept them; None while nobody listens."""
        own = _hex(self.address)
        for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
            _, local, _, state, queues, *_ = line.split()
            if (local, state) == (own, _LISTENING):
                return int(queues.partition(":")[2], 16)
        return None

    def reloads(self) -> int:
        """How often it was told to read its configuration again, whether it could or not."""
        return self._error_log.read_text().count(" reconfiguring\n")

    def faults(self) -> list[str]:
        """Every line of its log in which something went wrong."""
        return _faults(self._error_log.read_text())

    def _is_ready(self) -> bool:
        # Not by connecting: that would be one more for the workers to accept.
        return self.unaccepted() is not None and self.is_settled()

    def _is_over(self, begin: int) -> bool:
        with self._error_log.open() as log:
            log.seek(begin)
            text = log.read()
        if faults := _faults(text):
            raise LabFault(f"nginx did not reload: {faults[0]}")
        return text.count("gracefully shutting down") >= WORKERS

    def _write_order(self) -> None:
        os.mkfifo(self._folder / "order")
        script = Path(self.reload_or_start_command[0])
        script.write_text(
            _RELOAD_OR_START.format(
                folder=self._folder,
                reload=" ".join(self.reload_command),
                test=" ".join(self.test_command),
            )
        )
        script.chmod(0o755)


def _site(certificates_dir: Path, hostname: str, address: tuple[str, int]) -> str:
    """The example's server block for a hostname of the lab, which answers by itself."""
    text = EXAMPLE_FILE.read_text()
    for shown, own in (
        ("listen 443 ssl;", "listen {}:{} ssl;".format(*address)),
        ("/var/lib/gateway-agent/certificates/", f"{certificates_dir}/"),
        ("relay.cluster-a.example.com", hostname),
        ("proxy_pass http://127.0.0.1:8080;", 'return 200 "$host\\n";'),
    ):
        if shown not in text:
            raise LabFault(f"{EXAMPLE_FILE} does not say {shown!r} any more")
        text = text.replace(shown, own)
    return text


def _hex(address: tuple[str, int]) -> str:
    """An address as the kernel's tables show it."""
    host = int.from_bytes(socket.inet_aton(address[0]), sys.byteorder)
    return f"{host:08X}:{address[1]:04X}"


def _faults(log: str) -> list[str]:
    return [line for line in log.splitlines() if any(level in line for level in _FAULT_LEVELS)]
