"""The UPDATE messages: what they say on the wire, and the guard against cuts and aliases."""

import dns.message
import dns.update
import pytest
from dns.rdatatype import RdataType
from hypothesis import given, strategies as st

from gateway.dns.names import to_name
from gateway.dns.update import (
    Add,
    Change,
    Delete,
    NameFree,
    NameInUse,
    Prerequisite,
    RRsetAbsent,
    RRsetIs,
    RRsetPresent,
    Update,
    uncut,
)
from tests.unit.dns.building import NAME, ZONE, rdata, rrset


def sections(
    prerequisites: tuple[Prerequisite, ...] = (), changes: tuple[Change, ...] = ()
) -> tuple[set[str], list[str]]:
    """Both sections as a server reads them."""
    message = dns.message.from_wire(Update(ZONE.apex, prerequisites, changes).to_wire())
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
    message = Update(ZONE.apex, uncut(name, ZONE.apex), ())
    assert len(message.to_wire()) < 8000


LABELS = st.lists(st.sampled_from(["a", "b", "www", "_acme-challenge", "x" * 63]), max_size=3)
NAMES = LABELS.map(lambda labels: to_name(".".join([*labels, "example.test"])))
RDATAS = st.one_of(
    st.sampled_from(["192.0.2.1", "192.0.2.2"]).map(lambda text: rdata("A", text)),
    st.sampled_from(["2001:db8::1", "::"]).map(lambda text: rdata("AAAA", text)),
    st.text("ab", max_size=255).map(lambda text: rdata("TXT", f'"{text}"')),
)
PREREQUISITES = st.one_of(
    st.builds(NameFree, NAMES),
    st.builds(NameInUse, NAMES),
    st.builds(RRsetAbsent, NAMES, st.sampled_from([RdataType.NS, RdataType.DNAME])),
    st.builds(RRsetPresent, NAMES, st.sampled_from([RdataType.SOA, RdataType.TXT])),
    st.builds(RRsetIs, NAMES, st.just(rrset("A", "192.0.2.1", "192.0.2.2"))),
    st.builds(RRsetIs, NAMES, st.just(rrset("TXT", '"one" "two"'))),
)
CHANGES = st.one_of(
    st.builds(Add, NAMES, st.integers(0, 2**31 - 1), RDATAS), st.builds(Delete, NAMES, RDATAS)
)
SOA = rrset("SOA", "ns1.example.test. hostmaster.example.test. 1 3600 1 86400 60")


def by_dnspython(update: Update) -> dns.update.UpdateMessage:
    message = dns.update.UpdateMessage(ZONE.apex, id=update.id)
    for prerequisite in update.prerequisites:
        match prerequisite:
            case NameFree(name):
                message.absent(name)
            case NameInUse(name):
                message.present(name)
            case RRsetAbsent(name, rdtype):
                message.absent(name, rdtype)
            case RRsetPresent(name, rdtype):
                message.present(name, rdtype)
            case RRsetIs(name, rrset):
                message.present(name, *(each.by_dnspython() for each in rrset.rdatas))
    for change in update.changes:
        match change:
            case Add(name, ttl, data):
                message.add(name, ttl, data.by_dnspython())
            case Delete(name, data):
                message.delete(name, data.by_dnspython())
    return message


@given(st.lists(PREREQUISITES, max_size=8), st.lists(CHANGES, max_size=8))
def test_update_is_rendered_as_dnspython_renders_it(
    prerequisites: list[Prerequisite], changes: list[Change]
) -> None:
    update = Update(ZONE.apex, prerequisites, changes)
    assert update.to_wire() == by_dnspython(update).to_wire()


def test_update_of_records_with_names_says_what_dnspythons_says() -> None:
    """There they are written whole."""
    mx, cname = rdata("MX", "10 mail.example.test."), rdata("CNAME", "other.example.test.")
    update = Update(ZONE.apex, [RRsetIs(ZONE.apex, SOA)], [Add(NAME, 60, mx), Delete(NAME, cname)])
    ours = dns.message.from_wire(update.to_wire())
    theirs = dns.message.from_wire(by_dnspython(update).to_wire())
    assert ours.sections == theirs.sections
    assert ours.flags == theirs.flags


def test_names_far_behind_in_a_long_update_are_read_as_they_were_meant() -> None:
    """A pointer reaches 16 KiB far."""
    changes = [
        Add(to_name(f"n{number}.example.test"), 60, rdata("TXT", f'"{"x" * 200}"'))
        for number in (*range(90), *range(90))
    ]
    update = Update(ZONE.apex, (), changes)
    assert len(update.to_wire()) > 2 * 0x4000
    assert update.to_wire() == by_dnspython(update).to_wire()


def test_update_without_its_changes_keeps_its_prerequisites() -> None:
    update = Update(ZONE.apex, [NameFree(NAME)], [Delete(NAME, rdata("A", "192.0.2.1"))])
    read = dns.message.from_wire(update.without_changes().to_wire())
    assert {str(each) for each in read.sections[1]} == {"relay.example.test. NONE ANY"}
    assert read.sections[2] == []
