"""`gateway audit`: how an entry reads, and which ones are asked for."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given, strategies as st

from gateway.cli.audit import line_of
from gateway.store.trail_reading import Told, Wanted

NOW = datetime(2026, 9, 14, 11, 20, tzinfo=UTC)
NOW_MS = int(NOW.timestamp() * 1000)
ENTRY = {
    "at": NOW_MS,
    "who": "client",
    "name": "credential-1",
    "ofClient": "cluster-a",
    "remote": "198.51.100.9",
    "requestId": "88ed38613bcb22f7",
    "what": "record-sync",
    "outcome": "managed-updated",
    "hostname": "relay.example.com",
    "clientId": "cluster-a",
    "appId": "relay",
    "before": "A 198.51.100.5 300",
    "after": "A 198.51.100.6 300",
}


def test_entry_reads_from_left_to_right() -> None:
    line = line_of(Told("1-0", 0, ENTRY))
    assert line.split("  ")[0] == "2026-09-14T11:20:00Z"
    assert " ".join(line.split()) == (
        "2026-09-14T11:20:00Z client cluster-a record-sync relay.example.com managed-updated"
        " A 198.51.100.5, TTL 300 s -> A 198.51.100.6, TTL 300 s; app relay;"
        " by credential credential-1; from 198.51.100.9; request 88ed38613bcb22f7"
    )


def test_unreadable_entry_is_told_as_such() -> None:
    assert "can't read" in line_of(Told("1-0", NOW_MS, None))


@given(
    st.fixed_dictionaries(
        {
            "at": st.integers(),
            "who": st.text(),
            "what": st.text(),
            "outcome": st.text(),
        },
        optional={name: st.text() for name in ("hostname", "before", "detail", "remote")},
    )
)
def test_any_entry_that_can_be_read_has_a_line(entry: dict[str, object]) -> None:
    assert line_of(Told("1-0", 0, entry))


@pytest.mark.parametrize(
    ("wanted", "fits"),
    [
        (Wanted(), True),
        (Wanted(since_ms=NOW_MS), True),
        (Wanted(since_ms=NOW_MS + 1), False),
        (Wanted(hostname="relay.example.com"), True),
        (Wanted(hostname="relay.example.co"), False),
        (Wanted(client_id="cluster-a"), True),
        (Wanted(client_id="cluster"), False),
        (Wanted(hostname="relay.example.com", client_id="cluster-b"), False),
    ],
)
def test_entry_fits_what_is_wanted(wanted: Wanted, *, fits: bool) -> None:
    assert wanted.fits(Told("1-0", NOW_MS, ENTRY)) is fits


def test_what_was_done_to_a_client_by_others_is_found_by_it() -> None:
    by_admin = {**ENTRY, "who": "admin", "ofClient": None}
    by_another = {**ENTRY, "ofClient": "cluster-a", "clientId": "cluster-b"}
    for entry in (by_admin, by_another):
        assert Wanted(client_id="cluster-a").fits(Told("1-0", NOW_MS, entry))
