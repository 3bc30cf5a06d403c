"""Which records at a name are proven to be the owner's."""

import pytest

from gateway.dns.proof import Ours, find_ours
from gateway.dns.records import RRset
from tests.unit.dns.building import (
    FOREIGN_MARKERS,
    MARKERS,
    OLD_MARKERS,
    OTHER,
    OWNER,
    V4,
    V4_OTHER,
    V6,
    marker_of,
    observed,
    rdata,
    rrset,
)

ADDRESS = rrset("A", V4.value)
MARKER = marker_of(V4)

ALONE = Ours((), (rdata("TXT", MARKER),), (rdata("TXT", MARKER),))
"""Of a marker that proves no address at the name."""


def found(*rrsets: RRset, known: tuple[object, ...] = ()) -> Ours:
    return find_ours(observed(*rrsets), OWNER, MARKERS, known)  # type: ignore[arg-type]


def test_one_address_with_its_marker_is_ours() -> None:
    assert found(ADDRESS, rrset("TXT", MARKER)) == Ours((ADDRESS,), (rdata("TXT", MARKER),))


def test_marker_of_an_older_key_proves_as_well() -> None:
    old = marker_of(V4, markers=OLD_MARKERS)
    assert found(ADDRESS, rrset("TXT", old)).addresses == (ADDRESS,)


def test_marker_among_other_texts_is_found() -> None:
    ours = found(ADDRESS, rrset("TXT", '"v=spf1 -all"', MARKER, '"two" "strings"', '"\\200"'))
    assert ours == Ours((ADDRESS,), (rdata("TXT", MARKER),))


@pytest.mark.parametrize(
    "text",
    [
        marker_of(V4, owner=OTHER),
        marker_of(V4_OTHER),
        marker_of(V6),
        marker_of(V4, markers=FOREIGN_MARKERS),
        MARKER[:-1],
        MARKER + "A",
        '"' + MARKER[:20] + '" "' + MARKER[20:] + '"',
        "gateway-owner=v2:new:AAAA",
        "gateway-owner=",
        '"v=spf1 -all"',
    ],
)
def test_nothing_is_ours_with_another_text(text: str) -> None:
    assert found(ADDRESS, rrset("TXT", text)) == Ours()


def test_address_without_marker_is_not_ours() -> None:
    assert found(ADDRESS, known=(V4,)) == Ours()


def test_second_value_makes_the_address_foreign_but_not_the_marker() -> None:
    both = rrset("A", V4.value, V4_OTHER.value)
    assert found(both, rrset("TXT", MARKER)) == ALONE


def test_marker_without_address_is_proven_by_a_known_record_only() -> None:
    text = rrset("TXT", MARKER)
    assert found(text) == Ours()
    assert found(text, known=(None, V6)) == Ours()
    assert found(text, known=(V4, None)) == ALONE


def test_marker_of_a_known_record_does_not_prove_an_edited_address() -> None:
    ours = found(rrset("A", "192.0.2.99"), rrset("TXT", MARKER), known=(V4,))
    assert ours == ALONE


def test_both_families_are_ours_with_both_markers() -> None:
    ours = found(ADDRESS, rrset("AAAA", V6.value), rrset("TXT", MARKER, marker_of(V6)))
    assert [each.rdtype.name for each in ours.addresses] == ["A", "AAAA"]


def test_ipv6_is_compared_by_value() -> None:
    spelled_out = rrset("AAAA", "2001:0DB8:0:0:0:0:0:1")
    assert found(spelled_out, rrset("TXT", marker_of(V6))).addresses == (spelled_out,)
