"""One BIND with a configuration of a test's own: options, a policy, views, or one of the docs."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import dns.exception
import dns.flags
import dns.message
import dns.query
import dns.rcode
import dns.rdatatype

from tests.lab.bind import Tsig, named_process, new_key
from tests.lab.ports import LOOPBACK, LOOPBACK_V6, free_port
from tests.lab.process import Process, wait_until

_DOCUMENT = Path(__file__).parents[3] / "docs" / "dns-servers.md"

_OPTIONS = """
options {{
  listen-on port {port} {{ {host}; }};
  listen-on-v6 {{ none; }};
  pid-file none; session-keyfile none;
  recursion no; dnssec-validation no; empty-zones-enable no; notify no;
  max-cache-size 2m;
  {options}
}};
controls {{ }};
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

    def serves(self, zone: str, tsig: Tsig | None = None) -> bool:
        """Does it answer for the zone with authority, when asked with this key or with none?"""
        answer = _ask(self.primary, zone, tsig)
        return answer is not None and bool(answer.flags & dns.flags.AA)

    def refuses(self, zone: str) -> bool:
        """Does it answer nobody for a zone that it has loaded? Before, it says SERVFAIL."""
        answer = _ask(self.primary, zone, None)
        return answer is not None and answer.rcode() == dns.rcode.REFUSED

    def signs(self, zone: str) -> bool:
        """Does it answer for the zone with signatures?"""
        answer = _ask(self.primary, zone, None)
        found = () if answer is None else answer.answer
        return any(rrset.rdtype == dns.rdatatype.RRSIG for rrset in found)


@contextmanager
def lone_bind(
    folder: Path,
    zones: Mapping[str, str],
    *,
    options: str = "",
    permission: str = 'allow-update { key "gateway"; };',
    algorithm: str = "hmac-sha256",
    with_ipv6: bool = False,
) -> Iterator[LoneBind]:
    """Serve `zones`: their names, and their records as lines of a zone file.

    `with_ipv6`: at ::1 too, with the same port.
    """
    key = new_key("gateway", algorithm)
    port = free_port((LOOPBACK, LOOPBACK_V6) if with_ipv6 else (LOOPBACK,))
    if with_ipv6:
        options += f"listen-on-v6 port {port} {{ {LOOPBACK_V6}; }};"
    for name, records in zones.items():
        write_zone(folder, name, records)
    config = "".join(_ZONE.format(name=name, permission=permission) for name in zones)

    def is_ready(server: LoneBind) -> bool:
        return all(server.serves(name) for name in zones)

    with bind_with(folder, [key], config, is_ready, options=options, port=port) as server:
        yield server


@contextmanager
def signed_bind(
    folder: Path, zones: Mapping[str, str], signing: str, *, statements: str = ""
) -> Iterator[LoneBind]:
    """Serve signed `zones`; ready when every one answers with signatures.

    `signing` is what each zone says of it, `statements` the policies that this names.
    """
    for name, records in zones.items():
        write_zone(folder, name, records)
    permission = f'allow-update {{ key "gateway"; }}; {signing}'
    config = statements
    config += "".join(_ZONE.format(name=name, permission=permission) for name in zones)

    def is_ready(server: LoneBind) -> bool:
        return all(server.signs(name) for name in zones)

    with bind_with(folder, [new_key("gateway")], config, is_ready) as server:
        yield server


@contextmanager
def documented_bind(
    folder: Path,
    title: str,
    zones: Mapping[str, str],
    *,
    keys: Sequence[Tsig] = (),
    is_ready: Callable[[LoneBind], bool] | None = None,
    replacing: Mapping[str, str] | None = None,
    port: int | None = None,
) -> Iterator[LoneBind]:
    """Run what docs/dns-servers.md has under `<!-- named.conf: title -->`, in `folder`.

    Its paths are made the folder's; what it includes are files with `keys`, one a file. `zones` are
    the zone files and their records; a name with a slash is another view's. `replacing`: addresses.
    """
    given = list(keys) or [new_key("gateway")]
    for key in given:
        (folder / f"{key.name}.key").write_text(key.statement())
    for name, records in zones.items():
        write_zone(folder, name, records)
    config = re.sub(r'"/(?:etc|var/lib)/bind(/[^"]*)?"', rf'"{folder}\1"', documented(title))
    for address, own in (replacing or {}).items():
        config = config.replace(f"{address};", f"{own};").replace(f"{address} key", f"{own} key")
    ready = is_ready or (lambda server: all(server.serves(name) for name in zones))
    with bind_with(folder, given, config, ready, defines_keys=False, port=port) as server:
        yield server


def documented(title: str) -> str:
    """The block of docs/dns-servers.md after the comment that has this title."""
    comment = re.escape(f"<!-- named.conf: {title} -->")
    found = re.search(rf"{comment}\n+```\n(.*?)^```$", _DOCUMENT.read_text(), re.S | re.M)
    assert found is not None, f"no block titled {title}"
    return found[1]


def write_zone(folder: Path, name: str, records: str = "") -> None:
    """Write `<name>.zone`; the name may have the folder of a view before it, as in `inside/…`."""
    file = folder / f"{name}.zone"
    file.parent.mkdir(exist_ok=True)
    file.write_text(_ZONE_FILE.format(name=name.rpartition("/")[2], records=records))


@contextmanager
def bind_with(
    folder: Path,
    keys: Sequence[Tsig],
    config: str,
    is_ready: Callable[[LoneBind], bool],
    *,
    options: str = "",
    defines_keys: bool = True,
    port: int | None = None,
) -> Iterator[LoneBind]:
    """Run BIND on `config`; the first of `keys` is the server's `tsig`."""
    address = (LOOPBACK, port or free_port())
    text = _OPTIONS.format(host=address[0], port=address[1], options=options)
    text += "".join(key.statement() for key in keys if defines_keys)
    process = named_process(folder, "named", text + config)
    server = LoneBind(address, keys[0], process)
    process.start(lambda: server_answers(server))
    try:
        wait_until(lambda: not process.is_running or is_ready(server), "named serves its zones")
        assert process.is_running, process.log_tail()
        yield server
    finally:
        process.stop()


def server_answers(server: LoneBind) -> bool:
    """Does it answer at all?"""
    return _ask(server.primary, ".", None) is not None


def _ask(server: tuple[str, int], zone: str, tsig: Tsig | None) -> dns.message.Message | None:
    query = dns.message.make_query(zone, "SOA", flags=0, want_dnssec=True)
    if tsig is not None:
        query.use_tsig(tsig.key())
    try:
        return dns.query.tcp(query, server[0], timeout=1.0, port=server[1])
    except (OSError, dns.exception.DNSException):
        return None
