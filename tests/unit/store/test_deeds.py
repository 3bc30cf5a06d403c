"""Entries of the audit trail: bounded, one line of ASCII, and never a secret, whoever put it in."""

from __future__ import annotations

import asyncio
import json

from hypothesis import example, given, strategies as st

from gateway.store.deeds import Action, Actor, Deed, Entry, Role, acting, acting_as

SECRET_PART = "D7kdDaVVv0EkLXcMHrgxixAL8FTbj5EB"
TOKENS = st.sampled_from(
    [
        f"gwc_2a97516c354b68848cdbd8f5d206c53f54e5_{SECRET_PART}",
        f"gwa_{SECRET_PART}",
        f"GWC_{SECRET_PART}",
        f"-----BEGIN PRIVATE KEY-----\n{SECRET_PART}\n-----END PRIVATE KEY-----",
    ]
)
TEXTS = st.text(max_size=500)
ACTOR = Actor(Role.CLIENT, "credential", "cluster-a")


def entry_of(text: str) -> Entry:
    """An entry with the text in each place that has one."""
    deed = Deed(
        Action.RECORD_SYNC,
        text,
        hostname=text,
        client_id=text,
        app_id=text,
        credential_id=text,
        before=text,
        after=text,
        detail=text,
    )
    return Entry("1", 0, Actor(Role.CLIENT, text, text), deed, remote=text, request_id=text)


@given(TEXTS, TOKENS, TEXTS)
@example("a" * 397, f"gwa_{SECRET_PART}", "")
def test_secret_in_any_field_is_not_written(before: str, token: str, after: str) -> None:
    assert SECRET_PART not in entry_of(f"{before}{token}{after}").to_text()


@given(st.text())
def test_entry_is_one_bounded_line_of_printable_ascii(text: str) -> None:
    written = entry_of(text).to_text()
    assert written.isascii()
    assert written.isprintable()
    assert len(written) < 100_000
    told = json.loads(written)
    assert told["what"] == "record-sync"
    assert all(value.isprintable() for value in told.values() if isinstance(value, str))


def test_what_is_not_known_is_left_out() -> None:
    entry = Entry("1", 5, Actor(Role.ADMIN), Deed(Action.CLIENT_REVOKE, "changed"))
    assert entry.to_json() == {
        "at": 5,
        "who": "admin",
        "what": "client-revoke",
        "outcome": "changed",
    }


async def test_actor_is_that_of_the_context_and_of_tasks_begun_in_it() -> None:
    async def who() -> Actor | None:
        return acting()

    with acting_as(ACTOR):
        assert await asyncio.create_task(who()) == ACTOR
        with acting_as(Actor(Role.ADMIN)):
            assert acting() == Actor(Role.ADMIN)
        assert acting() == ACTOR
    assert acting() is None
