"""RFC 2136 updates as data, and sending one.

Responsible for: the prerequisites that keep a change away from cuts and aliases above the name,
building the message, the choice of transport, and telling "refused", "not applied" and "unknown"
apart. Must not decide what to change (`plan`, `challenges`) nor try again (`settle`).
"""

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import dns.name
import dns.rcode
import dns.rdatatype
from dns.rcode import Rcode
from dns.rdataclass import RdataClass
from dns.rdatatype import RdataType

from gateway.dns.errors import (
    NameTooFull,
    NoReply,
    OutcomeUnknown,
    ReplyInvalid,
    ServerFailed,
    ServerRefused,
    TsigRejected,
    Unreachable,
)
from gateway.dns.exchange import Exchange, Over
from gateway.dns.names import to_text, upwards
from gateway.dns.reading import Reply
from gateway.dns.records import Rdata, RRset
from gateway.dns.rendering import Rendering, Request
from gateway.dns.replies import Peer
from gateway.dns.zones import Zone

UDP_MESSAGE_BYTES: Final = 1200
"""What passes everywhere in one piece, IPv6 tunnels included."""

MESSAGE_BYTES: Final = 65_535
"""What a message may have at all (RFC 7766)."""

_HEADER: Final = struct.Struct("!HHHHHH")
_UPDATE: Final = 0x2800
"""The header's flags: the opcode."""

PREREQUISITE_RCODES = frozenset({Rcode.YXDOMAIN, Rcode.YXRRSET, Rcode.NXRRSET, Rcode.NXDOMAIN})


_WHY = {
    Rcode.FORMERR: ": it can't read the message",
    Rcode.NOTIMP: ": it takes no dynamic updates",
    Rcode.NOTAUTH: ": it does not have the zone, or not as its primary",
    Rcode.NOTZONE: ": it has the zone under another name",
}


_Record = tuple[dns.name.Name, RdataType, RdataClass, int, bytes]
"""Name, type, class, TTL and data, as they are rendered."""


@dataclass(frozen=True, slots=True)
class NameFree:
    """No record of any type is at the name itself (RFC 2136, 2.4.5)."""

    name: dns.name.Name

    def records(self) -> list[_Record]:
        """As it is stated in a message."""
        return [(self.name, RdataType.ANY, RdataClass.NONE, 0, b"")]


@dataclass(frozen=True, slots=True)
class NameInUse:
    """Some record of any type is at the name itself (2.4.4)."""

    name: dns.name.Name

    def records(self) -> list[_Record]:
        """As it is stated in a message."""
        return [(self.name, RdataType.ANY, RdataClass.ANY, 0, b"")]


@dataclass(frozen=True, slots=True)
class RRsetAbsent:
    """No record of the type is at the name (2.4.3)."""

    name: dns.name.Name
    rdtype: RdataType

    def records(self) -> list[_Record]:
        """As it is stated in a message."""
        return [(self.name, self.rdtype, RdataClass.NONE, 0, b"")]


@dataclass(frozen=True, slots=True)
class RRsetPresent:
    """Some record of the type is at the name (2.4.1)."""

    name: dns.name.Name
    rdtype: RdataType

    def records(self) -> list[_Record]:
        """As it is stated in a message."""
        return [(self.name, self.rdtype, RdataClass.ANY, 0, b"")]


@dataclass(frozen=True, slots=True)
class RRsetIs:
    """Exactly these records of the type are at the name, whatever their TTL (2.4.2)."""

    name: dns.name.Name
    rrset: RRset

    def records(self) -> list[_Record]:
        """As they are stated in a message."""
        rdtype = self.rrset.rdtype
        return [(self.name, rdtype, RdataClass.IN, 0, rdata.wire) for rdata in self.rrset.rdatas]


Prerequisite = NameFree | NameInUse | RRsetAbsent | RRsetPresent | RRsetIs


@dataclass(frozen=True, slots=True)
class Add:
    """Add one record (2.5.1); the whole RRset takes its TTL."""

    name: dns.name.Name
    ttl: int
    rdata: Rdata

    def record(self) -> _Record:
        """As it is told in a message."""
        return self.name, self.rdata.rdtype, RdataClass.IN, self.ttl, self.rdata.wire


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete one record by its exact value (2.5.4); nothing happens when it isn't there."""

    name: dns.name.Name
    rdata: Rdata

    def record(self) -> _Record:
        """As it is told in a message."""
        return self.name, self.rdata.rdtype, RdataClass.NONE, 0, self.rdata.wire


Change = Add | Delete


def uncut(name: dns.name.Name, apex: dns.name.Name) -> tuple[RRsetAbsent, ...]:
    """No zone cut at or above the name, no DNAME above it.

    BIND takes an update below a cut with NOERROR and never serves it. The apex has NS by right.
    """
    inside = tuple(upwards(name, apex))
    cuts = tuple(RRsetAbsent(level, RdataType.NS) for level in inside)
    above = (*inside[1:], apex) if inside else ()
    aliases = tuple(RRsetAbsent(level, RdataType.DNAME) for level in above)
    return cuts + aliases


