"""Starts nginx in front of several gateways, with the configuration that the docs show.

Responsible for: the proxy on a free loopback port, without TLS, over the gateways' own ports.
Must not: know the gateways otherwise; they come and go behind it.
Called by: tests of several gateways, `scripts/rolling-restart`.

`docs/examples/nginx-gateways/nginx.conf` is what is run: what is measured here is what an operator
copies.
"""

import re
from collections.abc import Sequence
from pathlib import Path

from tests.lab.nginx_process import TEMPORARY_PATHS, ending_with_us, nginx_command
from tests.lab.ports import LOOPBACK, accepts_connections, free_port
from tests.lab.process import LabFault, Process

EXAMPLE_FILE = Path(__file__).parents[2] / "docs" / "examples" / "nginx-gateways" / "nginx.conf"

_MAIN = """\
daemon off;
worker_processes 2;
pid {folder}/nginx.pid;
error_log {folder}/error.log warn;
events {{ worker_connections 1024; }}
http {{
    access_log {folder}/access.log;
    {temporary_paths}
    include {folder}/site.conf;
}}
"""


class NginxBeforeGateways:
    """An nginx over gateways at these ports, not started yet."""

    def __init__(self, folder: Path, ports: Sequence[int]) -> None:
        self.port = free_port()
        self.url = f"http://{LOOPBACK}:{self.port}/typedrequest"
        self.error_log = folder / "error.log"
        folder.mkdir()
        (folder / "temporary").mkdir()
        (folder / "site.conf").write_text(_site(self.port, ports))
        temporary_paths = TEMPORARY_PATHS.format(folder=folder)
        main = _MAIN.format(folder=folder, temporary_paths=temporary_paths)
        (folder / "nginx.conf").write_text(main)
        self.process = Process("nginx", ending_with_us(nginx_command(folder)), folder)

    def start(self) -> None:
        """Start it. Raises: LabFault."""
        self.process.start(lambda: accepts_connections(self.port))

    def stop(self) -> None:
        """Stop it. May be repeated."""
        self.process.stop()


def _site(port: int, gateway_ports: Sequence[int]) -> str:
    text = EXAMPLE_FILE.read_text()
    for number, gateway_port in enumerate(gateway_ports, start=11):
        text = _replaced(text, f"server 192.0.2.{number}:8053", f"server {LOOPBACK}:{gateway_port}")
    text = _replaced(text, "listen 443 ssl;", f"listen {LOOPBACK}:{port};")
    return re.sub(r"^ *ssl_.*$", "", text, flags=re.MULTILINE)


def _replaced(text: str, shown: str, own: str) -> str:
    if shown not in text:
        raise LabFault(f"{EXAMPLE_FILE} does not say {shown!r} any more")
    return text.replace(shown, own)
