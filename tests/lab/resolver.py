"""Starts BIND as a resolver that knows the lab's zones only.

Responsible for: following aliases from one zone into another, as the resolver of a real CA does and
an authoritative server does not. It caches nothing, so that what was asked too early is no harm.
Must not: answer for anything else; there is no way to the root from here.
Called by: tests whose CA must follow an alias.
"""

from collections.abc import Iterable
from pathlib import Path

import dns.exception
import dns.message
import dns.query
import dns.rcode

from tests.lab.bind import named_process
from tests.lab.ports import LOOPBACK, free_port

_ANSWER_LIMIT_SECONDS = 1.0

_CONFIG = """
options {{
  listen-on port {port} {{ {host}; }};
  listen-on-v6 {{ none; }};
  pid-file none; session-keyfile none;
  recursion yes; allow-recursion {{ any; }}; dnssec-validation no; empty-zones-enable no;
  max-cache-size 2m; max-cache-ttl 0; max-ncache-ttl 0;
}};
controls {{ }};
"""

_ZONE = """
zone "{zone}" {{ type forward; forward only; forwarders {{ {host} port {port}; }}; }};
"""


class Resolver:
    """A running resolver; `address` is where it listens."""

    def __init__(self, folder: Path, zones: Iterable[str], primary: tuple[str, int]) -> None:
        self.address = (LOOPBACK, free_port())
        self._zones = tuple(zones)
        config = _CONFIG.format(host=self.address[0], port=self.address[1])
        for zone in self._zones:
            config += _ZONE.format(zone=zone, host=primary[0], port=primary[1])
        self._process = named_process(folder, "resolver", config, "-4")

    def start(self) -> None:
        """Start it; ready when it finds every zone. Raises: LabFault."""
        self._process.start(lambda: all(map(self._finds, self._zones)))

    def stop(self) -> None:
        """Stop it. May be repeated."""
        self._process.stop()

    def _finds(self, zone: str) -> bool:
        host, port = self.address
        query = dns.message.make_query(zone, "SOA")
        try:
            answer = dns.query.tcp(query, host, timeout=_ANSWER_LIMIT_SECONDS, port=port)
        except (OSError, dns.exception.DNSException):
            return False
        return answer.rcode() == dns.rcode.NOERROR and bool(answer.answer)


def start_resolver(folder: Path, zones: Iterable[str], primary: tuple[str, int]) -> Resolver:
    """Start a resolver in `folder` that asks `primary` for `zones`. Raises: LabFault."""
    resolver = Resolver(folder, zones, primary)
    resolver.start()
    return resolver
