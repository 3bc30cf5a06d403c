"""Records as values that can be compared, and the few that the gateway makes itself.

Responsible for parsed values: two records are the same when their data are, however a server spells
them. Must not decide or send anything. Used by all of `dns`.

The data of a record are bytes here and no object of dnspython's, which takes 0.03 ms to make from a
message and 0.008 ms each time that it is hashed or compared: a sync does that a dozen times.
dnspython is asked about types other than addresses and texts.
"""

import ipaddress
import socket
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from operator import attrgetter
from typing import Final

import dns.name
import dns.rdata
import dns.rdatatype
from dns.rdataclass import RdataClass
from dns.rdatatype import RdataType

from gateway.dns.names import to_text
from gateway.dns.outcome import FoundRecord

A = RdataType.A
AAAA = RdataType.AAAA
TXT = RdataType.TXT
CNAME = RdataType.CNAME

ADDRESS_TYPES = (A, AAAA)

PLAIN_TYPES = (A, AAAA, TXT)
"""Types whose data are bytes without names in them, and are read here."""

_MOST_TEXT_BYTES: Final = 255


@dataclass(frozen=True, slots=True)
class Rdata:
    """One record's data; equal when they mean the same.

    `canonical` is what DNSSEC signs (RFC 4034, 6.2), `wire` the same as the server spells it, names
    written whole. They differ at most where there are names in the data.
    """

    rdtype: RdataType = field(hash=False)
    canonical: bytes
    wire: bytes = field(compare=False)

    @classmethod
    def of(cls, rdata: dns.rdata.Rdata) -> "Rdata":
        """As dnspython has read it, whatever its type."""
        wire = rdata.to_wire() or b""
        canonical = wire if rdata.rdtype in PLAIN_TYPES else rdata.to_digestable()
        return cls(rdata.rdtype, canonical, wire)

    @classmethod
    def plain(cls, rdtype: RdataType, wire: bytes) -> "Rdata":
        """Of one of the `PLAIN_TYPES`."""
        return cls(rdtype, wire, wire)

    def by_dnspython(self) -> dns.rdata.Rdata:
        """In dnspython's form, with the parts that a type has."""
        return dns.rdata.from_wire(RdataClass.IN, self.rdtype, self.wire, 0, len(self.wire))

    def to_text(self) -> str:
        """As in a zone file."""
        if self.rdtype == A:
            return socket.inet_ntoa(self.wire)
        return self.by_dnspython().to_text()


_canonical = attrgetter("canonical")


@dataclass(frozen=True, slots=True)
class RRset:
    """All records of one type at one name; make it with `of`, so that equal sets are equal."""

    rdtype: RdataType
    ttl: int
    rdatas: tuple[Rdata, ...]

    @classmethod
    def of(cls, rdtype: RdataType, ttl: int, rdatas: Iterable[Rdata]) -> "RRset":
        """From records in any order: a server rotates them."""
        distinct = tuple(rdatas)
        if len(distinct) > 1:
            distinct = tuple(sorted(set(distinct), key=_canonical))
        return cls(rdtype, ttl, distinct)


def is_plain_data(rdtype: RdataType, wire: bytes) -> bool:
    """Have the data of one of the `PLAIN_TYPES` the form that such data must have?"""
    if rdtype == TXT:
        return bool(wire) and _strings_end(wire) == len(wire)
    return len(wire) == (4 if rdtype == A else 16)


def _strings_end(wire: bytes) -> int:
    at = 0
    while at < len(wire):
        at += 1 + wire[at]
    return at


@lru_cache(1024)
def address_rdata(type_: str, value: str) -> Rdata:
    """An A or AAAA record's data from the contract's canonical text."""
    family = socket.AF_INET if type_ == "A" else socket.AF_INET6
    return Rdata.plain(RdataType[type_], socket.inet_pton(family, value))


def address_value(rdata: Rdata) -> str:
    """The contract's canonical text of an A or AAAA record's data."""
    if rdata.rdtype == A:
        return socket.inet_ntoa(rdata.wire)
    return str(ipaddress.ip_address(rdata.wire))


def txt_rdata(text: str) -> Rdata:
    """A TXT record's data of one ASCII string of at most 255 characters."""
    encoded = text.encode("ascii")
    if len(encoded) > _MOST_TEXT_BYTES:
        raise ValueError("a TXT record's string has at most 255 characters")
    return Rdata.plain(TXT, len(encoded).to_bytes(1, "big") + encoded)


def txt_strings(rdata: Rdata) -> tuple[bytes, ...]:
    """The strings of a TXT record's data."""
    strings, at, wire = [], 0, rdata.wire
    while at < len(wire):
        end = at + 1 + wire[at]
        strings.append(wire[at + 1 : end])
        at = end
    return tuple(strings)


def txt_text(rdata: Rdata) -> str | None:
    """The text of a TXT record of one ASCII string, as the gateway makes them; None for others."""
    text = rdata.wire[1:]
    if rdata.rdtype != TXT or rdata.wire[0] != len(text) or not text.isascii():
        return None
    return text.decode("ascii")


def target_of(rdata: Rdata) -> dns.name.Name:
    """Where a CNAME or NS record points, in lower case."""
    name, _ = dns.name.from_wire(rdata.canonical, 0)
    return name


def found_records(name: dns.name.Name, rrsets: Iterable[RRset]) -> tuple[FoundRecord, ...]:
    """What lies at a name, one entry a record, for a person to read."""
    return tuple(
        [
            FoundRecord(to_text(name), _type_text(rrset.rdtype), rdata.to_text(), rrset.ttl)
            for rrset in rrsets
            for rdata in rrset.rdatas
        ]
    )


@lru_cache(64)
def _type_text(rdtype: RdataType) -> str:
    return dns.rdatatype.to_text(rdtype)
