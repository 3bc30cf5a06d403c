"""A client's id survives the way into a path and back, whatever it is."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest
from hypothesis import given, strategies as st

from gateway.http.page.client_paths import client_id_in, client_path, client_segment

CLIENT_IDS = st.text(
    st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=1, max_size=128
)


@given(CLIENT_IDS)
def test_client_is_found_again_by_its_segment(client_id: str) -> None:
    assert client_id_in(client_segment(client_id)) == client_id


@given(CLIENT_IDS)
def test_segment_means_nothing_in_a_url(client_id: str) -> None:
    segment = client_segment(client_id)
    assert segment not in {".", "..", "new"}
    assert (
        urlsplit(f"http://gateway{client_path(client_id)}").path == f"/operator/clients/{segment}"
    )
    assert not set(segment) & set("%/?#&\\<>\"' ")


@pytest.mark.parametrize(
    ("client_id", "segment"),
    [
        ("cluster-a", "cluster-a"),
        ("relay.eu_1", "relay.eu_1"),
        ("a/b", "a~2Fb"),
        ("..", "~2E."),
        ("new", "~6Eew"),
        ("~2F", "~7E2F"),
        ("<script>", "~3Cscript~3E"),
    ],
)
def test_segment_reads_like_the_id(client_id: str, segment: str) -> None:
    assert client_segment(client_id) == segment


@pytest.mark.parametrize(
    "segment", ["", "a b", "~0A", "~20", "gr\N{LATIN SMALL LETTER U}\xfc\xdfe", "x" * 129]
)
def test_what_spells_no_id_is_nobodys(segment: str) -> None:
    assert client_id_in(segment) is None


def test_actions_are_below_their_client() -> None:
    assert client_path("a/b", "rotate") == "/operator/clients/a~2Fb/rotate"
