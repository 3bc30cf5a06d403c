"""Starts a BIND that follows another server's zones, whichever program that is.

Responsible for: its configuration, and knowing when it has every zone. Must not: know the primary's
kind. Called by: the tests of `tests/servers`.
"""

import shutil
from pathlib import Path

from tests.lab.bind import is_authoritative
from tests.lab.dns_server import DnsServer
from tests.lab.process import Process, find_program

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
_KEY = """
key "{key.name}" {{ algorithm {key.algorithm}; secret "{key.secret_base64}"; }};
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
        config += _KEY.format(key=server.tsig)
        by = f' key "{server.tsig.name}"'
    for zone in server.zones:
        config += _ZONE.format(
            zone=zone, primary_host=primary_host, primary_port=primary_port, by=by
        )
    config_file = folder / "named.conf"
    config_file.write_text(config)
    # A copy, since Debian's AppArmor profile goes by the program's path (see tests.lab.bind).
    program = shutil.copy(find_program("named", "bind9"), folder / "named")
    process = Process("secondary", [str(program), "-g", "-4", "-c", str(config_file)], folder)
    process.start(lambda: all(is_authoritative(listen, zone) for zone in server.zones))
    return process
