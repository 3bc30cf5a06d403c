"""Another person at work in the zones: nsupdate with a key of their own, and looking at a name.

Used by the tests of this folder to set states up, to interfere, and to see what is really there.
"""

import subprocess

import dns.message
import dns.name
import dns.query
import dns.rdatatype

from tests.lab.bind import Tsig
from tests.lab.dns_server import DnsServer

_LIMIT_SECONDS = 5.0


class Hand:
    """Signs with the key given; blocking, as a person is."""

    def __init__(self, server: tuple[str, int], tsig: Tsig) -> None:
        self._server = server
        self._tsig = tsig

    @classmethod
    def at(cls, server: DnsServer) -> "Hand":
        return cls(server.primary, server.hand)

    def update(self, *lines: str) -> None:
        """Send one update of nsupdate's lines, e.g. `add x.example.test 300 A 192.0.2.1`."""
        host, port = self._server
        script = "\n".join(
            [f"server {host} {port}", *(f"update {line}" for line in lines), "send\n"]
        )
        subprocess.run(
            ["nsupdate", "-y", self._tsig.for_command()],
            input=script,
            text=True,
            check=True,
            capture_output=True,
            timeout=_LIMIT_SECONDS,
        )

    def add(self, *records: str) -> None:
        """Add records as a zone file has them, in one update."""
        self.update(*(f"add {record}" for record in records))

    def records(self, name: str) -> set[str]:
        """All records at a name as `TTL TYPE value`."""
        reply = self._ask(name, "ANY")
        owner = dns.name.from_text(name)
        return {
            f"{rrset.ttl} {dns.rdatatype.to_text(rrset.rdtype)} {rdata.to_text()}"
            for rrset in reply.answer
            if rrset.name == owner
            for rdata in rrset
        }

    def serial(self, zone: str) -> int:
        """The zone's serial number, which grows with every change."""
        return int(self._ask(zone, "SOA").answer[0][0].serial)

    def _ask(self, name: str, rdtype: str) -> dns.message.Message:
        query = dns.message.make_query(name, rdtype, flags=0)
        query.use_tsig(self._tsig.key())
        host, port = self._server
        return dns.query.tcp(query, host, port=port, timeout=_LIMIT_SECONDS)
