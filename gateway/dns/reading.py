"""Reads a reply as the package's own values: the plain case, which nearly all are.

dnspython reads all of a message into objects before it checks the signature: 0.36 ms for a name
with an address and a marker. Here the signature is checked first, by where it begins (`signing`).
Then the bytes before it are read, 0.02 ms: answers with their data, of the authority section whose
records of which types there are, of the additional section nothing until somebody asks. A primary
mostly says of a name what it said last time, so what is made of the very same bytes is kept: that
takes 0.002 ms. A reply to a question without a signature is read the same way, but for that.

Whatever is not plain is None here: another question, an error in the signature, extended rcodes,
classes other than IN, data that can't be read. `replies` then has dnspython read it. Must not
decide what such a reply means. Called by `replies`.
"""

import contextlib
import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any, Final, NamedTuple

import dns.exception
import dns.flags
import dns.message
import dns.name
import dns.rdata
import dns.rdatatype
import dns.rrset
from dns.rcode import Rcode
from dns.rdataclass import RdataClass
from dns.rdatatype import RdataType

from gateway.dns.names import after_name, name_place, read_name
from gateway.dns.records import PLAIN_TYPES, Rdata, RRset, is_plain_data
from gateway.dns.signing import Asked, prove
from gateway.dns.zones import TsigKey

MOST_KEPT: Final = 2048
"""Of how many replies it is kept what they say, if they have `MOST_KEPT_BYTES` at the most.

2.4 KB for a name with an address and a marker, 5 MB in all.
"""

MOST_KEPT_BYTES: Final = 1024
"""A name with an address and a marker, and its zone's servers, have a quarter of that."""

_HEADER: Final = struct.Struct("!HHHHHH")
_NO_NAME: Final = b"\x80" * _HEADER.size
"""Stands for the header where names are read: what points there can't be read."""

_OPCODE: Final = 0x78
"""Where the third byte has it."""

_AA: Final = int(dns.flags.AA)
_NO_RECORDS: Final = bytes(4)
"""How many answers and authority records there are, when there are none."""

_RECORD: Final = struct.Struct("!HHIH")
"""Type, class, TTL and the size of the data, behind the name."""

_EXTENDED_RCODE: Final = 0xFF000000
_MOST_TTL: Final = 0x7FFFFFFF
_RCODES: Final = tuple(map(Rcode.make, range(16)))
_TYPES: Final = {int(rdtype): rdtype for rdtype in RdataType}
_OF_MESSAGES: Final = (RdataType.OPT, RdataType.TSIG)
"""Types that are no records of a name."""

_UNREADABLE: Final = (
    dns.exception.DNSException,
    ValueError,
    IndexError,
    struct.error,
    NotImplementedError,
)


class At(NamedTuple):
    """Records of one type, and the name that they lie at."""

    name: dns.name.Name
    rrset: RRset


