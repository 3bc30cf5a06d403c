import ipaddress
import socket

import pytest
from hypothesis import given, strategies as st

from gateway.contract import Address, is_gateway_address_prefix, parse_address, parse_prefix
from gateway.contract.addresses import address_fault, prefix_fault
from tests.unit.contract.strategies import ipv6_numbers

NOT_UNICAST_IPV6 = [
    ipaddress.IPv6Network(text) for text in ("::/96", "::ffff:0:0/96", "fe80::/10", "ff00::/8")
]


def system_text(number: int) -> str:
    """RFC 5952 as the C library writes it (but for addresses that embed an IPv4 one)."""
    return socket.inet_ntop(socket.AF_INET6, number.to_bytes(16, "big"))


def is_unicast(number: int) -> bool:
    return not any(ipaddress.IPv6Address(number) in network for network in NOT_UNICAST_IPV6)


@given(ipv6_numbers())
def test_ipv6_is_accepted_exactly_in_its_rfc_5952_form(number: int) -> None:
    canonical = system_text(number)
    assert (address_fault(canonical, "AAAA") is None) is is_unicast(number)
    groups = [f"{number >> shift & 0xFFFF:x}" for shift in range(112, -1, -16)]
    for spelled in (
        ":".join(groups),
        ":".join(group.zfill(4) for group in groups),
        canonical.upper(),
        canonical.replace("::", ":0::", 1),
    ):
        if address_fault(spelled, "AAAA") is None:
            assert spelled == canonical


@given(st.text("0123456789abcdef:", min_size=2, max_size=39))
def test_accepted_ipv6_text_equals_its_rfc_5952_form(text: str) -> None:
    if address_fault(text, "AAAA") is None:
        packed = socket.inet_pton(socket.AF_INET6, text)
        assert socket.inet_ntop(socket.AF_INET6, packed) == text


@given(ipv6_numbers())
def test_refused_ipv6_spelling_names_the_rfc_5952_form(number: int) -> None:
    spelled = ":".join(f"{number >> shift & 0xFFFF:04X}" for shift in range(112, -1, -16))
    fault = address_fault(spelled)
    if is_unicast(number) and spelled != system_text(number):
        assert fault == f'must be spelled "{system_text(number)}", not "{spelled}"'
    elif not is_unicast(number):
        assert fault is not None
        assert fault.startswith("must be a unicast address")


@given(st.integers(0, 2**32 - 1))
def test_ipv4_is_accepted_unless_it_is_not_unicast(number: int) -> None:
    address = ipaddress.IPv4Address(number)
    is_special = (
        address.is_loopback
        or address.is_link_local
        or address.is_multicast
        or int(address) >> 24 == 0
        or int(address) >> 28 == 0xF
    )
    assert (address_fault(str(address), "A") is None) is not is_special
    assert parse_address(str(address)) == Address("A", number)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("198.051.100.085", 'must be spelled "198.51.100.85", not "198.051.100.085"'),
        ("2001:db8::198.51.100.1", 'must be spelled "2001:db8::c633:6401", not '),
        ("2001:DB8::1", 'must be spelled "2001:db8::1", not "2001:DB8::1"'),
        ("2001:db8::1%eth0", "must be an IPv4 or IPv6 address without a zone id, not "),
        ("10.0.0.0/8", "must be an IPv4 or IPv6 address without a prefix length, not "),
        ("999.1.1.1", 'must be an IPv4 or IPv6 address, not "999.1.1.1"'),
        ("::ffff:0:0", 'must be a unicast address, and "::ffff:0:0" is IPv4-mapped'),
        ("::198.51.100.1", 'must be a unicast address, and "::198.51.100.1" is IPv4-compatible'),
        ("255.255.255.255", 'must be a unicast address, and "255.255.255.255" is the broadcast'),
    ],
)
def test_refused_address_is_told_what_would_be_right(text: str, sentence: str) -> None:
    assert (address_fault(text) or "").startswith(sentence)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("198.51.100.85/24", 'must have no host bits set: "198.51.100.0/24", not '),
        ("2001:db8::1/32", 'must have no host bits set: "2001:db8::/32", not '),
        ("198.51.100.0/024", 'must be spelled "198.51.100.0/24", not "198.51.100.0/024"'),
        ("2001:DB8::/32", 'must be spelled "2001:db8::/32", not "2001:DB8::/32"'),
        ("198.51.100.0/33", "must end with a slash and a length from 0 to 32, not "),
        ("2001:db8::", "must end with a slash and a length from 0 to 128, not "),
        ("::ffff:0:0/97", "must not lie inside ::/96 or ::ffff:0:0/96, as "),
        ("::8/125", "must not lie inside ::/96 or ::ffff:0:0/96, as "),
        ("example.com/24", "must be an address, a slash and a length, not "),
        (f"10.0.0.0/{'8' * 4300}", "must be an address, a slash and a length, not "),
        (f"10.0.0.0/{'0' * 20}8", "must end with a slash and a length from 0 to 32, not "),
    ],
)
def test_refused_prefix_is_told_what_would_be_right(text: str, sentence: str) -> None:
    assert (prefix_fault(text) or "").startswith(sentence)
    assert parse_prefix(text) is None


@pytest.mark.parametrize("text", ["::/0", "::/95", "0.0.0.0/0", "127.0.0.0/8", "ff00::/8"])
def test_prefix_may_hold_addresses_that_no_record_may_have(text: str) -> None:
    assert is_gateway_address_prefix(text)


@given(ipv6_numbers(), st.integers(0, 128))
def test_ipv6_prefix_is_accepted_as_the_library_writes_it(number: int, length: int) -> None:
    network = ipaddress.IPv6Network((number, length), strict=False)
    text = f"{system_text(int(network.network_address))}/{length}"
    embeds_ipv4 = length >= 96 and int(network.network_address) >> 32 in (0, 0xFFFF)
    assert is_gateway_address_prefix(text) is not embeds_ipv4


@pytest.mark.parametrize("text", ["", "198.51.100.085", "2001:DB8::1", "fe80::1%1", "a.example"])
def test_parse_address_answers_none_for_what_is_not_canonical(text: str) -> None:
    assert parse_address(text) is None
