"""Signatures of requests: the bytes that dnspython would sign, and what it makes of the result."""

import dns.message
import pytest
from dns.rdatatype import RdataType

from gateway.dns.signing import Asked, sign
from gateway.dns.update import Add, NameFree, Update
from gateway.dns.zones import TsigKey
from tests.unit.dns.building import NAME, ZONE, rdata
from tests.unit.dns.signed import KEYS, NAMED_BELOW_THE_ZONE, by_dnspython, query, update

NOW = 1_796_000_000.75
MESSAGES = [query(), query(edns=False), update()]


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.algorithm)
@pytest.mark.parametrize("message", MESSAGES, ids=["query", "without edns", "update"])
def test_signed_request_is_the_same_as_dnspythons(
    message: dns.message.Message, key: TsigKey
) -> None:
    assert sign(message.to_wire(), key, 300, NOW).wire == by_dnspython(message, key, NOW)


def test_key_named_below_the_zone_signs_what_dnspython_takes() -> None:
    """There dnspython itself would write the key's name shorter, by a pointer."""
    message = update()
    signed = sign(message.to_wire(), NAMED_BELOW_THE_ZONE, 300, NOW)
    theirs = dns.message.from_wire(by_dnspython(message, NAMED_BELOW_THE_ZONE, NOW), False)
    ours = dns.message.from_wire(signed.wire, keyring=False)
    assert theirs.tsig is not None
    assert ours.tsig == theirs.tsig
    assert signed.mac == theirs.tsig[0].mac


def test_time_and_fudge_are_those_that_were_told() -> None:
    signed = sign(query().to_wire(), ZONE.key, 29, NOW)
    read = dns.message.from_wire(signed.wire, keyring=False)
    assert read.tsig is not None
    assert (read.tsig[0].time_signed, read.tsig[0].fudge) == (int(NOW), 29)
    assert signed.at_seconds == int(NOW)


def test_message_is_signed_anew_each_time() -> None:
    message = Update(ZONE.apex, (NameFree(NAME),), (Add(NAME, 300, rdata("A", "192.0.2.1")),))
    first, second = (sign(message.to_wire(), ZONE.key, 300, NOW + later) for later in (0, 1))
    assert first.mac != second.mac
    theirs = dns.message.from_wire(message.to_wire())
    assert second.wire == by_dnspython(theirs, ZONE.key, NOW + 1)


def test_what_dnspython_has_signed_was_asked_with_its_signature() -> None:
    message = dns.message.make_query(NAME, RdataType.SOA, flags=0)
    message.use_tsig(ZONE.key.for_signing())
    wire = message.to_wire()
    assert message.tsig is not None
    time_signed = message.tsig[0].time_signed
    assert Asked.of(message) == Asked(wire, message.mac or b"", time_signed)
