"""Which of the records at a name are the gateway's, for one owner: by the marker, by nothing else.

A marker is bound to type and value, so it can only be checked against a record that is known: one
seen at the name, the one that is wanted now, or the one that the database remembers.

Pure. Must not decide what follows (`plan`). Called by `publisher`.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import dns.rdata
from dns.rdatatype import RdataType

from gateway.contract import DnsRecord
from gateway.dns.marker import Markers
from gateway.dns.observe import Observation
from gateway.dns.owner import Owner
from gateway.dns.records import ADDRESS_TYPES, TXT, RRset, address_value, txt_text


@dataclass(frozen=True, slots=True)
class Ours:
    """What is proven to be the owner's.

    `addresses`: RRsets of one address whose marker is there. `markers`: every TXT value that is a
    marker of this owner for a known record, also when that record is not at the name any more.
    """

    addresses: tuple[RRset, ...] = ()
    markers: tuple[dns.rdata.Rdata, ...] = ()

    def address(self, rdtype: RdataType) -> RRset | None:
        """The proven RRset of a type, or None."""
        return next((rrset for rrset in self.addresses if rrset.rdtype == rdtype), None)

    @property
    def is_anything(self) -> bool:
        """Does the name carry a proof of this owner at all?"""
        return bool(self.markers)


def find_ours(
    observed: Observation, owner: Owner, markers: Markers, known: Iterable[DnsRecord | None] = ()
) -> Ours:
    """Check every marker at the name against every address at the name and every known record."""
    records = {(type_, value) for _, type_, value in _addresses(observed)}
    records.update((record.type, record.value) for record in known if record is not None)
    proofs: dict[dns.rdata.Rdata, tuple[str, str]] = {}
    for rdata in _texts(observed):
        text = txt_text(rdata)
        if text is None or not markers.is_marker(text):
            continue
        for type_, value in records:
            if markers.proves(text, owner, type_, value):
                proofs[rdata] = (type_, value)
    proven = frozenset(proofs.values())
    addresses = tuple(
        rrset
        for rrset, type_, value in _addresses(observed)
        if len(rrset.rdatas) == 1 and (type_, value) in proven
    )
    return Ours(addresses, tuple(proofs))


def _texts(observed: Observation) -> tuple[dns.rdata.Rdata, ...]:
    rrset = observed.rrset(TXT)
    return rrset.rdatas if rrset else ()


def _addresses(observed: Observation) -> Iterator[tuple[RRset, str, str]]:
    for rdtype in ADDRESS_TYPES:
        if (rrset := observed.rrset(rdtype)) is not None:
            for rdata in rrset.rdatas:
                yield rrset, rdtype.name, address_value(rdata)
