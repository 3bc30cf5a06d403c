"""The UPDATE messages: what they say on the wire, and the guard against cuts and aliases."""

import dns.message
import pytest
from dns.rdatatype import RdataType

from gateway.dns.names import to_name
from gateway.dns.update import (
    Add,
    Change,
    Delete,
    NameFree,
    Prerequisite,
    RRsetAbsent,
    RRsetIs,
    RRsetPresent,
    build_update,
    uncut,
)
from tests.unit.dns.building import NAME, ZONE, rdata, rrset


def sections(
    prerequisites: tuple[Prerequisite, ...] = (), changes: tuple[Change, ...] = ()
) -> tuple[set[str], list[str]]:
    """Both sections as a server reads them."""
    message = dns.message.from_wire(build_update(ZONE, prerequisites, changes).to_wire())
    return {str(each) for each in message.sections[1]}, [str(each) for each in message.sections[2]]


@pytest.mark.parametrize(
    ("prerequisite", "expected"),
    [
        (NameFree(NAME), {"relay.example.test. NONE ANY"}),
        (RRsetAbsent(NAME, RdataType.NS), {"relay.example.test. NONE NS"}),
        (RRsetPresent(NAME, RdataType.TXT), {"relay.example.test. ANY TXT"}),
        (
            RRsetIs(NAME, rrset("A", "192.0.2.1", "192.0.2.2")),
            {"relay.example.test. 0 IN A 192.0.2.1", "relay.example.test. 0 IN A 192.0.2.2"},
        ),
    ],
)
def test_prerequisites_read_as_rfc_2136_has_them(
    prerequisite: Prerequisite, expected: set[str]
) -> None:
    assert sections((prerequisite,))[0] == expected


def test_changes_name_exact_values_in_order() -> None:
    address, text = rdata("A", "192.0.2.1"), rdata("TXT", '"x"')
    assert sections(changes=(Delete(NAME, address), Add(NAME, 60, text)))[1] == [
        "relay.example.test. 0 NONE A 192.0.2.1",
        'relay.example.test. 60 IN TXT "x"',
    ]


def test_uncut_asks_for_ns_below_the_apex_and_dname_from_the_apex() -> None:
    name = to_name("a.b.example.test")
    assert set(uncut(name, ZONE.apex)) == {
        RRsetAbsent(name, RdataType.NS),
        RRsetAbsent(to_name("b.example.test"), RdataType.NS),
        RRsetAbsent(to_name("b.example.test"), RdataType.DNAME),
        RRsetAbsent(ZONE.apex, RdataType.DNAME),
    }


def test_uncut_asks_nothing_for_the_apex() -> None:
    assert uncut(ZONE.apex, ZONE.apex) == ()


def test_longest_name_with_most_labels_fits_a_message() -> None:
    name = to_name("a." * 120 + "example.test")
    message = build_update(ZONE, uncut(name, ZONE.apex), ())
    assert len(message.to_wire()) < 8000
