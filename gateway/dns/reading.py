"""Reads a reply, as far as somebody looks at it: the plain case, which nearly all are.

dnspython reads all of a message into objects before it checks the signature: 0.36 ms for a name
with an address and a marker. Here the records are only counted off, then the signature is checked
(`signing`), and then what is looked at is read: answers with their data, of the authority section
whose records of which types there are, of the additional section nothing until somebody asks. That
takes 0.09 ms. Records themselves are still dnspython's. A reply to a question without a signature
is read the same way, but for that.

Whatever is not plain is None here: another question, an error in the signature, extended rcodes,
classes other than IN, data that can't be read. `replies` then has dnspython read it. Must not
decide what such a reply means. Called by `replies`.
"""

import contextlib
import struct
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, NamedTuple

import dns.exception
import dns.flags
import dns.message
import dns.name
import dns.opcode
import dns.rdata
import dns.rrset
from dns.rdataclass import RdataClass
from dns.rdatatype import RdataType

from gateway.dns.signing import Asked, time_if_proven
from gateway.dns.zones import TsigKey

_HEADER: Final = struct.Struct("!HHHHHH")
_OPCODE: Final = 0x78
"""Where the third byte has it."""

_RECORD: Final = struct.Struct("!HHIH")
"""Type, class, TTL and the size of the data, behind the name."""

_POINTER: Final = 0xC0
_MOST_LABEL_BYTES: Final = 63
_EXTENDED_RCODE: Final = 0xFF000000
_MOST_TTL: Final = 0x7FFFFFFF
_UNREADABLE: Final = (
    dns.exception.DNSException,
    ValueError,
    IndexError,
    struct.error,
    NotImplementedError,
)


class Reply(dns.message.Message):
    """A reply that is believed. Of the authority section it may have names, types and TTLs only.

    `signed_at` and `asked_at`: when it and the request were signed, in seconds since the epoch,
    each by its sender's clock; None when they were not.
    """

    signed_at: int | None = None
    asked_at: int | None = None
    _unread: Callable[[], list[dns.rrset.RRset]] | None = None

    @classmethod
    def of(cls, message: dns.message.Message, asked: Asked) -> "Reply":
        """As dnspython has read it."""
        reply = cls(message.id)
        reply.flags, reply.opt, reply.sections = message.flags, message.opt, message.sections
        reply.signed_at = message.tsig[0].time_signed if message.tsig else None
        reply.asked_at = asked.at_seconds
        return reply

    @classmethod
    def plain(
        cls, asked: Asked, flags: int, signed_at: int | None, records: "Sequence[Sequence[_Record]]"
    ) -> "Reply":
        """By the records of its sections but the question."""
        answer, authority, additional = records
        reply = cls(asked.message.id)
        reply.flags = dns.flags.Flag(flags)
        reply.sections[0] = list(asked.message.sections[0])
        reply.sections[1] = _rrsets(answer)
        reply.sections[2] = _rrsets(authority, with_data=False)
        reply._unread = partial(_rrsets, additional) if additional else None
        reply.signed_at, reply.asked_at = signed_at, asked.at_seconds
        return reply

    @property
    def additional(self) -> list[dns.rrset.RRset]:
        """The additional section, read when it is first asked for; empty if it can't be.

        Nobody may rely on what is there: a server leaves out what it likes.
        """
        if self._unread is not None:
            with contextlib.suppress(*_UNREADABLE):
                self.sections[3] = self._unread()
            self._unread = None
        return self.sections[3]

    @additional.setter
    def additional(self, rrsets: list[dns.rrset.RRset]) -> None:
        self.sections[3], self._unread = rrsets, None


class _Record(NamedTuple):
    """One record, by where its parts begin in its message. `names`: those that are known there."""

    wire: bytes
    names: dict[int, dns.name.Name]
    start: int
    rdtype: int
    rdclass: int
    ttl: int
    data_start: int
    data_bytes: int

    @property
    def is_plain(self) -> bool:
        """Is it data of the Internet's class?"""
        return self.rdclass == RdataClass.IN and self.rdtype not in (RdataType.OPT, RdataType.TSIG)

    def name(self) -> dns.name.Name:
        """Whose it is; mostly a pointer to the question's name. Raises: DNSException."""
        at = self.start
        if self.wire[at] >= _POINTER:
            at = int.from_bytes(self.wire[at : at + 2], "big") & 0x3FFF
            if at >= self.start:
                raise dns.name.BadPointer
        if at not in self.names:
            self.names[at], _ = dns.name.from_wire(self.wire, at)
        return self.names[at]

    def data(self) -> dns.rdata.Rdata:
        """Its data. Raises: DNSException."""
        rdtype = RdataType.make(self.rdtype)
        return dns.rdata.from_wire(
            RdataClass.IN, rdtype, self.wire, self.data_start, self.data_bytes
        )


