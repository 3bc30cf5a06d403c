"""Starts BIND as a primary and a secondary that follows it within milliseconds.

Responsible for: the configuration and the first content of the zones, two keys (the gateway's and
another person's), and knowing when both servers answer for every zone.
Must not: change the zones later; tests and the gateway do, by RFC 2136 updates.
Called by: `tests.lab.lab`, the fixture `bind`, DNS and fault tests.

Both servers are also where the zones' NS RRset says: `ns1` is 127.0.0.1, the primary, and `ns2` is
127.0.0.2, where `tests.lab.relay` passes everything on to the secondary under the primary's port
number. So "wait for the zone's NS RRset" is real here, with `nameserver_port` set to that number.
"""

import base64
import secrets
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import dns.exception
import dns.flags
import dns.message
import dns.query
import dns.rcode
import dns.tsig

from tests.lab.ports import LOOPBACK, free_port
from tests.lab.process import Process, find_program

ZONES = ("example.test", "example.net.test")
NS2_ADDRESS = "127.0.0.2"

_ALGORITHM = "hmac-sha256"
_ANSWER_LIMIT_SECONDS = 1.0

# `lock-file`, `pid-file` and `session-keyfile` would otherwise be written under /run, which only
# root may. `max-cache-size`: the default sizes tables by the machine's memory, for a cache that
# an authoritative server never fills.
_OPTIONS = """
options {{
  listen-on port {port} {{ {host}; }};
  listen-on-v6 {{ none; }};
  pid-file none;
  session-keyfile none;
  recursion no;
  dnssec-validation no;
  empty-zones-enable no;
  max-cache-size 2m;
  tcp-clients 1000;
  allow-query {{ any; }};
  allow-transfer {{ key "{transfer_key}"; }};
{following}
}};
controls {{ }};
"""

# What it takes for a secondary to follow at once. Without these BIND waits 5 s before it notifies
# again, limits notifications and the secondary's SOA queries to 20 a second each, and asks a
# primary that was away after 500 s, whatever the zone's SOA says. 200 a second: at far higher rates
# BIND's timers spin, up to a millisecond of a core for each update.
_PRIMARY_FOLLOWING = """
  notify explicit;
  also-notify {{ {secondary_host} port {secondary_port}; }};
  notify-delay 0;
  notify-rate 200;
  startup-notify-rate 200;
  serial-query-rate 200;
  transfers-out 100;
"""
_SECONDARY_FOLLOWING = """
  notify no;
  serial-query-rate 200;
  transfers-in 100;
  transfers-per-ns 100;
  min-refresh-time 1;
  min-retry-time 1;
"""

_PRIMARY_ZONE = """
zone "{zone}" {{
  type primary;
  file "{zone}.zone";
  allow-update {{ key "{gateway_key}"; key "{hand_key}"; }};
}};
"""

_SECONDARY_ZONE = """
zone "{zone}" {{
  type secondary;
  file "{zone}.zone";
  primaries {{ {primary_host} port {primary_port} key "{gateway_key}"; }};
}};
"""

_ZONE_FILE = """
$ORIGIN {zone}.
$TTL 300
@    IN SOA ns1 hostmaster 1 3600 1 86400 60
@    IN NS  ns1
@    IN NS  ns2
ns1  IN A   {ns1_address}
ns2  IN A   {ns2_address}
"""


@dataclass(frozen=True)
class Tsig:
    """A key that both servers know, in the form that `dig -y` and `nsupdate -y` take as well."""

    name: str
    algorithm: str
    secret_base64: str = field(repr=False)

    def for_command(self) -> str:
        """The argument of `-y`."""
        return f"{self.algorithm}:{self.name}:{self.secret_base64}"

    def statement(self) -> str:
        """The line of `named.conf`, and of a key file."""
        secret = self.secret_base64
        return f'key "{self.name}" {{ algorithm {self.algorithm}; secret "{secret}"; }};\n'

    def key(self) -> dns.tsig.Key:
        """What dnspython signs with."""
        return dns.tsig.Key(self.name, self.secret_base64, self.algorithm)


