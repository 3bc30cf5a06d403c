"""How many connections there may be, in all and from one address."""

from collections import Counter
from functools import partial
from ipaddress import ip_network

import pytest
from hypothesis import given, strategies as st

from gateway.http.listener.admission import Admission
from gateway.http.listener.descriptors import KEPT_FREE, connections_within
from gateway.http.listener.idling import Idle

PEERS = [f"192.0.2.{number}" for number in range(4)]


def enter(admission: Admission, peer: str) -> str | None:
    """Have a connection of a peer counted: its key, None when it is refused."""
    key = admission.key_of(peer)
    return key if admission.enter(key) else None


def test_total_is_bounded() -> None:
    admission = Admission(2, 2)
    keys = [enter(admission, peer) for peer in PEERS[:3]]
    assert [key is None for key in keys] == [False, False, True]
    assert admission.total == 2


@pytest.mark.parametrize(
    ("first", "second", "is_one"),
    [
        ("192.0.2.1", "192.0.2.1", True),
        ("192.0.2.1", "192.0.2.2", False),
        ("192.0.2.1", "::ffff:192.0.2.1", True),
        ("2001:db8::1", "2001:db8:0:0:ffff::9", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("fe80::1%lo", "fe80::2%lo", True),
    ],
)
def test_address_is_what_one_machine_has(first: str, second: str, is_one: bool) -> None:
    admission = Admission(10, 1)
    assert enter(admission, first) is not None
    assert (enter(admission, second) is None) is is_one


def test_trusted_proxy_counts_in_the_total_alone() -> None:
    admission = Admission(3, 1, [ip_network("192.0.2.0/30")])
    assert [enter(admission, "192.0.2.1") for _ in range(4)] == ["", "", "", None]


def test_trust_may_change_while_there_are_connections() -> None:
    admission = Admission(9, 1)
    key = enter(admission, "192.0.2.1")
    admission.exempt_from_now_on([ip_network("192.0.2.1/32")])
    assert enter(admission, "192.0.2.1") == ""
    admission.exempt_from_now_on([])
    assert enter(admission, "192.0.2.1") is None
    assert key is not None
    admission.leave(key)
    assert enter(admission, "192.0.2.1") == key


@given(st.lists(st.one_of(st.sampled_from(PEERS), st.integers(0, 20))))
def test_counts_are_those_of_the_connections_there_are(steps: list[str | int]) -> None:
    """Text enters, a number has that one of the connections leave."""
    admission, open_now = Admission(5, 2), list[str]()
    for step in steps:
        if isinstance(step, int):
            if step < len(open_now):
                admission.leave(open_now.pop(step))
            continue
        may = len(open_now) < 5 and Counter(open_now)[step] < 2
        key = enter(admission, step)
        assert (key is not None) is may
        if key is not None:
            open_now.append(key)
        assert admission.total == len(open_now)


@pytest.mark.parametrize(
    ("limit", "wanted", "expected"),
    [
        (100_000, 2048, 2048),
        (2048 + KEPT_FREE, 2048, 2048),
        (1024, 2048, 512),
        (256, 2048, 128),
        (1, 2048, 1),
    ],
)
def test_connections_leave_room_for_the_rest(limit: int, wanted: int, expected: int) -> None:
    assert connections_within(limit, wanted) == expected


def test_longest_idle_connection_ends_first_and_one_that_was_busy_is_idle_anew() -> None:
    idle, ended = Idle(), list[str]()
    for name in ("a", "b", "c"):
        idle.begin(name, partial(ended.append, name))
    idle.over("a")
    idle.begin("a", partial(ended.append, "a"))
    idle.over("c")
    for _ in range(3):
        idle.end_longest()
    assert ended == ["b", "a"]


def test_peer_ends_the_longest_of_its_own_only() -> None:
    idle, ended = Idle(), list[str]()
    for name, peer in (("a", "one"), ("b", "other"), ("c", "one"), ("d", "one")):
        idle.enter(name, peer)
        idle.begin(name, partial(ended.append, name))
    for _ in range(2):
        idle.end_longest("other")
    idle.leave("a")
    idle.end_longest("one")
    idle.end_longest()
    assert ended == ["b", "c", "d"]
