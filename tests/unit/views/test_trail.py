"""An entry of the audit trail in words; `tests/unit/cli/test_audit.py` has the line of it."""

import pytest

from gateway.store.trail_reading import Told
from gateway.views.trail import UNREADABLE, EntryWords, change_words, entry_words

AT_MS = 1_789_384_800_999
ENTRY = {
    "at": AT_MS,
    "who": "admin",
    "remote": "198.51.100.9",
    "what": "client-revoke",
    "outcome": "done",
    "clientId": "cluster-a",
    "credentialId": "credential-1",
    "repeated": 3,
    "detail": "<b>why</b>",
}


def test_entry_has_its_parts_apart() -> None:
    assert entry_words(Told("1-0", 0, ENTRY)) == EntryWords(
        at="2026-09-14T11:20:00Z",
        who="admin",
        what="client-revoke",
        subject="cluster-a",
        outcome="done",
        rest=(
            "3 times more since the last entry",
            "<b>why</b>",
            "new credential credential-1",
            "from 198.51.100.9",
        ),
    )


def test_entry_about_nothing_has_no_subject() -> None:
    bare = {"at": AT_MS, "who": "process", "what": "start", "outcome": "done"}
    words = entry_words(Told("1-0", 0, bare))
    assert (words.subject, words.rest) == (None, ())


def test_entry_that_cannot_be_read_has_the_time_at_which_it_was_written() -> None:
    words = entry_words(Told("1-0", AT_MS, None))
    assert (words.at, words.what, words.is_readable) == ("2026-09-14T11:20:00Z", UNREADABLE, False)


@pytest.mark.parametrize(
    ("outcome", "before", "after", "words"),
    [
        (
            "managed-updated",
            "A 192.0.2.1 300",
            "A 192.0.2.2 300",
            "A 192.0.2.1, TTL 300 s -> A 192.0.2.2, TTL 300 s",
        ),
        ("managed-deleted", "A 192.0.2.1 300", None, "A 192.0.2.1, TTL 300 s -> nothing"),
        ("managed-deleted", None, None, None),
        (
            "managed-deleted",
            "A 192.0.2.1 300, AAAA 2001:db8::1 60",
            None,
            "A 192.0.2.1, TTL 300 s, AAAA 2001:db8::1, TTL 60 s -> nothing",
        ),
        ("record-conflict", None, "A 192.0.2.2 300", "asked for A 192.0.2.2, TTL 300 s"),
        (
            "target-invalid",
            "A 192.0.2.1 300",
            "A 192.0.2.2 300",
            "asked for A 192.0.2.2, TTL 300 s; A 192.0.2.1, TTL 300 s stays",
        ),
        ("zone-unavailable", "A 192.0.2.1 300", None, "asked to withdraw A 192.0.2.1, TTL 300 s"),
    ],
)
def test_record_is_told_as_changed_only_where_it_was(
    outcome: str, before: str | None, after: str | None, words: str | None
) -> None:
    entry = {"what": "record-sync", "outcome": outcome, "before": before, "after": after}
    assert change_words(entry, "->") == words
