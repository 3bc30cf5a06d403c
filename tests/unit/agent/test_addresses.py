"""Which of an interface's addresses is published: pure. Real interfaces: tests/integration."""

from random import Random

import pytest
from hypothesis import given, strategies as st

from gateway.agent.addresses import GivenAddress, address, choose, publishable
from gateway.agent.interfaces import HeldAddress, passing, read_flags
from gateway.contract import Address, parse_address


def read(text: str) -> Address:
    address = parse_address(text)
    assert address is not None
    return address


IPV4 = st.integers(1 << 24, 223 << 24).map(lambda number: Address("A", number))
IPV6 = st.integers(1 << 125, (1 << 126) - 1).map(lambda number: Address("AAAA", number))
SEVERAL = st.lists(IPV4, min_size=1, max_size=5) | st.lists(IPV6, min_size=1, max_size=5)


@given(candidates=SEVERAL, published=st.none() | IPV4.map(str), order=st.randoms())
def test_choice_does_not_depend_on_the_order(
    candidates: list[Address], published: str | None, order: Random
) -> None:
    shuffled = candidates.copy()
    order.shuffle(shuffled)
    assert choose(shuffled, published) == choose(candidates, published)


@given(candidates=SEVERAL, data=st.data())
def test_choice_stays_when_another_of_the_candidates_goes(
    candidates: list[Address], data: st.DataObject
) -> None:
    chosen = choose(candidates, None)
    others = [each for each in candidates if each != chosen]
    gone = data.draw(st.sampled_from([None, *others]))
    left = [each for each in candidates if each != gone]
    assert choose(left, str(chosen)) == chosen


@given(candidates=SEVERAL)
def test_choice_is_one_of_the_candidates(candidates: list[Address]) -> None:
    assert choose(candidates, "198.51.100.1") in candidates


def test_choice_stays_when_a_lower_address_comes() -> None:
    candidates = [read("198.51.100.7"), read("198.51.100.9")]
    assert choose(candidates, "198.51.100.9") == read("198.51.100.9")


def test_choice_is_the_lowest_when_nothing_was_published() -> None:
    assert choose([read("198.51.100.9"), read("198.51.100.10")], None) == read("198.51.100.9")


@pytest.mark.parametrize(
    ("private", "public"),
    [("10.0.0.1", "9.9.9.9"), ("100.64.0.1", "203.0.112.1"), ("fd00::1", "2a00::1")],
)
def test_public_address_takes_the_place_of_a_private_one_that_is_published(
    private: str, public: str
) -> None:
    assert choose([read(private), read(public)], private) == read(public)


def test_nothing_is_chosen_from_nothing() -> None:
    assert choose([], "198.51.100.7") is None


def test_address_of_the_other_family_is_passed_by_without_a_word() -> None:
    assert publishable([HeldAddress(read("2001:db8::1"), None)], "A") == ([], [])


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (HeldAddress(read("fe80::1"), None), "fe80::1 is link-local"),
        (HeldAddress(read("::1"), None), "::1 is a loopback address"),
        (HeldAddress(read("2001:db8::1"), "deprecated"), "2001:db8::1 is deprecated"),
    ],
)
def test_address_that_cannot_be_published_is_told_with_why(found: HeldAddress, reason: str) -> None:
    assert publishable([found], "AAAA") == ([], [reason])


@pytest.mark.parametrize("text", ["127.0.0.1", "169.254.0.1", "0.0.0.0", "224.0.0.1"])  # noqa: S104
def test_ipv4_address_that_is_not_unicast_is_not_published(text: str) -> None:
    good, reasons = publishable([HeldAddress(read(text), None)], "A")
    assert (good, len(reasons)) == ([], 1)


@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        (0x80, None),
        (0x02, None),
        (0x01, "temporary (RFC 8981)"),
        (0x21, "temporary (RFC 8981)"),
        (0xA0, "deprecated"),
        (0xC0, "tentative: not yet known to be free"),
        (0x04, "tentative: not yet known to be free"),
        (0x88, "a duplicate of another machine's"),
        (None, "coming or going"),
    ],
)
def test_flags_of_the_kernel_say_what_passes(flags: int | None, reason: str | None) -> None:
    assert passing(flags) == reason


def test_flags_are_read_of_the_interface_that_was_asked_for() -> None:
    lines = [
        "20010db8000000000000000000000005 02 40 00 80     eth0",
        "fe80000000000000000000000000abcd 02 40 20 c0     eth0",
        "20010db8000000000000000000000006 03 40 00 01     eth1",
        "not a line of that kind",
    ]
    assert read_flags(lines, "eth0") == {
        read("2001:db8::5").number: 0x80,
        read("fe80::abcd").number: 0xC0,
    }


async def test_given_address_is_answered_as_it_is() -> None:
    assert await address(GivenAddress("198.51.100.85"), "198.51.100.1") == "198.51.100.85"
