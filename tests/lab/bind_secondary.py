"""Starts a BIND that follows another server's zones, whichever program that is.

Responsible for: its configuration, and knowing when it has every zone. Must not: know the primary's
kind. Called by: the tests of `tests/servers`.
"""

from pathlib import Path

from tests.lab.bind import is_authoritative, named_process
from tests.lab.dns_server import DnsServer
from tests.lab.process import Process

# The retry and refresh times: a NOTIFY that came too early shall not cost BIND's 500 s.
_CONFIG = """
options {{
  listen-on port {port} {{ {host}; }};
  listen-on-v6 {{ none; }};
  pid-file none; session-keyfile none;
  recursion no; dnssec-validation no; empty-zones-enable no; notify no;
  max-cache-size 2m; serial-query-rate 10000;
  allow-notify {{ {primary_host}; }};
}};
controls {{ }};
"""
_ZONE = """
zone "{zone}" {{
  type secondary;
  file "{zone}.zone";
  primaries {{ {primary_host} port {primary_port}{by}; }};
}};
"""


def start_bind_secondary(
    folder: Path, server: DnsServer, listen: tuple[str, int], *, has_key: bool = False
) -> Process:
    """Follow all zones of a running server, at `listen`, where it sends NOTIFY to.

    Without a key it transfers by its address, and takes no NOTIFY that is signed.

    Raises: LabFault.
    """
    primary_host, primary_port = server.primary
    config = _CONFIG.format(host=listen[0], port=listen[1], primary_host=primary_host)
    by = ""
    if has_key:
        config += server.tsig.statement()
        by = f' key "{server.tsig.name}"'
    for zone in server.zones:
        config += _ZONE.format(
            zone=zone, primary_host=primary_host, primary_port=primary_port, by=by
        )
    process = named_process(folder, "secondary", config, "-4")
    process.start(lambda: all(is_authoritative(listen, zone) for zone in server.zones))
    return process
