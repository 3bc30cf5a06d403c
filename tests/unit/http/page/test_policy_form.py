"""A client's policy as it is typed: faults at their field and line, and what would change."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from gateway.access.clients import Client, created
from gateway.access.tokens import new_client_token
from gateway.contract import CAPABILITIES
from gateway.http.page.policy_form import (
    Typed,
    details,
    judged,
    ticked,
    typed_as,
    would_change,
)

GOOD = Typed(
    "cluster-a",
    "cloudly",
    "relay.*.example.com\nwww.example.com",
    "198.51.100.0/24",
    ("syncDnsRecords",),
)


def client(typed: Typed = GOOD) -> Client:
    spec = judged(typed).spec
    assert spec is not None
    return created(spec, new_client_token(spec.client_id), 1_700_000_000_000)


def test_faultless_policy_is_read() -> None:
    found = judged(GOOD)
    assert found.faults == {}
    assert found.spec is not None
    assert found.spec.to_wire() == {
        "clientId": "cluster-a",
        "clientType": "cloudly",
        "hostnamePatterns": ["relay.*.example.com", "www.example.com"],
        "allowedDnsRecordAddresses": ["198.51.100.0/24"],
        "capabilities": ["syncDnsRecords"],
    }


def test_policy_that_was_read_spells_itself() -> None:
    spec = judged(Typed(" cluster-a ", "cloudly", "b.example.com\n\na.example.com ", "")).spec
    assert spec is not None
    assert typed_as(spec) == Typed("cluster-a", "cloudly", "b.example.com\na.example.com")


def test_white_space_and_empty_lines_mean_nothing() -> None:
    spelled = Typed(
        " cluster-a ",
        "cloudly\t",
        "\r\n  relay.*.example.com \r\n\r\nwww.example.com\r\n",
        "\n198.51.100.0/24",
        GOOD.capabilities,
    )
    assert judged(spelled) == judged(GOOD)


@pytest.mark.parametrize(
    ("typed", "field", "told"),
    [
        (Typed("", "t"), "client_id", "Must be 1 to 128 printable ASCII"),
        (Typed("two words", "t"), "client_id", 'not "two words".'),
        (Typed("c", ""), "client_type", "Must be 1 to 64 characters"),
        (Typed("c", "t", "\n\nexample.com\n*"), "patterns", "Line 4 must be a hostname pattern"),
        (Typed("c", "t", "a.example.com\n\na.example.com"), "patterns", "Line 3 must be distinct"),
        (Typed("c", "t", "x.example.com\n" * 65), "patterns", "Must hold at most 64"),
        (Typed("c", "t", "", "\n10.0.0.1/8"), "prefixes", "Line 2 must"),
        (Typed("c", "t", "", "", ("fly",)), "capabilities", "fly"),
    ],
)
def test_fault_is_told_at_its_field_and_line(typed: Typed, field: str, told: str) -> None:
    found = judged(typed)
    assert found.spec is None
    assert set(found.faults) == {field}
    assert told in " ".join(found.faults[field])
    assert all(sentence.endswith(".") for sentence in found.faults[field])


def test_all_faults_are_told_at_once() -> None:
    found = judged(Typed("", "", "*", "x", ("fly",)))
    assert set(found.faults) == {
        "client_id",
        "client_type",
        "patterns",
        "prefixes",
        "capabilities",
    }


def test_token_that_was_typed_for_an_id_is_not_repeated() -> None:
    token = "gwa_" + "A" * 43
    faults = judged(Typed(f"{token} ", f"{token}/", "\n".join([token]), token)).faults
    assert "A" * 43 not in repr(faults)


@given(st.builds(Typed, st.text(), st.text(), st.text(), st.text(), st.lists(st.text()).map(tuple)))
def test_whatever_is_typed_is_a_policy_or_has_a_fault_at_a_field(typed: Typed) -> None:
    found = judged(typed)
    assert (found.spec is None) == bool(found.faults)
    assert set(found.faults) <= {
        "client_id",
        "client_type",
        "patterns",
        "prefixes",
        "capabilities",
    }


def test_form_of_a_client_changes_nothing() -> None:
    there = client()
    spec = judged(typed_as(there)).spec
    assert spec is not None
    assert not would_change(spec, there)
    assert details(spec, there) == ()


def test_new_client_is_all_that_it_says() -> None:
    spec = judged(GOOD).spec
    assert spec is not None
    assert would_change(spec, None)
    assert {each.field for each in details(spec, None)} == {
        "type",
        "patterns",
        "allow",
        "capabilities",
    }


def test_change_tells_what_comes_and_what_goes() -> None:
    wanted = Typed(*("cluster-a", "cloudly", "www.example.com\napi.example.com", "198.51.100.0/24"))
    spec = judged(wanted).spec
    assert spec is not None
    assert would_change(spec, client())
    assert details(spec, client()) == (
        ("patterns", ("api.example.com",), ("relay.*.example.com",)),
        ("capabilities", (), ("syncDnsRecords",)),
    )


def test_other_order_is_a_change_without_details() -> None:
    turned = Typed(*("cluster-a", "cloudly", "www.example.com\nrelay.*.example.com"), GOOD.prefixes)
    spec = judged(
        Typed(
            turned.client_id,
            turned.client_type,
            turned.patterns,
            turned.prefixes,
            GOOD.capabilities,
        )
    ).spec
    assert spec is not None
    assert would_change(spec, client())
    assert details(spec, client()) == ()


def test_ticked_are_known_names_once_in_the_contracts_order() -> None:
    assert ticked([*reversed(CAPABILITIES), "fly", *CAPABILITIES]) == CAPABILITIES