class BindPair:
    """A running primary and secondary.

    `tsig` may update, query and transfer every zone; `hand` belongs to another person, who may
    update and query too. `nameserver_port` is the port of every server named in the zones' NS
    RRsets.
    """

    def __init__(self, folder: Path, zones: Sequence[str]) -> None:
        self.zones = tuple(zones)
        self.tsig = new_key("gateway")
        self.hand = new_key("hand")
        self.primary = (LOOPBACK, free_port((LOOPBACK, NS2_ADDRESS)))
        self.secondary = (LOOPBACK, free_port())
        self.secondary_as_ns2 = (NS2_ADDRESS, self.primary[1])
        self.nameserver_port = self.primary[1]
        self.primary_process = _prepare("primary", folder, self._primary_config())
        self.secondary_process = _prepare("secondary", folder, self._secondary_config())
        self._relay_process = relay_process(
            folder, "ns2-relay", self.secondary_as_ns2, self.secondary
        )
        for zone in zones:
            text = _ZONE_FILE.format(zone=zone, ns1_address=LOOPBACK, ns2_address=NS2_ADDRESS)
            (folder / "primary" / f"{zone}.zone").write_text(text)

    @property
    def pids(self) -> dict[str, int]:
        return {"primary": self.primary_process.pid, "secondary": self.secondary_process.pid}

    def start_primary(self) -> None:
        """Start the primary, or start it again with the zones as they were.

        Raises: LabFault.
        """
        self.primary_process.start(lambda: self._serves(self.primary))

    def start_secondary(self) -> None:
        """Start the secondary, or start it again.

        Raises: LabFault.
        """
        self.secondary_process.start(lambda: self._serves(self.secondary))
        if not self._relay_process.is_running:
            self._relay_process.start(lambda: self._serves(self.secondary_as_ns2))

    def stop(self) -> None:
        """Stop both servers. May be repeated."""
        self._relay_process.stop()
        self.secondary_process.stop()
        self.primary_process.stop()

    def _serves(self, server: tuple[str, int]) -> bool:
        return all(is_authoritative(server, zone) for zone in self.zones)

    def _primary_config(self) -> str:
        following = _PRIMARY_FOLLOWING.format(
            secondary_host=self.secondary[0], secondary_port=self.secondary[1]
        )
        zones = [
            _PRIMARY_ZONE.format(zone=zone, gateway_key=self.tsig.name, hand_key=self.hand.name)
            for zone in self.zones
        ]
        return self._config(self.primary, following, zones)

    def _secondary_config(self) -> str:
        host, port = self.primary
        zones = [
            _SECONDARY_ZONE.format(
                zone=zone, primary_host=host, primary_port=port, gateway_key=self.tsig.name
            )
            for zone in self.zones
        ]
        return self._config(self.secondary, _SECONDARY_FOLLOWING, zones)

    def _config(self, listen: tuple[str, int], following: str, zones: Sequence[str]) -> str:
        keys = [key.statement() for key in (self.tsig, self.hand)]
        options = _OPTIONS.format(
            host=listen[0],
            port=listen[1],
            transfer_key=self.tsig.name,
            following=following,
        )
        return "".join([*keys, options, *zones])


def start_bind_pair(folder: Path, zones: Sequence[str] = ZONES) -> BindPair:
    """Start both servers under `folder`; ready when both answer for every zone.

    Raises: LabFault.
    """
    pair = BindPair(folder, zones)
    try:
        pair.start_primary()
        pair.start_secondary()
    except BaseException:
        pair.stop()
        raise
    return pair


def new_key(name: str, algorithm: str = _ALGORITHM) -> Tsig:
    """A key with a secret that nobody knows yet."""
    return Tsig(name, algorithm, base64.b64encode(secrets.token_bytes(32)).decode())


def named_process(folder: Path, name: str, config: str, *options: str) -> Process:
    """BIND, not started yet, that works in `folder`; `options`: e.g. `-4`, IPv4 only.

    Raises: LabFault.
    """
    config_file = folder / "named.conf"
    config_file.write_text(config)
    # Debian's AppArmor profile confines /usr/sbin/named to /etc/bind and /var; it goes by the
    # path of the program, so a copy may work in the lab's folder.
    program = shutil.copy(find_program("named", "bind9"), folder / "named")
    # -g: in the foreground, the log to stderr.
    return Process(name, [str(program), "-g", *options, "-c", str(config_file)], folder)


def _prepare(name: str, folder: Path, config: str) -> Process:
    own_folder = folder / name
    own_folder.mkdir(mode=0o700)
    return named_process(own_folder, name, config, "-4")


def relay_process(
    folder: Path, name: str, listen: tuple[str, int], target: tuple[str, int]
) -> Process:
    """A program, not started yet, that passes on to `target` what comes to `listen`."""
    command = [sys.executable, "-I", str(Path(__file__).with_name("relay.py"))]
    command += ["--listen", "{}:{}".format(*listen), "--to", "{}:{}".format(*target)]
    return Process(name, command, folder)


def is_authoritative(server: tuple[str, int], zone: str) -> bool:
    """Does the server answer for the zone, as one that has it?"""
    query = dns.message.make_query(zone, "SOA", flags=0)
    try:
        # TCP: a server that is not there yet refuses at once, where UDP waits in silence.
        answer = dns.query.tcp(query, server[0], timeout=_ANSWER_LIMIT_SECONDS, port=server[1])
    except (OSError, dns.exception.DNSException):
        return False
    return answer.rcode() == dns.rcode.NOERROR and bool(answer.flags & dns.flags.AA)