@dataclass(frozen=True, slots=True, eq=False)
class Content:
    """What a reply says. Of the authority section it may have names, types and TTLs only."""

    flags: int
    rcode: Rcode
    answer: tuple[At, ...]
    authority: tuple[At, ...]
    unread: Callable[[], tuple[At, ...]] = field(repr=False)
    """Reads the additional section. Raises: DNSException and other faults if it can't be read."""
    judged: dict[tuple[tuple[bytes, ...], str], Any] = field(default_factory=dict, repr=False)
    """What `observe` made of it, by a name's labels and a zone: kept for as long as this is."""

    @property
    def is_authoritative(self) -> bool:
        """Does the server say so, by the AA bit?"""
        return bool(self.flags & _AA)


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply that is believed.

    `signed_at` and `asked_at`: when it and the request were signed, in seconds since the epoch,
    each by its sender's clock; None when they were not.
    """

    content: Content
    signed_at: int | None = None
    asked_at: int | None = None

    @classmethod
    def of(cls, message: dns.message.Message, asked_at: int | None = None) -> "Reply":
        """As dnspython has read it."""
        answer, authority, additional = map(_by_dnspython, message.sections[1:4])
        content = Content(message.flags, message.rcode(), answer, authority, lambda: additional)
        return cls(content, message.tsig[0].time_signed if message.tsig else None, asked_at)

    @property
    def rcode(self) -> Rcode:
        """How the server answers."""
        return self.content.rcode

    @property
    def is_authoritative(self) -> bool:
        """Does the server say so, by the AA bit?"""
        return self.content.is_authoritative

    @property
    def answer(self) -> tuple[At, ...]:
        """The answer section, each set once, in the order in which they begin."""
        return self.content.answer

    @property
    def authority(self) -> tuple[At, ...]:
        """The authority section, in the same way; the sets may be without their records."""
        return self.content.authority

    @property
    def additional(self) -> tuple[At, ...]:
        """The additional section; empty if it can't be read.

        Nobody may rely on what is there: a server leaves out what it likes.
        """
        with contextlib.suppress(*_UNREADABLE):
            return self.content.unread()
        return ()


def read_plain(asked: Asked, wire: bytes, key: TsigKey | None, now: float) -> Reply | None:
    """The reply, if it answers this request plainly and, with a `key`, is proven to; else None."""
    try:
        return _read(asked, wire, key, now)
    except _UNREADABLE:
        return None


def _read(asked: Asked, wire: bytes, key: TsigKey | None, now: float) -> Reply | None:
    if not _answers(asked, wire):
        return None
    if key is None:
        return Reply(_content(wire), asked_at=asked.at_seconds)
    proven = prove(asked, wire, key, now)
    if proven is None:
        return None
    is_kept = len(proven.message) <= MOST_KEPT_BYTES
    content = (_kept_content if is_kept else _content)(proven.message)
    return Reply(content, proven.at_seconds, asked.at_seconds)


def _answers(asked: Asked, wire: bytes) -> bool:
    """Is it of this kind, and of this question?"""
    if (wire[2] ^ asked.wire[2]) & _OPCODE:
        return False
    if asked.is_update:  # may be answered without a question, and never is with records
        return wire[6:10] == _NO_RECORDS and (not any(wire[4:6]) or _is_question(asked, wire))
    return _is_question(asked, wire)


def _is_question(asked: Asked, wire: bytes) -> bool:
    return wire[4:6] == asked.wire[4:6] and wire.startswith(asked.question, _HEADER.size)


@lru_cache(MOST_KEPT)
def _kept_content(message: bytes) -> Content:
    return _content(message)


def _content(wire: bytes) -> Content:
    """What an unsigned message says, if that is plain. Raises: ValueError and other faults."""
    _, flags, questions, answers, authorities, others = _HEADER.unpack_from(wire)
    wire = _NO_NAME + wire[_HEADER.size :]
    at = _HEADER.size
    for _ in range(questions):
        at = after_name(wire, at) + 4
    answer, at = _records(wire, at, answers)
    authority, at = _records(wire, at, authorities)
    additional, at = _records(wire, at, others)
    if at != len(wire):
        raise ValueError("something follows the last record, or is missing of it")
    opt = additional.pop() if additional and additional[-1].rdtype == RdataType.OPT else None
    if opt is not None and (opt.ttl & _EXTENDED_RCODE or wire[opt.name_at]):
        raise ValueError("the rcode has more bits, or its name is not the root")
    for record in (*answer, *authority, *additional):
        if record.rdtype in _OF_MESSAGES:
            raise ValueError("not a record of a name")
    return Content(
        flags,
        _RCODES[flags & 0xF],
        _rrsets(wire, answer),
        _rrsets(wire, authority, with_data=False),
        partial(_rrsets, wire, additional),
    )


class _Record(NamedTuple):
    """One record, by where its parts begin in its message."""

    name_at: int
    rdtype: int
    ttl: int
    data_start: int
    data_bytes: int


def _records(wire: bytes, at: int, count: int) -> tuple[list[_Record], int]:
    """The records of a section that begins there, and where it ends. Raises: ValueError, others."""
    records = []
    for _ in range(count):
        name_end = after_name(wire, at)
        rdtype, rdclass, ttl, size = _RECORD.unpack_from(wire, name_end)
        if rdclass != RdataClass.IN and rdtype != RdataType.OPT:
            raise ValueError("not a record of the Internet's class")
        data_start = name_end + _RECORD.size
        records.append(_Record(at, rdtype, ttl, data_start, size))
        at = data_start + size
    return records, at


def _rrsets(wire: bytes, records: Iterable[_Record], *, with_data: bool = True) -> tuple[At, ...]:
    """Records as sets, in the order in which the sets begin. Raises: DNSException, ValueError."""
    found: dict[tuple[tuple[bytes, ...], int], tuple[dns.name.Name, list[_Record]]] = {}
    names: dict[int, tuple[dns.name.Name, tuple[bytes, ...]]] = {}
    for record in records:
        place = name_place(wire, record.name_at)
        named = names.get(place)
        if named is None:
            name = read_name(wire, record.name_at)
            # Told apart by bytes: a hash of a Name takes a step for each character.
            named = names[place] = name, tuple([each.lower() for each in name.labels])
        name, labels = named
        found.setdefault((labels, record.rdtype), (name, []))[1].append(record)
    return tuple(
        [At(name, _rrset(wire, same, with_data=with_data)) for name, same in found.values()]
    )


def _rrset(wire: bytes, records: Sequence[_Record], *, with_data: bool) -> RRset:
    """Records of one type at one name; the least TTL is that of all (RFC 2181, 5.2)."""
    rdtype = _TYPES.get(records[0].rdtype) or RdataType.make(records[0].rdtype)
    ttl = min([record.ttl if record.ttl <= _MOST_TTL else 0 for record in records])
    data = [_rdata(wire, rdtype, record) for record in records] if with_data else []
    if len(data) > 1 and dns.rdatatype.is_singleton(rdtype):
        del data[:-1]  # the last one counts, as with dnspython
    return RRset.of(rdtype, ttl, data)


def _rdata(wire: bytes, rdtype: RdataType, record: _Record) -> Rdata:
    start, size = record.data_start, record.data_bytes
    data = wire[start : start + size]
    if rdtype not in PLAIN_TYPES:
        read = Rdata.of(dns.rdata.from_wire(RdataClass.IN, rdtype, wire, start, size))
        # dnspython writes less than it has read of ISDN's second text, if that is empty. A server
        # tells the two apart.
        return read if len(read.wire) >= size else Rdata(rdtype, data, data)
    if not is_plain_data(rdtype, data):
        raise ValueError("these are no data of that type")
    return Rdata.plain(rdtype, data)


def _by_dnspython(section: Iterable[dns.rrset.RRset]) -> tuple[At, ...]:
    return tuple(
        At(rrset.name, RRset.of(rrset.rdtype, rrset.ttl, map(Rdata.of, rrset))) for rrset in section
    )
