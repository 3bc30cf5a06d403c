"""Clients as rows, and what is asked before one loses its tokens or goes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gateway.access.clients import Client, Credential, mark_of
from gateway.contract.names import ClientId, CredentialId
from gateway.http.page.client import credential_rows
from gateway.http.page.client_actions import (
    former_words,
    in_page_words,
    removal,
    revocation,
    rotation,
)
from gateway.http.page.clients import row_of

NOW_MS = 1_800_000_000_000
OLD = Credential(CredentialId("old"), "digest-old", NOW_MS - 2_000, NOW_MS)
NEW = Credential(CredentialId("new"), "digest-new", NOW_MS - 1_000)
CLIENT = Client(
    ClientId("cluster-a"),
    "cloudly",
    ("a.example.com", "b.example.com", "c.example.com", "d.example.com"),
    (),
    frozenset(),
    7,
    (OLD, NEW),
)


def test_row_counts_credentials_and_knows_the_last_use() -> None:
    used = {CredentialId("old"): 5, CredentialId("new"): 3, CredentialId("gone"): 9}
    row = row_of(CLIENT, NOW_MS, 4, used)
    assert (row.live, row.expired, row.holds, row.last_used_ms) == (1, 1, 4, 9)
    assert (len(row.patterns), row.more_patterns) == (3, 1)


def test_row_of_a_client_nobody_used_says_so() -> None:
    assert row_of(replace(CLIENT, credentials=()), NOW_MS, None, {}).last_used_ms is None


def test_credentials_are_listed_from_the_newest_and_without_a_digest() -> None:
    rows = credential_rows(CLIENT, {CredentialId("new"): 3}, NOW_MS)
    assert [(each.credential_id, each.is_live, each.last_used_ms) for each in rows] == [
        ("new", True, 3),
        ("old", False, None),
    ]
    assert "digest" not in repr(rows)


def test_last_use_of_a_credential_outlives_it() -> None:
    used = {CredentialId("new"): 3, CredentialId("gone"): 9, CredentialId("older"): 7}
    rows = credential_rows(replace(CLIENT, credentials=()), used, NOW_MS)
    assert [(each.credential_id, each.is_gone, each.last_used_ms) for each in rows] == [
        ("gone", True, 9),
        ("older", True, 7),
        ("new", True, 3),
    ]


def test_client_without_a_live_token_is_not_revoked() -> None:
    assert revocation(CLIENT, NOW_MS).refusal is None
    for idle in (replace(CLIENT, credentials=(OLD,)), replace(CLIENT, credentials=())):
        assert revocation(idle, NOW_MS).refusal == (
            "cluster-a has no live token that could be revoked."
        )


@pytest.mark.parametrize(
    "other",
    [
        replace(CLIENT, policy_generation=8),
        replace(CLIENT, credentials=()),
        replace(CLIENT, credentials=(OLD,)),
    ],
)
def test_mark_tells_a_client_from_what_became_of_it(other: Client) -> None:
    assert mark_of(other) != mark_of(CLIENT)
    for question in (rotation, revocation):
        assert question(other, NOW_MS).seen != question(CLIENT, NOW_MS).seen
    assert removal(other, 0, NOW_MS).seen != removal(CLIENT, 0, NOW_MS).seen


def test_removal_of_a_client_that_came_to_hold_more_is_asked_anew() -> None:
    assert removal(CLIENT, 1, NOW_MS).seen != removal(CLIENT, 2, NOW_MS).seen


def test_release_is_offered_only_where_something_is_held() -> None:
    assert removal(CLIENT, 0, NOW_MS).choice is None
    held = removal(CLIENT, 2, NOW_MS)
    assert held.choice is not None
    assert ("Holds", "2 hostnames") in held.facts


@pytest.mark.parametrize(
    ("client", "overlap_seconds", "told"),
    [
        (CLIENT, 0, "The former one is refused from now on."),
        (CLIENT, 60, "The former one is accepted until 2027-01-15 08:01:00 UTC at the latest."),
        (
            replace(CLIENT, credentials=(replace(NEW, expires_at_ms=NOW_MS + 5_000),)),
            60,
            "The former one is accepted until 2027-01-15 08:00:05 UTC at the latest.",
        ),
        (replace(CLIENT, credentials=(NEW, NEW)), 0, "The 2 former ones are refused from now on."),
        (replace(CLIENT, credentials=(OLD,)), 60, "It had no other that was live."),
    ],
)
def test_rotation_tells_until_when_the_former_tokens_live(
    client: Client, overlap_seconds: int, told: str
) -> None:
    words = former_words(client, overlap_seconds, NOW_MS)
    assert words == f"cluster-a has a new token. {told}"


def test_what_cannot_be_taken_back_asks_for_the_id() -> None:
    for asked in (revocation(CLIENT, NOW_MS), removal(CLIENT, 0, NOW_MS)):
        assert asked.is_grave
        assert [each.name for each in asked.fields] == ["typed"]


def test_refusals_are_told_in_the_words_of_the_page() -> None:
    held = (
        "spec.clientId still holds hostnames (2, such as a.example.com): send releaseHoldings: true"
        " to withdraw and release all of it"
    )
    assert in_page_words(held, "cluster-a") == (
        "cluster-a still holds hostnames (2, such as a.example.com): tick the box to withdraw and"
        " release all of it."
    )
