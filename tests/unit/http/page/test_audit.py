"""The page of the audit trail: what is asked for, and an entry as a row."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from gateway.http.page.audit import asked_for
from gateway.http.page.audit_rows import row_of
from gateway.store.trail_reading import Told, Wanted
from tests.unit.cli.test_audit import ENTRY as RECORD_SYNC

NOW_MS = 1_800_000_000_000
ENTRY = {**RECORD_SYNC, "at": NOW_MS, "appId": "<b>relay</b>"}


def told(**changes: object) -> Told:
    return Told("1-0", NOW_MS, {**ENTRY, **changes})


def test_nothing_asked_is_everything() -> None:
    asked = asked_for("", "", "", NOW_MS)
    assert (asked.wanted, asked.faults, asked.url()) == (Wanted(), {}, "/operator/audit")


def test_all_is_asked_for_at_once() -> None:
    asked = asked_for("Relay.Example.com", "cluster-a", "2h", NOW_MS)
    assert asked.wanted == Wanted(NOW_MS - 7_200_000, "relay.example.com", "cluster-a")
    assert asked.url("5-0") == (
        "/operator/audit?hostname=relay.example.com&client=cluster-a&since=2h&before=5-0"
    )


def test_hostname_may_have_the_dot_of_the_root() -> None:
    assert asked_for("Relay.example.com.", "", "", NOW_MS).wanted.hostname == "relay.example.com"
    assert "hostname" in asked_for(".", "", "", NOW_MS).faults


def test_each_fault_is_told_at_its_field() -> None:
    asked = asked_for("a..b", "two words", "yesterday", NOW_MS)
    assert set(asked.faults) == {"hostname", "client", "since"}
    assert (
        asked.faults["since"]
        == "It must be a time such as 2h, 7d, 2026-09-14 or 2026-09-14T11:20:00Z."
    )


@given(st.text(), st.text(), st.text())
def test_whatever_is_asked_for_is_read_or_refused_in_words(
    hostname: str, client: str, since: str
) -> None:
    asked = asked_for(hostname, client, since, NOW_MS)
    assert all(sentence.endswith(".") for sentence in asked.faults.values())


def test_row_links_to_what_it_is_about_and_has_every_detail() -> None:
    row = row_of(told())
    assert (row.hostname, row.client_id, row.kind) == ("relay.example.com", "cluster-a", "calm")
    assert row.brief == "A 198.51.100.5, TTL 300 s \N{RIGHTWARDS ARROW} A 198.51.100.6, TTL 300 s"
    assert dict(row.details) == {
        "Before": "A 198.51.100.5, TTL 300 s",
        "After": "A 198.51.100.6, TTL 300 s",
        "Client": "cluster-a",
        "App": "<b>relay</b>",
        "By": "credential-1",
        "From": "198.51.100.9",
        "Request": "88ed38613bcb22f7",
    }


def test_what_is_no_hostname_and_no_client_is_no_link() -> None:
    row = row_of(told(hostname="../<b>", clientId="two words"))
    assert (row.hostname, row.client_id) == (None, None)
    assert row.words.subject == "../<b>"


@pytest.mark.parametrize(
    ("what", "outcome", "kind"),
    [
        ("record-sync", "record-conflict", "bad"),
        ("certificate-request", "hostname-conflict", "bad"),
        ("certificate-failed", "issuance-failed", "bad"),
        ("record-sync", "mutation-failed", "warn"),
        ("record-sync", "zone-unavailable", "warn"),
        ("client-remove", "refused", "warn"),
        ("certificate-issued", "issued", "ok"),
        ("record-sync", "managed-created", "calm"),
    ],
)
def test_what_went_wrong_stands_out(what: str, outcome: str, kind: str) -> None:
    assert row_of(told(what=what, outcome=outcome)).kind == kind


def test_record_that_was_asked_for_in_vain_is_not_told_as_changed() -> None:
    row = row_of(told(outcome="zone-unavailable", after=None))
    assert row.brief == "asked to withdraw A 198.51.100.5, TTL 300 s"
    assert dict(row.details)["Stays"] == "A 198.51.100.5, TTL 300 s"
    row = row_of(told(outcome="record-conflict", before=None))
    assert dict(row.details)["Asked for"] == "A 198.51.100.6, TTL 300 s"


def test_refusal_tells_why() -> None:
    row = row_of(told(before=None, after=None, detail="It is held."))
    assert row.brief == "It is held."


def test_entry_that_cannot_be_read_is_a_row() -> None:
    row = row_of(Told("1-0", NOW_MS, None))
    assert not row.words.is_readable
    assert (row.hostname, row.details) == (None, ())
