"""Which of the records at a name are the gateway's, for one owner: by the marker, by nothing else.

A marker is bound to type and value, so it can only be checked against a record that is known: one
seen at the name, the one that is wanted now, or the one that the database remembers.

Pure. Must not decide what follows (`plan`). Called by `publisher`, `handing`,
`survey` and `situation`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from dns.rdatatype import RdataType

from gateway.contract import DnsRecord
from gateway.dns.marker import Markers
from gateway.dns.observe import Observation
from gateway.dns.owner import Owner
from gateway.dns.records import ADDRESS_TYPES, TXT, Rdata, RRset, address_value, txt_text

_TYPES: Final = {int(rdtype): rdtype.name for rdtype in ADDRESS_TYPES}


@dataclass(frozen=True, slots=True)
class Ours:
    """What is proven to be the owner's.

    `addresses`: RRsets of one address whose marker is there. `markers`: every TXT value that is a
    marker of this owner for a known record, also when that record is not at the name any more.
    `stale`: those of the markers that prove none of the addresses.
    """

    addresses: tuple[RRset, ...] = ()
    markers: tuple[Rdata, ...] = ()
    stale: tuple[Rdata, ...] = ()

    def address(self, rdtype: RdataType) -> RRset | None:
        """The proven RRset of a type, or None."""
        return next((rrset for rrset in self.addresses if rrset.rdtype == rdtype), None)

    @property
    def is_anything(self) -> bool:
        """Does the name carry a proof of this owner at all?"""
        return bool(self.markers)


@dataclass(frozen=True, slots=True)
class Mark:
    """One marker of the owner at the name: its text, and the one that the first key would make.

    `type` and `value` are the record's that it was made for.
    """

    rdata: Rdata
    text: str
    fresh: str
    type: str
    value: str

    @property
    def is_fresh(self) -> bool:
        """Did the first key make it?"""
        return self.text == self.fresh


def find_ours(
    observed: Observation, owner: Owner, markers: Markers, known: Iterable[DnsRecord | None] = ()
) -> Ours:
    """Check every marker at the name against every address at the name and every known record."""
    seen = _addresses(observed)
    proofs = _proofs(observed, owner, markers, (*(record for record, _ in seen), *_of(known)))
    if not proofs:
        return Ours()
    proven = proofs.values()
    addresses = {
        record: rrset for record, rrset in seen if len(rrset.rdatas) == 1 and record in proven
    }
    stale = tuple(rdata for rdata, record in proofs.items() if record not in addresses)
    return Ours(tuple(addresses.values()), tuple(proofs), stale)


def find_marks(
    observed: Observation, owner: Owner, markers: Markers, known: Iterable[DnsRecord | None] = ()
) -> tuple[Mark, ...]:
    """The owner's markers, as `find_ours` finds them, each beside its successor."""
    records = (*(record for record, _ in _addresses(observed)), *_of(known))
    return tuple(
        Mark(rdata, txt_text(rdata) or "", markers.sign(owner, type_, value), type_, value)
        for rdata, (type_, value) in _proofs(observed, owner, markers, records).items()
    )


def marker_texts(observed: Observation) -> list[str]:
    """Every marker at the name: of any owner, key or version, intact or not."""
    texts = (txt_text(rdata) or "" for rdata in _texts(observed))
    return [text for text in texts if Markers.is_marker(text)]


def is_marked(observed: Observation) -> bool:
    """Does the name carry a marker of any owner, intact or not?"""
    return bool(marker_texts(observed))


_Record = tuple[str, str]
"""The type and the value of an address record, as the contract has them."""


def _proofs(
    observed: Observation, owner: Owner, markers: Markers, records: Iterable[_Record]
) -> dict[Rdata, _Record]:
    """Each marker of the owner, and which of the records it was made for."""
    distinct = dict.fromkeys(records)
    proofs: dict[Rdata, _Record] = {}
    for rdata in _texts(observed):
        text = txt_text(rdata)
        if text is None or not markers.is_marker(text):
            continue
        for type_, value in distinct:
            if markers.proves(text, owner, type_, value):
                proofs[rdata] = (type_, value)
    return proofs


def _texts(observed: Observation) -> tuple[Rdata, ...]:
    rrset = observed.rrset(TXT)
    return rrset.rdatas if rrset else ()


def _of(known: Iterable[DnsRecord | None]) -> list[_Record]:
    return [(record.type, record.value) for record in known if record is not None]


def _addresses(observed: Observation) -> list[tuple[_Record, RRset]]:
    """Each address at the name, and the RRset that it is of."""
    return [
        ((type_, address_value(rdata)), rrset)
        for rrset in observed.rrsets
        if (type_ := _TYPES.get(int(rrset.rdtype))) is not None
        for rdata in rrset.rdatas
    ]
