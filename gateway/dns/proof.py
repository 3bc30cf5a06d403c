"""Which of the records at a name are the gateway's, for one owner: by the marker, by nothing else.

A marker is bound to type and value, so it can only be checked against a record that is known: one
seen at the name, the one that is wanted now, or the one that the database remembers.

Pure. Must not decide what follows (`plan`). Called by `publisher`, `handing`,
`survey` and `situation`.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from dns.rdatatype import RdataType

from gateway.contract import DnsRecord
from gateway.dns.marker import Markers
from gateway.dns.observe import Observation
from gateway.dns.owner import Owner
from gateway.dns.records import ADDRESS_TYPES, TXT, Rdata, RRset, address_value, txt_text


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
    proofs = _proofs(observed, owner, markers, known)
    proven = frozenset(proofs.values())
    addresses = {
        (type_, value): rrset
        for rrset, type_, value in _addresses(observed)
        if len(rrset.rdatas) == 1 and (type_, value) in proven
    }
    stale = tuple(rdata for rdata, record in proofs.items() if record not in addresses)
    return Ours(tuple(addresses.values()), tuple(proofs), stale)


def find_marks(
    observed: Observation, owner: Owner, markers: Markers, known: Iterable[DnsRecord | None] = ()
) -> tuple[Mark, ...]:
    """The owner's markers, as `find_ours` finds them, each beside its successor."""
    return tuple(
        Mark(rdata, txt_text(rdata) or "", markers.sign(owner, type_, value), type_, value)
        for rdata, (type_, value) in _proofs(observed, owner, markers, known).items()
    )


def marker_texts(observed: Observation) -> list[str]:
    """Every marker at the name: of any owner, key or version, intact or not."""
    texts = (txt_text(rdata) or "" for rdata in _texts(observed))
    return [text for text in texts if Markers.is_marker(text)]


def is_marked(observed: Observation) -> bool:
    """Does the name carry a marker of any owner, intact or not?"""
    return bool(marker_texts(observed))


def _proofs(
    observed: Observation, owner: Owner, markers: Markers, known: Iterable[DnsRecord | None]
) -> dict[Rdata, tuple[str, str]]:
    """Each marker of the owner, and the type and value that it was made for."""
    records = {(type_, value) for _, type_, value in _addresses(observed)}
    records.update((record.type, record.value) for record in known if record is not None)
    proofs: dict[Rdata, tuple[str, str]] = {}
    for rdata in _texts(observed):
        text = txt_text(rdata)
        if text is None or not markers.is_marker(text):
            continue
        for type_, value in records:
            if markers.proves(text, owner, type_, value):
                proofs[rdata] = (type_, value)
    return proofs


def _texts(observed: Observation) -> tuple[Rdata, ...]:
    rrset = observed.rrset(TXT)
    return rrset.rdatas if rrset else ()


def _addresses(observed: Observation) -> Iterator[tuple[RRset, str, str]]:
    for rdtype in ADDRESS_TYPES:
        if (rrset := observed.rrset(rdtype)) is not None:
            for rdata in rrset.rdatas:
                yield rrset, rdtype.name, address_value(rdata)
