"""Data of records, with dnspython as the judge of what they mean."""

import dns.exception
import dns.rdata
import pytest
from dns.rdataclass import RdataClass
from dns.rdatatype import RdataType
from hypothesis import example, given, strategies as st

from gateway.dns.records import (
    PLAIN_TYPES,
    Rdata,
    address_rdata,
    address_value,
    is_plain_data,
    txt_rdata,
    txt_strings,
    txt_text,
)
from tests.unit.dns.building import rdata

TYPES = st.sampled_from(PLAIN_TYPES)
DATA = st.one_of(
    st.binary(max_size=20),
    st.lists(st.binary(max_size=255), max_size=4).map(
        lambda strings: b"".join(bytes((len(each),)) + each for each in strings)
    ),
)


def as_dnspython_reads(rdtype: RdataType, wire: bytes) -> dns.rdata.Rdata | None:
    try:
        return dns.rdata.from_wire(RdataClass.IN, rdtype, wire, 0, len(wire))
    except dns.exception.DNSException:
        return None


@given(TYPES, DATA)
@example(RdataType.AAAA, bytes(10) + b"\xff\xff\xc0\0\2\1")
@example(RdataType.TXT, b"\x80" + b"x" * 128)
@example(RdataType.TXT, b"\0")
@example(RdataType.TXT, b"")
def test_data_are_plain_where_dnspython_reads_them_and_mean_the_same(
    rdtype: RdataType, wire: bytes
) -> None:
    theirs = as_dnspython_reads(rdtype, wire)
    assert is_plain_data(rdtype, wire) == (theirs is not None)
    if theirs is None:
        return
    ours = Rdata.plain(rdtype, wire)
    assert ours == Rdata.of(theirs)
    assert ours.by_dnspython() == theirs
    assert ours.to_text() == theirs.to_text()
    if rdtype == RdataType.TXT:
        strings = theirs.strings  # type: ignore[attr-defined]
        assert txt_strings(ours) == strings
        is_text = len(strings) == 1 and strings[0].isascii()
        assert txt_text(ours) == (strings[0].decode("ascii") if is_text else None)


@pytest.mark.parametrize(
    ("type_", "text"),
    [("MX", "10 Mail.example.test."), ("CNAME", "Other.example.test."), ("TYPE65400", "\\# 1 00")],
)
def test_data_of_other_types_keep_their_spelling(type_: str, text: str) -> None:
    theirs = dns.rdata.from_text(RdataClass.IN, type_, text)
    ours = Rdata.of(theirs)
    assert ours.wire == theirs.to_wire()
    assert ours.to_text() == theirs.to_text()


def test_names_in_data_are_the_same_in_any_case() -> None:
    first, second = rdata("CNAME", "Other.example.test."), rdata("CNAME", "other.EXAMPLE.test.")
    assert first == second
    assert hash(first) == hash(second)
    assert first.wire != second.wire


def test_the_same_data_of_another_type_are_others() -> None:
    assert Rdata.plain(RdataType.A, bytes(4)) != Rdata.plain(RdataType.TXT, bytes(4))


@given(st.one_of(st.ip_addresses(v=4), st.ip_addresses(v=6)))
def test_address_is_read_as_it_was_written(address: object) -> None:
    type_ = "AAAA" if ":" in str(address) else "A"
    made = address_rdata(type_, str(address))
    assert address_value(made) == str(address)
    assert made == rdata(type_, str(address))


@given(st.text(st.characters(max_codepoint=127), max_size=255))
def test_text_is_read_as_it_was_written(text: str) -> None:
    assert txt_text(txt_rdata(text)) == text


def test_text_that_is_too_long_for_a_record_is_refused() -> None:
    with pytest.raises(ValueError, match="255"):
        txt_rdata("x" * 256)
