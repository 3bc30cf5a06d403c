"""Starts PowerDNS as a primary, made by the commands that `docs/dns-servers.md` shows.

Responsible for: the configuration, the SQLite database and the first content of the zones, and
knowing when the server answers for every zone. Must not: change the zones later; tests and the
gateway do, by RFC 2136 updates. Called by: the tests of `tests/servers`.
"""

import sqlite3
import subprocess
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from tests.lab.bind import is_authoritative, new_key
from tests.lab.ports import LOOPBACK, free_port
from tests.lab.process import LabFault, Process, find_program

SCHEMA = Path("/usr/share/pdns-backend-sqlite3/schema/schema.sqlite3.sql")

DOCUMENTED_CONFIG = """\
launch=gsqlite3
gsqlite3-database={database}
local-address={address}
local-port={port}
primary=yes
dnsupdate=yes
allow-dnsupdate-from={clients}
cache-ttl=0
query-cache-ttl=0
negquery-cache-ttl=0
"""

DOCUMENTED_KEY = """\
pdnsutil import-tsig-key {key.name} {key.algorithm} {key.secret_base64}
"""

DOCUMENTED_ZONE = """\
pdnsutil load-zone {zone} {zone_file}
pdnsutil set-kind {zone} primary
pdnsutil set-meta {zone} TSIG-ALLOW-DNSUPDATE {keys}
pdnsutil set-meta {zone} TSIG-ALLOW-AXFR {key.name}
pdnsutil set-meta {zone} SOA-EDIT-DNSUPDATE INCREASE
pdnsutil set-meta {zone} NOTIFY-DNSUPDATE 1
pdnsutil set-meta {zone} ALSO-NOTIFY {secondary}
"""

SIGNED_CONFIG = """\
gsqlite3-dnssec=yes
"""
SIGNED_ZONE = """\
pdnsutil secure-zone {zone}
"""

# What only the lab needs: no file under /run, no question to the Internet, and no NOTIFY to whoever
# listens at port 53 of the zone's name servers.
_LAB = """
socket-dir={folder}
only-notify=
write-pid=no
security-poll-suffix=
disable-syslog=yes
log-timestamp=yes
loglevel=5
"""

_ZONE_FILE = """\
$ORIGIN {zone}.
$TTL 300
@    IN SOA ns1 hostmaster 1 3600 1 86400 60
@    IN NS  ns1
ns1  IN A   {address}
"""


class PowerDnsServer:
    """A running primary; see `DnsServer`. `secondary` is where it sends NOTIFY to."""

    def __init__(
        self,
        folder: Path,
        zones: Sequence[str],
        *,
        algorithm: str = "hmac-sha256",
        signed: bool = False,
    ) -> None:
        self.zones = tuple(zones)
        self.tsig, self.hand = new_key("gateway", algorithm), new_key("hand")
        self.primary = (LOOPBACK, free_port())
        self.secondary = (LOOPBACK, free_port())
        self.nameserver_port = self.primary[1]
        self._folder = folder
        self._make_database(signed=signed)
        program = find_program("pdns_server", "pdns-server")
        command = [program, f"--config-dir={folder}", "--daemon=no", "--guardian=no"]
        self.process = Process("pdns_server", command, folder)

    def start(self) -> None:
        """Start it, or start it again with the zones as they were.

        Raises: LabFault.
        """
        self.process.start(lambda: all(is_authoritative(self.primary, z) for z in self.zones))

    def stop(self) -> None:
        """Stop it. May be repeated."""
        self.process.stop()

    def run_commands(self, commands: str) -> None:
        """Run lines of `pdnsutil …` as a shell would, on this server's configuration.

        Raises: LabFault.
        """
        pdnsutil = find_program("pdnsutil", "pdns-server")
        for line in commands.splitlines():
            words = [pdnsutil, f"--config-dir={self._folder}", *line.split()[1:]]
            done = subprocess.run(words, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise LabFault(f"{line.split()[1]} failed: {done.stderr or done.stdout}")

    def _make_database(self, *, signed: bool) -> None:
        database, host, port = self._folder / "pdns.sqlite3", *self.primary
        config = DOCUMENTED_CONFIG.format(
            database=database, address=host, port=port, clients=f"{LOOPBACK}/32"
        )
        config += SIGNED_CONFIG if signed else ""
        (self._folder / "pdns.conf").write_text(config + _LAB.format(folder=self._folder))
        if not SCHEMA.exists():
            raise LabFault(f"{SCHEMA} is missing: install the Debian package pdns-backend-sqlite3")
        with closing(sqlite3.connect(database)) as connection:
            connection.executescript(SCHEMA.read_text())
        commands = [DOCUMENTED_KEY.format(key=key) for key in (self.tsig, self.hand)]
        commands += [self._zone_commands(zone) for zone in self.zones]
        if signed:
            commands += [SIGNED_ZONE.format(zone=zone) for zone in self.zones]
        self.run_commands("".join(commands))

    def _zone_commands(self, zone: str) -> str:
        zone_file = self._folder / f"{zone}.zone"
        zone_file.write_text(_ZONE_FILE.format(zone=zone, address=LOOPBACK))
        return DOCUMENTED_ZONE.format(
            zone=zone,
            zone_file=zone_file,
            key=self.tsig,
            keys=f"{self.tsig.name} {self.hand.name}",
            secondary="{}:{}".format(*self.secondary),
        )
