"""One BIND with options of a test's own, e.g. `minimal-responses yes`."""

import base64
import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import dns.exception
import dns.flags
import dns.message
import dns.query

from tests.lab.bind import Tsig
from tests.lab.ports import LOOPBACK, free_port
from tests.lab.process import Process, find_program

_CONFIG = """
options {{
  listen-on port {port} {{ {host}; }};
  listen-on-v6 {{ none; }};
  pid-file none; session-keyfile none;
  recursion no; dnssec-validation no; empty-zones-enable no; notify no;
  max-cache-size 2m;
  {options}
}};
controls {{ }};
key "{key.name}" {{ algorithm {key.algorithm}; secret "{key.secret_base64}"; }};
"""
_ZONE = """
zone "{name}" {{ type primary; file "{name}.zone"; {permission} }};
"""
_ZONE_FILE = """
$ORIGIN {name}.
$TTL 300
@ IN SOA ns1 hostmaster 1 3600 600 86400 60
@ IN NS ns1
ns1 IN A 127.0.0.1
{records}
"""


@dataclass(frozen=True)
class LoneBind:
    """A running server and the key that it knows."""

    primary: tuple[str, int]
    tsig: Tsig
    process: Process


@contextmanager
def lone_bind(
    folder: Path,
    zones: Mapping[str, str],
    *,
    options: str = "",
    permission: str = 'allow-update { key "gateway"; };',
    algorithm: str = "hmac-sha256",
) -> Iterator[LoneBind]:
    """Serve `zones`: their names, and their records as lines of a zone file."""
    tsig = Tsig("gateway", algorithm, base64.b64encode(secrets.token_bytes(32)).decode())
    server = (LOOPBACK, free_port())
    config = _CONFIG.format(host=server[0], port=server[1], options=options, key=tsig)
    for name, records in zones.items():
        config += _ZONE.format(name=name, permission=permission)
        (folder / f"{name}.zone").write_text(_ZONE_FILE.format(name=name, records=records))
    (folder / "named.conf").write_text(config)
    # A copy, since Debian's AppArmor profile goes by the program's path (see tests.lab.bind).
    program = shutil.copy(find_program("named", "bind9"), folder / "named")
    process = Process("named", [str(program), "-g", "-4", "-c", str(folder / "named.conf")], folder)
    process.start(lambda: all(_serves(server, name) for name in zones))
    try:
        yield LoneBind(server, tsig, process)
    finally:
        process.stop()


def _serves(server: tuple[str, int], zone: str) -> bool:
    query = dns.message.make_query(zone, "SOA", flags=0)
    try:
        answer = dns.query.tcp(query, server[0], timeout=1.0, port=server[1])
    except (OSError, dns.exception.DNSException):
        return False
    return bool(answer.flags & dns.flags.AA)
