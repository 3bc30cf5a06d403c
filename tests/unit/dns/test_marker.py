"""The owner marker: it proves exactly one record of exactly one owner, and names nobody."""

from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from gateway.contract.names import AppId, ClientId, Hostname
from gateway.dns.marker import MarkerKey, Markers
from gateway.dns.owner import Owner
from tests.unit.dns.building import FOREIGN_MARKERS, MARKERS, OLD_MARKERS, OWNER

texts = st.text(max_size=30)
owners = st.builds(Owner, texts.map(ClientId), texts.map(AppId), texts.map(Hostname))
records = st.tuples(st.sampled_from(["A", "AAAA"]), texts)


@given(owners, records)
def test_marker_proves_what_it_was_made_for(owner: Owner, record: tuple[str, str]) -> None:
    assert MARKERS.proves(MARKERS.sign(owner, *record), owner, *record)


@given(owners, records, owners, records)
def test_marker_proves_nothing_else(
    owner: Owner, record: tuple[str, str], other: Owner, other_record: tuple[str, str]
) -> None:
    is_same = (owner, record) == (other, other_record)
    assert MARKERS.proves(MARKERS.sign(owner, *record), other, *other_record) == is_same


@given(st.tuples(texts, texts, texts, texts), st.data())
def test_marker_keeps_its_fields_apart(parts: tuple[str, ...], data: st.DataObject) -> None:
    """Moving characters from one field to the next gives another marker."""
    joined = "".join(parts)
    cuts = sorted(data.draw(st.tuples(*[st.integers(0, len(joined))] * 3)))
    moved = (
        joined[: cuts[0]],
        joined[cuts[0] : cuts[1]],
        joined[cuts[1] : cuts[2]],
        joined[cuts[2] :],
    )
    first, second = (
        MARKERS.sign(Owner(ClientId(client), AppId(app), Hostname(hostname)), "A", value)
        for client, app, hostname, value in (parts, moved)
    )
    assert (first == second) == (parts == moved)


@pytest.mark.parametrize(
    "other",
    [
        replace(OWNER, client_id=ClientId("relay2")),
        replace(OWNER, app_id=AppId("app:two")),
        replace(OWNER, hostname=Hostname("relay2.example.test")),
    ],
)
def test_marker_of_one_owner_does_not_prove_another(other: Owner) -> None:
    marker = MARKERS.sign(OWNER, "A", "192.0.2.1")
    assert not MARKERS.proves(marker, other, "A", "192.0.2.1")


def test_marker_does_not_prove_another_type_or_value() -> None:
    marker = MARKERS.sign(OWNER, "A", "192.0.2.1")
    assert not MARKERS.proves(marker, OWNER, "AAAA", "192.0.2.1")
    assert not MARKERS.proves(marker, OWNER, "A", "192.0.2.10")


def test_old_key_still_proves_and_first_key_signs() -> None:
    old = OLD_MARKERS.sign(OWNER, "A", "192.0.2.1")
    assert MARKERS.proves(old, OWNER, "A", "192.0.2.1")
    assert MARKERS.sign(OWNER, "A", "192.0.2.1").startswith("gateway-owner=v1:new:")


def test_same_key_id_with_other_secret_proves_nothing() -> None:
    forged = FOREIGN_MARKERS.sign(OWNER, "A", "192.0.2.1")
    assert forged.startswith("gateway-owner=v1:new:")
    assert not MARKERS.proves(forged, OWNER, "A", "192.0.2.1")


@given(st.text())
def test_no_text_proves_by_accident_or_raises(text: str) -> None:
    assert not MARKERS.proves(text, OWNER, "A", "192.0.2.1")


def test_marker_is_fixed_text() -> None:
    """A zone published by one version must be proven by every later one."""
    assert MARKERS.sign(OWNER, "A", "192.0.2.1") == "gateway-owner=v1:new:o20LBJg6AoVEAgpzIIkNXg"


def test_marker_names_nobody_and_fits_one_txt_string() -> None:
    owner = Owner(ClientId("c" * 128), AppId("a" * 128), Hostname("h" * 63 + ".example.test"))
    marker = Markers([MarkerKey("k" * 64, b"s" * 32)]).sign(owner, "AAAA", "2001:db8::1")
    assert len(marker) <= 255
    assert not {"ccc", "aaa", "hhh"} & {marker[i : i + 3] for i in range(len(marker))}


@pytest.mark.parametrize(
    "text", ["gateway-owner=v1:new:abc", "gateway-owner=v9:?", "gateway-owner="]
)
def test_markers_of_any_kind_are_recognised(text: str) -> None:
    assert Markers.is_marker(text)


@pytest.mark.parametrize("text", ["", "v=spf1 -all", "Gateway-owner=v1:new:abc", " gateway-owner="])
def test_other_texts_are_no_markers(text: str) -> None:
    assert not Markers.is_marker(text)


@pytest.mark.parametrize("key_id", ["", "a:b", "a b", "a\nb", "k" * 65])
def test_key_ids_that_would_not_parse_are_refused(key_id: str) -> None:
    with pytest.raises(ValueError, match="key id"):
        MarkerKey(key_id, b"s" * 32)


def test_no_key_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one key"):
        Markers([])


def test_secret_is_in_no_repr() -> None:
    assert "sssss" not in repr(MarkerKey("k", b"s" * 32))


@pytest.mark.parametrize(
    "text", ["gateway-owner=v1:evil\nsync  done:AAAAAAAAAAAAAAAAAAAAAA", "gateway-owner=v1:k:short"]
)
def test_malformed_marker_names_no_key(text: str) -> None:
    assert Markers.key_id_of(text) == ""