def read_plain(asked: Asked, wire: bytes, key: TsigKey | None, now: float) -> Reply | None:
    """The reply, if it answers this request plainly and, with a `key`, is proven to; else None."""
    try:
        return _read(asked, wire, key, now)
    except _UNREADABLE:
        return None


def _read(asked: Asked, wire: bytes, key: TsigKey | None, now: float) -> Reply | None:
    _, flags, questions, *counts = _HEADER.unpack_from(wire)
    start = _HEADER.size
    for _ in range(questions):
        start = _after_name(wire, start) + 4
    if not _answers(asked, wire, start, counts):
        return None
    answer, authority, additional = _count_off(asked, wire, start, counts)
    if not additional and key is not None:
        return None
    tsig = None if key is None else additional.pop()
    opt = additional.pop() if additional and additional[-1].rdtype == RdataType.OPT else None
    if opt is not None and opt.ttl & _EXTENDED_RCODE:
        return None
    if not all(record.is_plain for record in (*answer, *authority, *additional)):
        return None
    signed_at: int | None = None
    if key is not None and tsig is not None:
        signed_at = time_if_proven(asked, wire, tsig.start, tsig.data_start, key, now)
        if signed_at is None:
            return None
    return Reply.plain(asked, flags, signed_at, (answer, authority, additional))


def _answers(asked: Asked, wire: bytes, start: int, counts: Sequence[int]) -> bool:
    """Is it of this kind, and of this question? Its sections begin at `start`."""
    if (wire[2] ^ asked.wire[2]) & _OPCODE:
        return False
    if asked.message.opcode() == dns.opcode.UPDATE:
        return not (counts[0] or counts[1])  # mostly without a question, and never with records
    question = asked.wire[_HEADER.size : start]
    return wire[4:6] == asked.wire[4:6] and wire[_HEADER.size : start] == question


def _count_off(asked: Asked, wire: bytes, start: int, counts: Sequence[int]) -> list[list[_Record]]:
    """The records of the sections behind the question. Raises: ValueError and other faults."""
    names = {_HEADER.size: asked.message.sections[0][0].name}
    sections: list[list[_Record]] = []
    for count in counts:
        records = []
        for _ in range(count):
            name_end = _after_name(wire, start)
            rdtype, rdclass, ttl, size = _RECORD.unpack_from(wire, name_end)
            data_start = name_end + _RECORD.size
            records.append(_Record(wire, names, start, rdtype, rdclass, ttl, data_start, size))
            start = data_start + size
        sections.append(records)
    if start != len(wire):
        raise ValueError("something follows the last record, or is missing of it")
    return sections


def _after_name(wire: bytes, at: int) -> int:
    """Where a name ends. Raises: IndexError, ValueError."""
    while (length := wire[at]) != 0:
        if length >= _POINTER:
            return at + 2
        if length > _MOST_LABEL_BYTES:
            raise ValueError("no label begins so")
        at += 1 + length
    return at + 1


def _rrsets(records: Sequence[_Record], *, with_data: bool = True) -> list[dns.rrset.RRset]:
    """Records as sets, in the order in which the sets begin. Raises: DNSException."""
    rrsets: dict[tuple[tuple[bytes, ...], int, int], dns.rrset.RRset] = {}
    for record in records:
        name, rdtype = record.name(), RdataType.make(record.rdtype)
        data = record.data() if with_data else None
        covers = RdataType.NONE if data is None else data.covers()
        # Told apart by bytes: a hash of a Name takes a step for each character.
        key = tuple(map(bytes.lower, name.labels)), rdtype, covers
        rrset = rrsets.get(key)
        if rrset is None:
            rrset = rrsets[key] = dns.rrset.RRset(name, RdataClass.IN, rdtype, covers)
        ttl = record.ttl if record.ttl <= _MOST_TTL else 0
        if data is None:
            rrset.update_ttl(ttl)
        else:
            rrset.add(data, ttl)
    return list(rrsets.values())
