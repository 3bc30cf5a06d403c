"""What is told of the markers at a name: each is judged by itself."""

import pytest

from gateway.dns.records import RRset
from gateway.dns.situation import MarkerSeen, markers_seen
from tests.unit.dns.building import (
    A_EDITED,
    A_OURS,
    MARKERS,
    OWNER,
    SPF,
    V4,
    V4_OTHER,
    marker_of,
    observed,
    rrset,
    txt,
)

MINE, STALE = marker_of(V4), marker_of(V4_OTHER)


def told(text: str, *, is_there: bool = False, is_whole: bool = False) -> MarkerSeen:
    return MarkerSeen(text, "new", True, OWNER, is_there, is_whole)


@pytest.mark.parametrize(
    ("address", "mine"),
    [
        (A_OURS, told(MINE, is_there=True, is_whole=True)),
        (rrset("A", V4.value, "203.0.113.9"), told(MINE, is_there=True)),
        (A_EDITED, told(MINE)),
    ],
)
def test_marker_is_judged_by_the_address_it_was_made_for(address: RRset, mine: MarkerSeen) -> None:
    name = observed(address, txt(f'"{MINE}"', f'"{STALE}"', SPF))
    assert set(markers_seen(name, MARKERS, [OWNER], [V4, V4_OTHER])) == {mine, told(STALE)}


def test_marker_of_nobody_asked_about_is_told_without_an_owner() -> None:
    name = observed(A_OURS, txt(f'"{MINE}"'))
    assert markers_seen(name, MARKERS, []) == (MarkerSeen(MINE, "new", is_own_key=True),)


@pytest.mark.parametrize("text", [MINE.replace(":new:", ":lost:"), "gateway-owner=v1:new:short"])
def test_marker_that_no_key_of_the_keyring_makes_is_told_as_such(text: str) -> None:
    (seen,) = markers_seen(observed(txt(f'"{text}"')), MARKERS, [OWNER])
    assert not seen.is_own_key
