"""Which replies are believed: signatures made here with dnspython, as a server would."""

import time
from dataclasses import replace
from types import SimpleNamespace

import dns.message
import dns.name
import dns.rcode
import dns.rrset
import dns.tsig
import dns.update
import pytest
from dns.rcode import Rcode
from hypothesis import given, strategies as st

from gateway.dns.errors import (
    DnsFault,
    ReplyInvalid,
    ReplyTruncated,
    ReplyUnsigned,
    TsigRejected,
)
from gateway.dns.replies import Peer, read_reply
from gateway.dns.signing import Asked
from gateway.dns.zones import TsigKey
from tests.unit.dns.building import NAME, ZONE

PEER = Peer.primary_of(ZONE)


def to_wire_name(name: str) -> bytes:
    return dns.name.from_text(name).to_wire() or b""


UNSIGNED_PEER = Peer(ZONE.primary, ZONE.name)


def request(*, update: bool = False, signed: bool = True) -> dns.message.Message:
    message: dns.message.Message
    if update:
        message = dns.update.UpdateMessage(ZONE.apex)
    else:
        message = dns.message.make_query(NAME, "ANY", flags=0)
    if signed:
        message.use_tsig(ZONE.key.for_signing())
    message.to_wire()
    return message


def answer(to: dns.message.Message, tsig_error: int = 0) -> dns.message.Message:
    reply = dns.message.make_response(to, tsig_error=tsig_error)
    reply.request_mac = to.mac or b""
    return reply


@pytest.mark.parametrize("update", [False, True])
def test_reply_with_the_requests_key_is_believed(update: bool) -> None:
    asked = request(update=update)
    reply = read_reply(Asked.of(asked), answer(asked).to_wire(), PEER)
    assert reply.rcode == Rcode.NOERROR
    assert reply.signed_at is not None
    assert abs(reply.signed_at - time.time()) < 300


def test_unsigned_reply_to_an_unsigned_query_is_believed() -> None:
    asked = request(signed=False)
    reply = read_reply(Asked.of(asked), answer(asked).to_wire(), UNSIGNED_PEER)
    assert reply.signed_at is None


@pytest.mark.parametrize("section", [1, 2, 3])
@pytest.mark.parametrize("rdtype", ["A", "AAAA", "TXT"])
def test_records_of_another_class_are_none(section: int, rdtype: str) -> None:
    """What dnspython takes for an address of that class may have any number of bytes."""
    asked = request(signed=False)
    made = answer(asked)
    made.sections[section].append(dns.rrset.from_text(NAME, 300, "CLASS5", rdtype, "\\# 2 0163"))
    with pytest.raises(ReplyInvalid, match="another class"):
        read_reply(Asked.of(asked), made.to_wire(), UNSIGNED_PEER)


def test_other_id_is_no_reply() -> None:
    asked = request()
    wire = bytearray(answer(asked).to_wire())
    wire[0] ^= 1
    with pytest.raises(ReplyInvalid, match="not a reply"):
        read_reply(Asked.of(asked), bytes(wire), PEER)


def test_the_request_sent_back_is_no_reply() -> None:
    asked = request()
    with pytest.raises(ReplyInvalid, match="not a reply"):
        read_reply(Asked.of(asked), asked.to_wire(), PEER)


def test_changed_byte_breaks_the_signature() -> None:
    asked = request(update=True)
    wire = bytearray(answer(asked).to_wire())
    wire[3] ^= Rcode.REFUSED
    with pytest.raises(ReplyInvalid, match="signature is wrong"):
        read_reply(Asked.of(asked), bytes(wire), PEER)


def test_signature_of_another_key_proves_nothing() -> None:
    asked = request()
    reply = dns.message.make_response(asked)
    reply.use_tsig(TsigKey("other", "hmac-sha256", b"x" * 32).for_signing())
    reply.request_mac = asked.mac or b""
    with pytest.raises(ReplyInvalid, match="BadKey"):
        read_reply(Asked.of(asked), reply.to_wire(), PEER)


def test_other_question_is_not_answered() -> None:
    asked = request(signed=False)
    other = dns.message.make_query("other.example.test", "ANY", id=asked.id)
    with pytest.raises(ReplyInvalid, match="different question"):
        read_reply(Asked.of(asked), dns.message.make_response(other).to_wire(), UNSIGNED_PEER)


@pytest.mark.parametrize("rcode", [Rcode.REFUSED, Rcode.NOTAUTH, Rcode.NOERROR])
def test_missing_signature_is_told_with_the_rcode(rcode: Rcode) -> None:
    asked = request()
    reply = answer(asked)
    reply.tsig, reply.want_tsig_sign = None, False
    reply.set_rcode(rcode)
    with pytest.raises(ReplyUnsigned, match=f"{rcode.name} without a signature") as caught:
        read_reply(Asked.of(asked), reply.to_wire(), PEER)
    assert caught.value.rcode == rcode


def test_truncated_reply_is_told_before_its_signature() -> None:
    asked = request()
    wire = bytearray(answer(asked).to_wire())
    wire[2] |= 0x02
    with pytest.raises(ReplyTruncated):
        read_reply(Asked.of(asked), bytes(wire), PEER)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (Rcode.BADKEY, "does not know the key gateway with hmac-sha256: name and algorithm"),
        (Rcode.BADSIG, "the secret differs from the server's"),
        (Rcode.BADTRUNC, "longer signature"),
    ],
)
def test_servers_complaint_names_server_zone_key_and_error(error: Rcode, words: str) -> None:
    asked = request()
    reply = answer(asked, tsig_error=error)
    with pytest.raises(TsigRejected, match=words) as caught:
        read_reply(Asked.of(asked), reply.to_wire(), PEER)
    assert caught.value.rcode == error
    for word in ("192.0.2.53:53", "zone example.test", "key gateway"):
        assert word in caught.value.detail
    assert "0123456789" not in caught.value.detail


