"""Starts Knot DNS as a primary, with the configuration that `docs/dns-servers.md` shows.

Responsible for: the configuration and the first content of the zones, and knowing when the server
answers for every zone. Must not: change the zones later; tests and the gateway do, by RFC 2136
updates. Called by: the tests of `tests/servers`.
"""

import shutil
from collections.abc import Sequence
from pathlib import Path

from tests.lab.bind import is_authoritative, new_key
from tests.lab.ports import LOOPBACK, free_port
from tests.lab.process import Process, find_program

DOCUMENTED = """\
server:
    listen: {listen}

key:
  - id: {key.name}
    algorithm: {key.algorithm}
    secret: {key.secret_base64}

remote:
  - id: secondary
    address: {secondary}

acl:
  - id: {key.name}
    key: {key.name}
    action: [query, update, transfer]
    update-type: [{update_types}]
  - id: secondary
    address: {secondary_host}
    action: transfer

template:
  - id: default
    storage: {storage}
    file: "%s.zone"
    zonefile-sync: 10m
    notify: secondary
    acl: [{acls}]
{further}
zone:
  - domain: {zone}
"""

SIGNED = """\
    dnssec-signing: on
"""

# What only the lab needs: no file under /run, which only root may write, and another person's key.
_LAB = """
server:
    rundir: {folder}

database:
    storage: {folder}

log:
  - target: stderr
    any: info

key:
  - id: {key.name}
    algorithm: {key.algorithm}
    secret: {key.secret_base64}

acl:
  - id: {key.name}
    key: {key.name}
    action: [query, update]
"""
_FURTHER_ZONE = """
zone:
  - domain: {zone}
"""

_ZONE_FILE = """\
$ORIGIN {zone}.
$TTL 300
@    IN SOA ns1 hostmaster 1 3600 1 86400 60
@    IN NS  ns1
ns1  IN A   {address}
"""


class KnotServer:
    """A running primary; see `DnsServer`. `secondary` is where it sends NOTIFY to."""

    def __init__(
        self,
        folder: Path,
        zones: Sequence[str],
        *,
        algorithm: str = "hmac-sha256",
        update_types: str = "A, AAAA, TXT",
        signed: bool = False,
    ) -> None:
        self.zones = tuple(zones)
        self.tsig, self.hand = new_key("gateway", algorithm), new_key("hand")
        self._update_types = update_types
        self._further = SIGNED if signed else ""
        self.primary = (LOOPBACK, free_port())
        self.secondary = (LOOPBACK, free_port())
        self.nameserver_port = self.primary[1]
        config_file = folder / "knot.conf"
        config_file.write_text(self._config(folder))
        for zone in zones:
            text = _ZONE_FILE.format(zone=zone, address=LOOPBACK)
            (folder / f"{zone}.zone").write_text(text)
        # A copy, as for BIND: a profile of AppArmor goes by the program's path.
        program = shutil.copy(find_program("knotd", "knot"), folder / "knotd")
        self.process = Process("knotd", [str(program), "-c", str(config_file)], folder)

    def start(self) -> None:
        """Start it, or start it again with the zones as they were.

        Raises: LabFault.
        """
        self.process.start(lambda: all(is_authoritative(self.primary, z) for z in self.zones))

    def stop(self) -> None:
        """Stop it. May be repeated."""
        self.process.stop()

    def _config(self, folder: Path) -> str:
        documented = DOCUMENTED.format(
            listen="{}@{}".format(*self.primary),
            key=self.tsig,
            secondary="{}@{}".format(*self.secondary),
            secondary_host=self.secondary[0],
            storage=folder,
            update_types=self._update_types,
            further=self._further,
            acls=f"{self.tsig.name}, secondary, {self.hand.name}",
            zone=self.zones[0],
        )
        further = [_FURTHER_ZONE.format(zone=zone) for zone in self.zones[1:]]
        # An ACL is known before a template names it.
        return "".join([_LAB.format(folder=folder, key=self.hand), "\n", documented, *further])
