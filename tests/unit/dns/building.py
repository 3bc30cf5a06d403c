"""Makes the values that these tests are about: zones, owners, markers, observations, replies."""

from collections.abc import Iterable, Sequence

import dns.flags
import dns.message
import dns.rdata
import dns.rdataclass
import dns.rrset
from dns.rcode import Rcode
from dns.rdatatype import RdataType

from gateway.contract import DnsRecord
from gateway.contract.names import AppId, ClientId, Hostname, ZoneName
from gateway.dns.marker import MarkerKey, Markers
from gateway.dns.names import to_name
from gateway.dns.observe import Observation
from gateway.dns.owner import Owner
from gateway.dns.reading import Reply
from gateway.dns.records import Rdata, RRset
from gateway.dns.zones import Endpoint, TsigKey, Zone

ZONE = Zone(
    ZoneName("example.test"),
    Endpoint("192.0.2.53", 53),
    TsigKey("gateway", "hmac-sha256", b"0123456789abcdef0123456789abcdef"),
)
HOSTNAME = Hostname("relay.example.test")
NAME = to_name(HOSTNAME)

OWNER = Owner(ClientId("relay"), AppId("app:one"), HOSTNAME)
OTHER = Owner(ClientId("other"), AppId("app:one"), HOSTNAME)

MARKERS = Markers([MarkerKey("new", b"n" * 32), MarkerKey("old", b"o" * 32)])
OLD_MARKERS = Markers([MarkerKey("old", b"o" * 32)])
FOREIGN_MARKERS = Markers([MarkerKey("new", b"f" * 32)])

V4 = DnsRecord(type="A", value="192.0.2.1", ttl=300)
V4_OTHER = DnsRecord(type="A", value="192.0.2.2", ttl=300)
V6 = DnsRecord(type="AAAA", value="2001:db8::1", ttl=300)


def marker_of(record: DnsRecord, owner: Owner = OWNER, markers: Markers = MARKERS) -> str:
    return markers.sign(owner, record.type, record.value)


def rdata(type_: str, text: str) -> Rdata:
    return Rdata.of(dns.rdata.from_text(dns.rdataclass.IN, RdataType[type_], text))


def rrset(type_: str, *texts: str, ttl: int = 300) -> RRset:
    return RRset.of(RdataType[type_], ttl, [rdata(type_, text) for text in texts])


def txt(*texts: str, ttl: int = 300) -> RRset:
    return rrset("TXT", *texts, ttl=ttl)


A_OURS = rrset("A", V4.value)
AAAA_OURS = rrset("AAAA", V6.value)
A_EDITED = rrset("A", "203.0.113.7")
SPF = '"v=spf1 -all"'


def observed(*rrsets: RRset, name: str = HOSTNAME) -> Observation:
    in_order = tuple(sorted(rrsets, key=lambda each: each.rdtype))
    return Observation(to_name(name), ZONE.apex, rrsets=in_order)


def reply(
    *,
    answer: Sequence[str] = (),
    authority: Sequence[str] = (),
    authoritative: bool = True,
    rcode: Rcode = Rcode.NOERROR,
    name: str = HOSTNAME,
) -> Reply:
    """A reply to an ANY query; sections as lines of a zone file with absolute names."""
    query = dns.message.make_query(to_name(name), RdataType.ANY, flags=0)
    message = dns.message.make_response(query)
    message.set_rcode(rcode)
    if authoritative:
        message.flags |= dns.flags.AA
    message.answer.extend(_rrsets(answer))
    message.authority.extend(_rrsets(authority))
    return Reply.of(message)


def _rrsets(lines: Iterable[str]) -> list[dns.rrset.RRset]:
    rrsets = []
    for line in lines:
        name, ttl, type_, *values = line.split(maxsplit=3)
        rrsets.append(dns.rrset.from_text(to_name(name), int(ttl), "IN", type_, *values))
    return rrsets
