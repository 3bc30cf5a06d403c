"""Plain reading of replies: what it accepts, dnspython accepts and reads the same."""

import contextlib
import time
from collections.abc import Callable, Sequence

import dns.exception
import dns.flags
import dns.message
import dns.opcode
import dns.rdata
import dns.rrset
import pytest
from dns.rcode import Rcode
from dns.rdataclass import RdataClass
from dns.rdatatype import RdataType
from hypothesis import given, strategies as st

from gateway.dns.reading import At, Reply, read_plain
from gateway.dns.signing import Asked
from gateway.dns.zones import TsigKey
from tests.unit.dns.building import NAME, ZONE
from tests.unit.dns.signed import KEYS, NAMED_BELOW_THE_ZONE, answer, asked, query, sections, update

ADDRESS = "relay.example.test. 300 IN A 192.0.2.1"
OTHER_KEYS = [
    TsigKey("gateway", "hmac-sha256", b"another secret"),
    TsigKey("other", "hmac-sha256", ZONE.key.secret),
    TsigKey("gateway", "hmac-sha512", ZONE.key.secret),
]


def read(to: Asked, wire: bytes, key: TsigKey | None = ZONE.key) -> Reply | None:
    return read_plain(to, wire, key, time.time())


def read_by_dnspython(to: Asked, wire: bytes, key: TsigKey = ZONE.key) -> dns.message.Message:
    return dns.message.from_wire(wire, keyring=key.for_signing(), request_mac=to.mac)


def heads(section: Sequence[At]) -> set[tuple[object, ...]]:
    return {(name, rrset.rdtype) for name, rrset in section}


def spelled(section: Sequence[At]) -> list[tuple[object, ...]]:
    """All of it, the spelling of names in data too. Signatures of several types are one set."""
    return [
        (name, rrset, [rdata.wire for rdata in rrset.rdatas])
        for name, rrset in section
        if rrset.rdtype != RdataType.RRSIG
    ]


def require_same(reply: Reply, message: dns.message.Message) -> None:
    theirs = Reply.of(message)
    assert (reply.content.flags, reply.rcode) == (message.flags, message.rcode())
    assert spelled(reply.answer) == spelled(theirs.answer)
    assert heads(reply.authority) == heads(theirs.authority)
    assert spelled(reply.additional) == spelled(theirs.additional)
    assert reply.signed_at == theirs.signed_at


@given(
    key=st.sampled_from([*KEYS, NAMED_BELOW_THE_ZONE]),
    edns=st.booleans(),
    records=sections,
    rcode=st.sampled_from([Rcode.NOERROR, Rcode.NXDOMAIN, Rcode.REFUSED]),
)
def test_reply_of_any_records_is_read_as_dnspython_reads_it(
    key: TsigKey, edns: bool, records: Sequence[Sequence[str]], rcode: Rcode
) -> None:
    to = asked(query(edns=edns), key)
    made = answer(to, key, records)
    made.set_rcode(rcode)
    made.flags |= dns.flags.AA
    wire = made.to_wire()
    reply = read(to, wire, key)
    assert reply is not None
    require_same(reply, read_by_dnspython(to, wire, key))
    assert reply.asked_at == to.at_seconds


def test_of_two_aliases_at_one_name_the_last_counts_as_with_dnspython() -> None:
    to = asked(query())
    made = answer(to)
    made.answer.extend(
        dns.rrset.from_text(NAME, 300, "IN", "CNAME", target)
        for target in ("other.example.test.", "elsewhere.example.test.")
    )
    wire = made.to_wire()
    reply = read(to, wire)
    assert reply is not None
    assert [each.to_text() for each in reply.answer[0].rrset.rdatas] == ["elsewhere.example.test."]
    require_same(reply, read_by_dnspython(to, wire))


def test_data_are_spelled_as_the_server_spells_them_where_dnspython_writes_less() -> None:
    to = asked(query())
    made = answer(to)
    spellings = [b"\x01x", b"\x01x\x00"]
    rrset = dns.rrset.RRset(NAME, RdataClass.IN, RdataType.ISDN)
    rrset.items = {
        dns.rdata.GenericRdata(RdataClass.IN, RdataType.ISDN, each): None for each in spellings
    }
    made.answer.append(rrset)
    reply = read(to, made.to_wire())
    assert reply is not None
    assert [each.wire for each in reply.answer[0].rrset.rdatas] == spellings


