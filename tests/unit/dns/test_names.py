"""Names, written and read without dnspython: exactly as dnspython does it."""

import dns.exception
import dns.name
import pytest
from hypothesis import example, given, strategies as st

from gateway.dns.names import after_name, is_plain, is_same, read_name, to_name, to_text, upwards
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


WIRES = st.one_of(
    st.binary(max_size=40),
    st.lists(
        st.one_of(
            st.sampled_from([b"\0", b"\1a", b"\3www", b"\x3f" + b"x" * 63]),
            st.integers(0, 40).map(lambda place: bytes((0xC0, place))),
        ),
        max_size=8,
    ).map(b"".join),
)


def chain(count: int) -> bytes:
    """The root, and so many pointers behind it, each to what is before it."""
    places = (max(0, 2 * number - 1) for number in range(count))
    return b"\0" + b"".join(bytes((0xC0, place)) for place in places)


@given(WIRES, st.integers(0, 40))
@example(b"\1a\xc0\0", 0)
@example(b"\1a\xc0\0", 2)
@example(b"\1a\1b\xc0\2\xc0\0", 6)
@example((b"\x3f" + b"x" * 63) * 4 + b"\0", 0)
@example(b"\2\xc0\0\0", 1)
@example(b"\1\xc0\0\0", 1)
@example(chain(16), 31)
@example(chain(17), 33)
def test_name_in_a_message_is_read_as_dnspython_reads_it(wire: bytes, at: int) -> None:
    try:
        expected, length = dns.name.from_wire(wire, at)
    except (dns.exception.DNSException, IndexError):
        with pytest.raises((dns.exception.DNSException, IndexError, ValueError)):
            read_name(wire, at)
    else:
        assert read_name(wire, at).labels == expected.labels
        assert after_name(wire, at) == at + length


@given(LABELS, st.integers(0, 63))
def test_names_are_the_same_as_dnspython_says(labels: list[bytes], flip: int) -> None:
    name = dns.name.Name((*labels, b""))
    other = dns.name.Name(
        [label.swapcase() if flip >> n & 1 else label for n, label in enumerate(name.labels)]
    )
    assert is_same(name, other)
    assert is_same(name, dns.name.root) == (name == dns.name.root)