@pytest.mark.parametrize(("ahead", "words"), [(1000, "1000 s ahead"), (-7200, "7200 s behind")])
def test_badtime_says_by_how_much_the_clocks_differ(ahead: int, words: str) -> None:
    asked = request()
    assert asked.tsig is not None
    server_time = asked.tsig[0].time_signed + ahead
    reply = answer(asked)
    reply.use_tsig(
        ZONE.key.for_signing(), tsig_error=Rcode.BADTIME, other_data=server_time.to_bytes(6, "big")
    )
    with pytest.raises(TsigRejected, match=words) as caught:
        read_reply(Asked.of(asked), reply.to_wire(), PEER)
    assert caught.value.server_ahead_seconds == ahead


def test_badtime_without_the_servers_time_is_still_told() -> None:
    asked = request()
    with pytest.raises(TsigRejected, match="BADTIME") as caught:
        read_reply(Asked.of(asked), answer(asked, tsig_error=Rcode.BADTIME).to_wire(), PEER)
    assert caught.value.server_ahead_seconds is None


@pytest.mark.parametrize(("ahead", "words"), [(1000, "ahead of"), (-1000, "behind")])
def test_reply_signed_at_another_time_is_told_with_how_far_off_it_is(
    monkeypatch: pytest.MonkeyPatch, ahead: int, words: str
) -> None:
    asked = request()
    with monkeypatch.context() as changed:
        changed.setattr(dns.message, "time", SimpleNamespace(time=lambda: time.time() + ahead))
        wire = answer(asked).to_wire()
    with pytest.raises(ReplyInvalid, match=rf"(999|1000|1001) s {words} this machine's clock"):
        read_reply(Asked.of(asked), wire, PEER)


@pytest.mark.parametrize("algorithm", ["hmac-sha256", "hmac-sha384", "hmac-sha512"])
@pytest.mark.parametrize("left", [0.5, 0.9])
def test_signature_that_was_cut_proves_nothing(algorithm: str, left: float) -> None:
    """RFC 8945 section 5.2.2.1 lets a server cut it if the other side agrees: we never do."""
    peer = replace(PEER, key=TsigKey("gateway", algorithm, b"0123456789abcdef" * 4))
    asked = dns.message.make_query(NAME, "ANY", flags=0)
    assert peer.key is not None
    asked.use_tsig(peer.key.for_signing())
    asked.to_wire()
    reply = answer(asked)
    whole = reply.to_wire()
    assert read_reply(Asked.of(asked), whole, peer).signed_at
    assert reply.tsig is not None
    mac = reply.tsig[0].mac
    cut = mac[: int(len(mac) * left)]
    length_at = whole.index(mac) - 2
    assert int.from_bytes(whole[length_at : length_at + 2], "big") == len(mac)
    gone = len(mac) - len(cut)
    wire = bytearray(whole.replace(mac, cut))
    wire[length_at : length_at + 2] = len(cut).to_bytes(2, "big")
    # The length of the whole TSIG record stands before its algorithm's name.
    size_at = wire.index(to_wire_name(algorithm)) - 2
    size = int.from_bytes(wire[size_at : size_at + 2], "big")
    wire[size_at : size_at + 2] = (size - gone).to_bytes(2, "big")
    with pytest.raises(ReplyInvalid, match="BadSignature"):
        read_reply(Asked.of(asked), bytes(wire), peer)


def test_signature_of_a_shorter_algorithm_proves_nothing() -> None:
    """`hmac-sha256-128`, dnspython's name for such a one, under the same key."""
    asked = request()
    reply = dns.message.make_response(asked)
    reply.use_tsig(dns.tsig.Key("gateway", ZONE.key.secret, dns.tsig.HMAC_SHA256_128))
    reply.request_mac = asked.mac or b""
    with pytest.raises(ReplyInvalid, match="BadAlgorithm"):
        read_reply(Asked.of(asked), reply.to_wire(), PEER)


@given(st.binary(max_size=200))
def test_any_bytes_are_only_a_fault(garbage: bytes) -> None:
    asked = request()
    header = asked.id.to_bytes(2, "big") + b"\x80"
    with pytest.raises(DnsFault):
        read_reply(Asked.of(asked), header + garbage, PEER)


@given(st.data())
def test_damaged_reply_is_a_fault_or_says_the_same(data: st.DataObject) -> None:
    asked = request()
    whole = answer(asked)
    wire = bytearray(whole.to_wire())
    position = data.draw(st.integers(3, len(wire) - 1))
    wire[position] ^= data.draw(st.integers(1, 255))
    cut = data.draw(st.integers(position + 1, len(wire)))
    try:
        reply = read_reply(Asked.of(asked), bytes(wire[:cut]), PEER)
    except DnsFault:
        return
    # dnspython 2.9 looks at neither class nor TTL of the TSIG record, which say nothing.
    assert cut == len(wire)
    assert (reply.answer, reply.authority, reply.additional) == ((), (), ())
    assert (reply.rcode, reply.content.flags) == (whole.rcode(), whole.flags)