@pytest.mark.parametrize("rcode", [Rcode.NOERROR, Rcode.YXDOMAIN, Rcode.NOTAUTH])
@pytest.mark.parametrize("has_question", [True, False])
def test_reply_to_an_update_is_read(rcode: Rcode, has_question: bool) -> None:
    to = asked(update())
    made = answer(to)
    made.set_rcode(rcode)
    if not has_question:
        made.sections[0].clear()
    reply = read(to, made.to_wire())
    assert reply is not None
    assert reply.rcode == rcode


@given(st.data())
def test_damaged_reply_is_none_or_what_dnspython_reads(data: st.DataObject) -> None:
    to = asked(query())
    whole = answer(to, sections=data.draw(sections)).to_wire()
    wire = bytearray(whole)
    for _ in range(data.draw(st.integers(1, 3))):
        wire[data.draw(st.integers(0, len(wire) - 1))] = data.draw(st.integers(0, 255))
    damaged = bytes(wire[: data.draw(st.integers(len(wire) - 40, len(wire)))])
    reply = read(to, damaged)
    if reply is not None:
        require_same(reply, read_by_dnspython(to, damaged))


def unsigned(
    edns: bool = True, records: Sequence[Sequence[str]] = ((), (), ())
) -> tuple[Asked, bytes]:
    """A question that nobody signs, and an answer to it."""
    message = query(edns=edns)
    made = answer(asked(message), sections=records)
    made.tsig, made.want_tsig_sign = None, False
    return Asked(message.to_wire()), made.to_wire()


@given(edns=st.booleans(), records=sections)
def test_unsigned_reply_to_an_unsigned_question_is_read_as_dnspython_reads_it(
    edns: bool, records: Sequence[Sequence[str]]
) -> None:
    to, wire = unsigned(edns, records)
    reply = read(to, wire, None)
    assert reply is not None
    require_same(reply, dns.message.from_wire(wire))
    assert reply.signed_at is None


@given(st.data())
def test_damaged_unsigned_reply_has_no_other_answer_than_dnspython_reads(
    data: st.DataObject,
) -> None:
    to, whole = unsigned(records=data.draw(sections))
    wire = bytearray(whole)
    for _ in range(data.draw(st.integers(1, 3))):
        wire[data.draw(st.integers(0, len(wire) - 1))] = data.draw(st.integers(0, 255))
    reply = read(to, bytes(wire), None)
    with contextlib.suppress(dns.exception.DNSException, ValueError):
        theirs = dns.message.from_wire(bytes(wire), keyring=False)
        assert reply is None or spelled(reply.answer) == spelled(Reply.of(theirs).answer)


@pytest.mark.parametrize("change", [lambda wire: wire + b"\x00", lambda wire: wire[:-1]])
def test_unsigned_reply_that_ends_elsewhere_is_not_plain(change: Callable[[bytes], bytes]) -> None:
    to, wire = unsigned(records=([ADDRESS], (), ()))
    assert read(to, wire, None) is not None
    assert read(to, change(wire), None) is None


def test_signed_reply_to_an_unsigned_question_is_not_plain() -> None:
    to = asked(query())
    assert read(Asked(query().to_wire()), answer(to).to_wire(), None) is None


@given(st.binary(max_size=300))
def test_any_bytes_are_none(garbage: bytes) -> None:
    to = asked(query())
    assert read(to, garbage) is None
    assert read(to, to.wire[:2] + b"\x80" + garbage) is None


@pytest.mark.parametrize("key", OTHER_KEYS, ids=["secret", "name", "algorithm"])
def test_reply_by_another_key_is_not_proven(key: TsigKey) -> None:
    to = asked(query(), key)
    assert read(to, answer(to, key).to_wire()) is None


def test_reply_to_an_earlier_request_is_not_proven() -> None:
    """The very same question, asked a second later: a replay."""
    message = query()
    earlier = asked(message)
    later = Asked(earlier.wire, b"the mac of the later one", earlier.at_seconds)
    assert read(earlier, answer(earlier).to_wire()) is not None
    assert read(later, answer(earlier).to_wire()) is None


@pytest.mark.parametrize("later_seconds", [-302, 302])
def test_reply_of_another_time_is_not_proven(later_seconds: int) -> None:
    to = asked(query())
    made = answer(to, later_seconds=later_seconds)
    assert made.wire is not None
    assert read(to, made.wire) is None


