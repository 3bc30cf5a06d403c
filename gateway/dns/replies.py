"""Decides whether a reply can be believed, before anybody looks at what it says.

Responsible for: id and kind, a readable message, the TSIG, and the server's own complaints about
ours. Pure but for dnspython's look at the wall clock. Must not judge rcodes of trusted replies:
those belong to who asked. Called by `exchange`.
"""

from dataclasses import dataclass
from typing import cast

import dns.exception
import dns.flags
import dns.message
import dns.rcode
import dns.rrset
import dns.tsig
from dns.rdataclass import RdataClass

from gateway.dns.errors import ReplyInvalid, ReplyTruncated, ReplyUnsigned, TsigRejected
from gateway.dns.reading import Reply, read_plain
from gateway.dns.signing import Asked, clock
from gateway.dns.zones import Endpoint, TsigKey, Zone

_COMPLAINTS = {
    dns.rcode.BADSIG: "the secret differs from the server's",
    dns.rcode.BADKEY: (
        "the server does not know the key {name} with {algorithm}: name and algorithm must be the"
        " server's (Knot: or it gives the key no right to this)"
    ),
    dns.rcode.BADTRUNC: "the server wants a longer signature",
}

_REFUSAL = ": it does not accept the key or the clock, or does not have the zone"

# PowerDNS tells no more than this of whatever is wrong with a signature; Knot of a foreign zone.
_UNSIGNED = {
    dns.rcode.NOTAUTH: f"{_REFUSAL}; PowerDNS's log tells which",
    dns.rcode.REFUSED: _REFUSAL,
}


@dataclass(frozen=True, slots=True)
class Peer:
    """Whom a message is for: a server, the zone that it is about, and the key that signs it.

    `fudge_seconds`: how far its clock may be from ours for it to take the signature; 300 is what
    RFC 8945 (section 10) recommends.
    """

    endpoint: Endpoint
    zone: str
    key: TsigKey | None = None
    fudge_seconds: int = 300

    @classmethod
    def primary_of(cls, zone: Zone) -> "Peer":
        """The server that takes updates, asked with the zone's own key: it may choose a view."""
        return cls(zone.primary, zone.name, zone.key)

    def __str__(self) -> str:
        key = f", key {self.key.name}" if self.key else ""
        return f"DNS server {self.endpoint} (zone {self.zone}{key})"


def is_reply(asked: Asked, wire: bytes) -> bool:
    """Does it look like an answer to this request at all: its id, and the QR bit?"""
    return len(wire) >= 12 and wire[:2] == asked.wire[:2] and bool(wire[2] & 0x80)


def read_reply(asked: Asked, wire: bytes, peer: Peer) -> Reply:
    """The reply, when it answers what was asked and is signed as that was.

    Raises: ReplyInvalid, ReplyUnsigned, ReplyTruncated, TsigRejected.
    """
    if not is_reply(asked, wire):
        raise ReplyInvalid(f"The {peer} sent something that is not a reply to the question.")
    if wire[2] & 0x02:
        raise ReplyTruncated(f"The {peer} cut its reply short.")
    plain = read_plain(asked, wire, peer.key, clock())
    if plain is not None:
        return plain
    keyring = None if peer.key is None else peer.key.for_signing()
    try:
        reply = dns.message.from_wire(wire, keyring=keyring, request_mac=asked.mac)
    except dns.tsig.PeerError:
        raise _complaint(asked, wire, peer) from None
    except dns.tsig.BadTime:
        raise _out_of_time(asked, wire, peer) from None
    except (dns.exception.DNSException, ValueError, NotImplementedError) as fault:
        raise _unsigned_or_broken(wire, peer, fault) from None
    if not dns.message.from_wire(asked.wire, keyring=False).is_response(reply):
        raise ReplyInvalid(f"The {peer} answered a different question.")
    if not asked.is_update and any(
        rrset.rdclass != RdataClass.IN for section in reply.sections[1:] for rrset in section
    ):  # whose data may have any form
        raise ReplyInvalid(f"The {peer} sent records of another class than the Internet's.")
    return Reply.of(reply, asked.at_seconds)


def _out_of_time(asked: Asked, wire: bytes, peer: Peer) -> ReplyInvalid:
    """Its time is looked at before its signature: it may be old, of another clock, or anybody's."""
    theirs = _time_in(dns.message.from_wire(wire, keyring=False, ignore_trailing=True))
    if asked.at_seconds is None or theirs is None:
        return ReplyInvalid(f"The {peer} sent a reply that was signed at another time.")
    return ReplyInvalid(
        f"The {peer} sent a reply whose time is {_apart(theirs - asked.at_seconds)} this machine's"
        " clock, more than TSIG allows."
    )


def _apart(seconds: int) -> str:
    return f"{abs(seconds)} s {'ahead of' if seconds > 0 else 'behind'}"


def _time_in(message: dns.message.Message) -> int | None:
    return message.tsig[0].time_signed if message.tsig else None


def clock_ahead(reply: Reply) -> int | None:
    """How many seconds later the server signed its reply, by its clock, than this machine asked.

    None when one of them was not signed.
    """
    if reply.signed_at is None or reply.asked_at is None:
        return None
    return reply.signed_at - reply.asked_at


def _complaint(asked: Asked, wire: bytes, peer: Peer) -> TsigRejected:
    """Such a reply is unsigned (but for BADTIME): it may stop us, never tell us anything."""
    reply = dns.message.from_wire(wire, keyring=False, ignore_trailing=True)
    tsig = cast("dns.rrset.RRset", reply.tsig)[0]  # there: the complaint was read out of it
    rcode = dns.rcode.Rcode.make(tsig.error)
    name = dns.rcode.to_text(rcode, tsig=True)
    if rcode == dns.rcode.BADTIME and len(tsig.other) == 6 and asked.at_seconds is not None:
        ahead = int.from_bytes(tsig.other, "big") - asked.at_seconds
        return TsigRejected(
            f"The {peer} answered {name}: its clock is {_apart(ahead)} this machine's.",
            rcode,
            ahead,
        )
    why = _COMPLAINTS.get(rcode, "the server does not accept the signature")
    if peer.key is not None:
        why = why.format(name=peer.key.name, algorithm=peer.key.algorithm)
    return TsigRejected(f"The {peer} answered {name}: {why}.", rcode)


def _unsigned_or_broken(wire: bytes, peer: Peer, fault: Exception) -> ReplyInvalid:
    try:
        reply = dns.message.from_wire(wire, keyring=False)
    except (dns.exception.DNSException, ValueError, NotImplementedError):
        return ReplyInvalid(f"The {peer} sent a reply that can't be read: {_words(fault)}.")
    if reply.tsig is None and peer.key is not None:
        rcode = reply.rcode()
        text = dns.rcode.to_text(rcode)
        why = _UNSIGNED.get(rcode, "")
        return ReplyUnsigned(f"The {peer} answered {text} without a signature{why}.", rcode)
    return ReplyInvalid(f"The {peer} sent a reply whose signature is wrong: {_words(fault)}.")


def _words(fault: Exception) -> str:
    return type(fault).__name__