class Update(Request):
    """One message: the server applies all changes when all prerequisites hold, else none."""

    is_update = True

    def __init__(
        self, apex: dns.name.Name, prerequisites: Iterable[Prerequisite], changes: Iterable[Change]
    ) -> None:
        super().__init__(apex, RdataType.SOA)
        self.prerequisites = tuple(prerequisites)
        self.changes = tuple(changes)

    def without_changes(self) -> "Update":
        """What has its prerequisites judged, and writes nothing (RFC 2136, 3.2 and 3.4)."""
        return Update(self.name, self.prerequisites, ())

    def _rendered(self) -> bytes:
        """It may be longer than one can be sent."""
        stated = [record for each in self.prerequisites for record in each.records()]
        changed = [each.record() for each in self.changes]
        counts = (1, len(stated), len(changed), 0)
        rendering = Rendering(_HEADER.pack(self.id, _UPDATE, *counts))
        rendering.add_question(self.name, self.rdtype, RdataClass.IN)
        for record in (*stated, *changed):
            rendering.add_record(*record)
        return rendering.to_wire()


async def send_update(
    exchange: Exchange,
    zone: Zone,
    prerequisites: Iterable[Prerequisite],
    changes: Iterable[Change],
    *,
    deadline: float,
    prefer: Over = Over.UDP,
) -> Rcode:
    """Send one UPDATE of these, as `send_message` has it, which see."""
    message = Update(zone.apex, prerequisites, changes)
    return await send_message(exchange, zone, message, deadline=deadline, prefer=prefer)


async def send_message(
    exchange: Exchange, zone: Zone, message: Update, *, deadline: float, prefer: Over = Over.UDP
) -> Rcode:
    """Send one UPDATE; answers NOERROR, or how a prerequisite failed (`PREREQUISITE_RCODES`).

    A transport that nobody listens on is replaced by the other one. After silence or a reply that
    proves nothing no second message is sent: the caller must read what happened.

    Raises: OutcomeUnknown when there are changes that may have been made; Unreachable, NoReply,
    ReplyInvalid, ServerFailed, ServerRefused, TsigRejected when there is nothing to make known;
    NameTooFull.
    """
    # As it was meant: a rehearsal sends it without its changes.
    changed = message.changes
    peer = Peer.primary_of(zone)
    try:
        reply = await _ask(exchange, peer, message, prefer, deadline)
    except (NoReply, ReplyInvalid, TsigRejected) as fault:
        # TsigRejected too: such a reply is unsigned, so it may be anybody's.
        if changed:
            raise OutcomeUnknown(fault.detail) from fault
        raise
    rcode = reply.rcode
    if rcode == Rcode.NOERROR or (rcode in PREREQUISITE_RCODES and message.prerequisites):
        return rcode
    why = _WHY.get(rcode, "")
    detail = f"The {peer} answered {dns.rcode.to_text(rcode)} to the update{why}."
    if rcode == Rcode.REFUSED and changed:
        detail = _refusal(detail, changed)
    if rcode == Rcode.SERVFAIL:
        # BIND says so too when writing its journal failed: nobody knows how far it came.
        raise OutcomeUnknown(detail) if changed else ServerFailed(detail)
    raise ServerRefused(detail, rcode)


def _refusal(detail: str, changes: Sequence[Change]) -> str:
    """With what the key wanted to change: servers have rules by name and type, and tell nothing."""
    types = ", ".join(dict.fromkeys(dns.rdatatype.to_text(each.rdata.rdtype) for each in changes))
    return (
        f"{detail.removesuffix('.')} of {types} at {to_text(changes[0].name)}: see what it permits"
        " the key (BIND: update-policy or allow-update, and allow-query)."
    )


async def _ask(
    exchange: Exchange,
    peer: Peer,
    message: Update,
    prefer: Over,
    deadline: float,
) -> Reply:
    size = _signature_bytes(peer) + len(message.to_wire())
    if size > MESSAGE_BYTES:
        raise NameTooFull(
            f"What lies at the name is too much to be stated in one message to the {peer}."
        )
    if size > UDP_MESSAGE_BYTES:
        return await exchange.ask(peer, message, over=Over.TCP, deadline=deadline)
    other = Over.TCP if prefer is Over.UDP else Over.UDP
    try:
        return await exchange.ask(peer, message, over=prefer, deadline=deadline)
    except Unreachable:
        return await exchange.ask(peer, message, over=other, deadline=deadline)


def _signature_bytes(peer: Peer) -> int:
    """An upper bound of what TSIG adds: owner, algorithm, the longest MAC and the fixed fields."""
    return 0 if peer.key is None else len(peer.key.name) + len(peer.key.algorithm) + 64 + 32
