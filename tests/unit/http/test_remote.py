"""Who calls: the peer, or whom trusted proxies vouch for; whatever the header holds."""

import ipaddress
import tracemalloc

import pytest
from hypothesis import assume, given, strategies as st

from gateway.http.remote import UNKNOWN, is_told_encrypted, remote_of, subscriber_of

PROXIES = [ipaddress.ip_network(each) for each in ("10.0.0.0/8", "2001:db8:ffff::/48")]
GARBAGE = st.lists(st.text(st.characters(codec="latin-1"), max_size=80), max_size=5)
ADDRESSES = st.ip_addresses().map(str)


@pytest.mark.parametrize(
    ("peer", "forwarded", "remote"),
    [
        ("192.0.2.1", [], "192.0.2.1"),
        ("192.0.2.1", ["198.51.100.7"], "192.0.2.1"),
        ("10.0.0.1", ["198.51.100.7"], "198.51.100.7"),
        ("10.0.0.1", ["203.0.113.9, 198.51.100.7"], "198.51.100.7"),
        ("10.0.0.1", ["203.0.113.9", "198.51.100.7"], "198.51.100.7"),
        ("10.0.0.1", ["198.51.100.7, 10.9.9.9"], "198.51.100.7"),
        ("10.0.0.1", ["198.51.100.7", "10.9.9.9,2001:db8:ffff::1"], "198.51.100.7"),
        ("10.0.0.1", [], "10.0.0.1"),
        ("10.0.0.1", ["10.0.0.2"], "10.0.0.2"),
        ("10.0.0.1", ["198.51.100.7, unknown"], "10.0.0.1"),
        ("10.0.0.1", ["198.51.100.7, , 10.0.0.2"], "10.0.0.2"),
        ("10.0.0.1", ["198.51.100.7:4711"], "198.51.100.7"),
        ("10.0.0.1", ["[2001:DB8::1]:4711"], "2001:db8::1"),
        ("10.0.0.1", ["2001:db8:0:0::1"], "2001:db8::1"),
        ("::ffff:10.0.0.1", ["::ffff:198.51.100.7"], "198.51.100.7"),
        ("2001:db8:ffff::1%eth0", ["198.51.100.7"], "198.51.100.7"),
        (None, ["198.51.100.7"], UNKNOWN),
        ("/run/gateway.sock", ["198.51.100.7"], UNKNOWN),
    ],
)
def test_remote_is_the_last_address_that_is_vouched_for(
    peer: str | None, forwarded: list[str], remote: str
) -> None:
    assert remote_of(peer, forwarded, PROXIES) == remote


@given(peer=ADDRESSES, forwarded=GARBAGE)
def test_without_trusted_proxies_nobody_can_say_who_he_is(peer: str, forwarded: list[str]) -> None:
    assert remote_of(peer, forwarded, []) == remote_of(peer, [], [])


@given(forged=GARBAGE, client=ADDRESSES)
def test_what_stands_before_the_proxys_own_entry_is_without_effect(
    forged: list[str], client: str
) -> None:
    alone = remote_of("10.0.0.1", [client], PROXIES)
    assume(not any(ipaddress.ip_address(alone) in proxies for proxies in PROXIES))
    assert remote_of("10.0.0.1", [*forged, client], PROXIES) == alone


@given(peer=st.none() | st.text(max_size=80) | ADDRESSES, forwarded=GARBAGE)
def test_whatever_is_sent_the_answer_is_an_address_or_unknown(
    peer: str | None, forwarded: list[str]
) -> None:
    remote = remote_of(peer, forwarded, PROXIES)
    assert remote == UNKNOWN or str(ipaddress.ip_address(remote)) == remote
    assert subscriber_of(remote)


def test_header_of_thousands_of_proxies_is_read_to_a_bound_only() -> None:
    header = ["198.51.100.7," + "10.0.0.2," * 5_000 + "10.0.0.3"]
    assert remote_of("10.0.0.1", header, PROXIES) == "10.0.0.2"


def test_long_entries_are_not_remembered() -> None:
    tracemalloc.start()
    try:
        for number in range(500):
            assert remote_of("10.0.0.1", [f"{number}".zfill(16_384)], PROXIES) == "10.0.0.1"
        kept_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept_bytes < 1_000_000  # 8 million are one for each


@pytest.mark.parametrize(
    ("remote", "subscriber"),
    [
        ("198.51.100.7", "198.51.100.7"),
        ("2001:db8:1:2:3::4", "2001:db8:1:2::/64"),
        (UNKNOWN, UNKNOWN),
    ],
)
def test_whole_network_of_an_ipv6_subscriber_counts_as_one(remote: str, subscriber: str) -> None:
    assert subscriber_of(remote) == subscriber


@pytest.mark.parametrize(
    ("peer", "forwarded", "is_encrypted"),
    [
        ("10.0.0.1", ["https"], True),
        ("10.0.0.1", ["http", "HTTPS "], True),
        ("10.0.0.1", ["http, https"], True),
        ("10.0.0.1", ["https, http"], False),
        ("10.0.0.1", ["https", "http"], False),
        ("10.0.0.1", [], False),
        ("192.0.2.1", ["https"], False),
        (None, ["https"], False),
        ("/run/gateway.sock", ["https"], False),
    ],
)
def test_tls_counts_where_a_trusted_proxy_says_so_last(
    peer: str | None, forwarded: list[str], is_encrypted: bool
) -> None:
    assert is_told_encrypted(peer, forwarded, PROXIES) is is_encrypted
