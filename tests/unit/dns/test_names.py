"""Names and data, written and read without dnspython: exactly as dnspython does it."""

import dns.exception
import dns.name
import dns.rdata
import pytest
from dns.rdataclass import RdataClass
from dns.rdatatype import RdataType
from hypothesis import example, given, strategies as st

from gateway.dns.names import is_plain, to_name, to_text, upwards
from gateway.dns.records import address_value, data_of
from gateway.dns.zones import Endpoint, Zone, Zones

TEXTS = st.one_of(
    st.text("abAB09_-*.\\@\u00e9\u212a\0 ", max_size=70),
    st.lists(st.text("abz09-", min_size=1, max_size=70), min_size=1, max_size=9).map(".".join),
)
LABELS = st.lists(
    st.one_of(st.binary(min_size=1, max_size=63), st.text("aB.-", min_size=1).map(str.encode)),
    max_size=5,
)


def as_dnspython_reads(text: str) -> dns.name.Name | None:
    try:
        return dns.name.from_text(text, origin=dns.name.root)
    except dns.exception.DNSException:
        return None


@given(TEXTS)
@example("a" * 63 + ("." + "b" * 63) * 2 + "." + "c" * 61)
@example("a" * 63 + ("." + "b" * 63) * 2 + "." + "c" * 62)
@example("a" * 64)
@example("relay..example.test")
@example("relay.example.test\n")
def test_name_is_read_as_dnspython_reads_it(text: str) -> None:
    expected = as_dnspython_reads(text)
    if expected is None:
        with pytest.raises(ValueError, match="not a domain name"):
            to_name(text)
    else:
        assert to_name(text).labels == expected.labels


@given(LABELS)
@example([b"a.b", b"test"])
@example([b"a\0b", b"\xc9", b"test"])
def test_name_is_written_as_dnspython_writes_it(labels: list[bytes]) -> None:
    name = dns.name.Name((*labels, b""))
    assert to_text(name) == name.canonicalize().to_text(omit_final_dot=True)


@given(LABELS, st.integers(0, 5))
def test_names_above_are_the_parents_up_to_the_apex(labels: list[bytes], depth: int) -> None:
    name = dns.name.Name((*labels, b""))
    apex = dns.name.Name((*labels[depth:], b""))
    expected, level = [], name
    while level != apex:
        expected.append(level)
        level = level.parent()
    assert list(upwards(name, apex)) == expected


@given(TEXTS)
@example("x.sub.example.test")
@example("a\\.example.test")
@example("A.Example.Test.")
@example("anexample.test")
def test_zone_of_a_text_is_that_of_its_name(text: str) -> None:
    apexes = ("example.test", "sub.example.test", "b", "9.a")
    zones = Zones([Zone(name, Endpoint("127.0.0.1", 53), None) for name in apexes])  # type: ignore[arg-type]
    name = as_dnspython_reads(text)
    if name is not None:
        assert zones.holding(text) == zones.holding(name)
    assert not is_plain(text) or name is not None


@pytest.mark.parametrize(
    ("rdtype", "text"),
    [
        (RdataType.A, "198.51.100.1"),
        (RdataType.A, "0.0.0.0"),  # noqa: S104
        (RdataType.AAAA, "2001:db8::1"),
        (RdataType.AAAA, "::ffff:192.0.2.1"),
        (RdataType.TXT, '"one"'),
        (RdataType.TXT, '"one" "" "\\000\\255 two"'),
        (RdataType.MX, "10 mail.example.test."),
        (RdataType.CNAME, "Other.example.test."),
    ],
)
def test_data_is_written_as_dnspython_writes_it(rdtype: RdataType, text: str) -> None:
    rdata = dns.rdata.from_text(RdataClass.IN, rdtype, text)
    assert data_of(rdata) == rdata.to_wire()
    if rdtype in (RdataType.A, RdataType.AAAA):
        read = dns.rdata.from_wire(RdataClass.IN, rdtype, data_of(rdata), 0, len(data_of(rdata)))
        assert address_value(read) == address_value(rdata)
