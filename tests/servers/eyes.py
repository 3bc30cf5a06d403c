"""Another person who sees the zone itself: by zone transfer, since not every server tells by ANY.

What a wildcard would make up is not in it. Called by: the tests of this package.
"""

import re
import subprocess

import dns.name
import dns.query
import dns.rdatatype
import dns.xfr
import dns.zone

from tests.integration.dns.hand import Hand
from tests.lab.dns_server import DnsServer

_LIMIT_SECONDS = 5.0
_ANSWERED = re.compile(r"answered \w+( without a signature)?")


def taken(hand: Hand, record: str) -> str:
    """Add one record; what nsupdate makes of the answer."""
    try:
        hand.add(record)
    except subprocess.CalledProcessError as error:
        return str(error.stderr).strip().removeprefix("update failed: ")
    return "taken"


def said(detail: str) -> str:
    """The part of a fault's sentence that is the server's."""
    found = _ANSWERED.search(detail)
    return found[0] if found else detail


class Eyes:
    """Reads zones of one server with the gateway's key."""

    def __init__(self, server: DnsServer) -> None:
        self._server = server
        self._hand = Hand.at(server)

    def records(self, name: str) -> set[str]:
        """All records at a name as `TTL TYPE value`."""
        apex = max((z for z in self._server.zones if f".{name}".endswith(f".{z}")), key=len)
        node = self.contents(apex).get_node(dns.name.from_text(name))
        return {
            f"{rdataset.ttl} {dns.rdatatype.to_text(rdataset.rdtype)} {rdata.to_text()}"
            for rdataset in node or ()
            for rdata in rdataset
        }

    def serial(self, zone: str = "example.test") -> int:
        """The zone's serial number."""
        return self._hand.serial(zone)

    def contents(self, zone_name: str) -> dns.zone.Zone:
        """The whole zone."""
        key = self._server.tsig.key()
        zone = dns.zone.Zone(zone_name, relativize=False)
        query, _ = dns.xfr.make_query(zone, keyring=key, keyalgorithm=key.algorithm)
        host, port = self._server.primary
        dns.query.inbound_xfr(host, zone, query, port=port, lifetime=_LIMIT_SECONDS)
        return zone
