"""Signed requests, and replies to them as a server with dnspython would make them."""

import time
from collections.abc import Sequence
from types import SimpleNamespace
from unittest import mock

import dns.message
import dns.rrset
import dns.update
from hypothesis import strategies as st

from gateway.dns.signing import Asked, sign
from gateway.dns.zones import ALGORITHMS, TsigKey
from tests.unit.dns.building import NAME, ZONE

SECRET = b"0123456789abcdef0123456789abcdef"
KEYS = [TsigKey("gateway", algorithm, SECRET) for algorithm in ALGORITHMS]
NAMED_BELOW_THE_ZONE = TsigKey("Key.Example.test", "hmac-sha256", SECRET)

LINES = (
    "relay.example.test. 300 IN A 192.0.2.1",
    "relay.example.test. 60 IN A 192.0.2.2",
    "relay.example.test. 300 IN AAAA 2001:db8::1",
    'relay.example.test. 300 IN TXT "gateway-owner=v1:new:AAAA"',
    'relay.example.test. 900 IN TXT "two" "strings"',
    "relay.example.test. 300 IN CNAME other.example.test.",
    "RELAY.example.test. 300 IN MX 10 mail.example.test.",
    "relay.example.test. 300 IN RRSIG A 8 3 300 20261201000000 20261101000000 1 example.test. AAAA",
    "relay.example.test. 300 IN RRSIG TXT 8 3 300 20261201000000 20261101000000 1 a. AAAA",
    "relay.example.test. 300 IN TYPE65400 \\# 3 010203",
    "example.test. 300 IN SOA ns1.example.test. hostmaster.example.test. 1 3600 1 86400 60",
    "example.test. 60 IN DNAME example.net.",
    "example.test. 300 IN NS ns1.example.test.",
    "example.test. 300 IN NS ns.elsewhere.example.",
    "ns1.example.test. 300 IN A 192.0.2.53",
    ". 300 IN NS a.root.example.",
)
"""Records that a section may have, as lines of a zone file."""


def query(*, edns: bool = True) -> dns.message.Message:
    return dns.message.make_query(NAME, "ANY", flags=0, use_edns=0 if edns else -1)


def update() -> dns.message.Message:
    message = dns.update.UpdateMessage(ZONE.apex)
    message.absent(NAME, "NS")
    message.present(NAME, dns.rrset.from_text(NAME, 0, "IN", "A", "192.0.2.1")[0])
    message.add(NAME, 300, "TXT", "x")
    return message


def asked(message: dns.message.Message, key: TsigKey = ZONE.key) -> Asked:
    return sign(message.to_wire(), key, 300, time.time())


def by_dnspython(message: dns.message.Message, key: TsigKey, now: float) -> bytes:
    """The same message, signed at the same time by dnspython."""
    copy = dns.message.from_wire(message.to_wire())
    copy.use_tsig(key.for_signing(), fudge=300)
    with mock.patch.object(dns.message, "time", SimpleNamespace(time=lambda: now)):
        return copy.to_wire()


def answer(
    to: Asked,
    key: TsigKey = ZONE.key,
    sections: Sequence[Sequence[str]] = ((), (), ()),
    *,
    later_seconds: int = 0,
) -> dns.message.Message:
    """A signed reply with these records, rendered; each record by itself, so in any order."""
    reply = dns.message.make_response(dns.message.from_wire(to.wire, keyring=key.for_signing()))
    for section, lines in zip(reply.sections[1:], sections, strict=True):
        for line in lines:
            name, ttl, _, rdtype, data = line.split(" ", 4)
            section.append(dns.rrset.from_text(name, int(ttl), "IN", rdtype, data))
    reply.use_tsig(key.for_signing())
    reply.request_mac = to.mac
    clock = SimpleNamespace(time=lambda: time.time() + later_seconds)
    with mock.patch.object(dns.message, "time", clock):
        reply.to_wire()
    return reply


lines = st.lists(st.sampled_from(LINES), max_size=6)
sections = st.tuples(lines, lines, lines)