def test_time_is_checked_after_the_fudge_of_the_reply() -> None:
    to = asked(query())
    made = answer(to)
    assert made.wire is not None
    assert read_plain(to, made.wire, ZONE.key, time.time() + 290) is not None
    assert read_plain(to, made.wire, ZONE.key, time.time() + 310) is None


def test_signature_under_another_name_is_not_proven() -> None:
    """The name is not among the bytes that are signed: the key's own is."""
    to = asked(query())
    wire = answer(to).to_wire()
    assert wire.count(b"\x07gateway") == 1
    assert read(to, wire.replace(b"\x07gateway", b"\x07gateweg")) is None


def test_bytes_behind_the_signature_are_not_plain() -> None:
    to = asked(query())
    assert read(to, answer(to).to_wire() + b"\x00") is None


def test_unsigned_reply_is_not_proven() -> None:
    to = asked(query())
    made = answer(to, sections=([ADDRESS], (), ()))
    made.tsig, made.want_tsig_sign = None, False
    assert read(to, made.to_wire()) is None


def test_complaint_about_the_signature_is_not_plain() -> None:
    to = asked(query())
    made = answer(to)
    made.use_tsig(ZONE.key.for_signing(), tsig_error=Rcode.BADTIME, other_data=bytes(6))
    assert read(to, made.to_wire()) is None


def test_answer_to_another_question_is_not_plain() -> None:
    to = asked(query())
    made = answer(to)
    made.question[0].name = ZONE.apex
    assert read(to, made.to_wire()) is None


def test_answer_of_another_kind_is_not_plain() -> None:
    to = asked(query())
    made = answer(to)
    made.set_opcode(dns.opcode.NOTIFY)
    assert read(to, made.to_wire()) is None


def test_extended_rcode_is_not_plain() -> None:
    to = asked(query())
    made = answer(to)
    made.set_rcode(Rcode.BADVERS)
    assert read(to, made.to_wire()) is None


def test_record_of_another_class_is_not_plain() -> None:
    to = asked(query())
    made = answer(to)
    made.answer.append(dns.rrset.from_text(NAME, 300, "CH", "TXT", "x"))
    assert read(to, made.to_wire()) is None


def test_update_reply_about_another_zone_is_not_plain() -> None:
    to = asked(update())
    made = answer(to)
    made.sections[0][0].name = NAME
    assert read(to, made.to_wire()) is None


def test_update_reply_with_records_is_not_plain() -> None:
    """There they have other meanings."""
    to = asked(update())
    made = answer(to)
    made.sections[1].append(dns.rrset.from_text(NAME, 300, "IN", "A", "192.0.2.1"))
    assert read(to, made.to_wire()) is None


@pytest.mark.parametrize("place", range(12))
def test_name_that_points_into_the_header_is_not_plain(place: int) -> None:
    """There is the id, which is another each time: none of what is kept."""
    to = asked(query())
    made = answer(to)
    made.flags |= dns.flags.AA
    pointing = dns.rdata.GenericRdata(RdataClass.IN, RdataType.CNAME, bytes((0xC0, place)))
    rrset = dns.rrset.RRset(NAME, RdataClass.IN, RdataType.CNAME)
    rrset.add(pointing, 300)
    made.answer.append(rrset)
    assert read(to, made.to_wire()) is None


def test_edns_of_another_name_than_the_root_is_not_plain() -> None:
    message = query(edns=False)
    to = Asked(message.to_wire())
    wire = to.wire[:2] + b"\x84\0" + to.wire[4:11] + b"\1" + to.wire[12:]
    edns = b"\0\x29\x04\xd0" + bytes(6)
    assert read(to, wire + b"\0" + edns, None) is not None
    assert read(to, wire + b"\xc0\x0c" + edns, None) is None


def broken_address() -> dns.rrset.RRset:
    """An address of three bytes."""
    broken = dns.rrset.RRset(NAME, RdataClass.IN, RdataType.A)
    broken.add(dns.rdata.GenericRdata(RdataClass.IN, RdataType.A, b"\x01\x02\x03"), 300)
    return broken


def test_answer_that_can_not_be_read_is_not_plain() -> None:
    to = asked(query())
    made = answer(to)
    made.answer.append(broken_address())
    assert read(to, made.to_wire()) is None


def test_additional_section_that_can_not_be_read_is_none() -> None:
    to = asked(query())
    made = answer(to, sections=([ADDRESS], (), [ADDRESS]))
    made.additional.append(broken_address())
    reply = read(to, made.to_wire())
    assert reply is not None
    assert (len(reply.answer), reply.additional) == (1, ())
