"""A piece of a page that fails or hangs is a sentence, and the overview says it in its place."""

import asyncio
from typing import Any

import pytest

from gateway.certificates.attention import Concern
from gateway.certificates.census import Tally
from gateway.contract.names import Hostname
from gateway.http.page.causes import Need, alike
from gateway.http.page.hostnames import STATES
from gateway.http.page.needs import Concerned, Needs
from gateway.http.page.overview import STATES_OF_FIGURES, counts_of
from gateway.http.page.pieces import Piece, piece
from gateway.http.page.rendering import render
from gateway.store.connection import StoreRefused, StoreUnavailable
from gateway.views import emptiness

NOW_MS = 1_800_000_000_000


async def answers() -> int:
    return 1


async def hangs() -> int:
    await asyncio.Event().wait()
    return 1


async def fails(error: Exception) -> int:
    raise error


async def test_piece_is_what_was_answered() -> None:
    assert await piece(answers) == Piece(1)


async def test_piece_that_hangs_says_so() -> None:
    found = await piece(hangs, within_seconds=0.01)
    assert found == Piece(None, "It gave no answer within 0.01 seconds.")


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (StoreUnavailable("Redis cannot be reached"), "Redis cannot be reached"),
        (StoreRefused("Redis refused a command: WRONGTYPE"), "WRONGTYPE"),
    ],
)
async def test_piece_that_fails_says_why(error: Exception, words: str) -> None:
    found: Piece[int] = await piece(fails, error)
    assert found.value is None
    assert found.fault is not None
    assert words in found.fault


async def test_piece_that_is_given_up_before_it_begins_asks_nothing() -> None:
    asked: list[object] = []

    async def answer(what: object) -> object:
        asked.append(what)
        return what

    task = asyncio.create_task(piece(answer, 1))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert asked == []


async def test_fault_of_the_gateway_itself_is_no_piece() -> None:
    with pytest.raises(ZeroDivisionError):
        await piece(fails, ZeroDivisionError())


def overview(**changed: Any) -> str:
    whole: dict[str, Any] = {
        "visit": None,
        "now_ms": NOW_MS,
        "census": Piece(),
        "counts": None,
        "clients": Piece(1),
        "no_client_words": (emptiness.NO_CLIENT, emptiness.LOST),
        "needs": Piece(Needs((), {})),
        "conflicts": Piece([]),
        "conflict_hours": 24,
        "down": [],
        "states": STATES_OF_FIGURES,
        "is_quiet": True,
        "parts": [],
        "days": Piece(fault="days <away>"),
        "keeps_days": True,
        "budgets": [],
    }
    return render("overview.html", {**whole, **changed})


def test_each_part_of_the_overview_that_is_away_is_a_sentence_in_its_place() -> None:
    page = overview(
        census=Piece(fault="census away"),
        clients=Piece(fault="clients away"),
        needs=Piece(fault="documents away"),
        conflicts=Piece(fault="trail away"),
        budgets=[("ca", Piece(fault="ledger away"))],
        is_quiet=False,
    )
    for words in (
        "clients away",
        "census away",
        "documents away",
        "trail away",
        "days &lt;away&gt;",
    ):
        assert words in page
    assert "Nothing needs you." not in page


def test_overview_before_the_first_count_says_when_it_comes() -> None:
    page = overview()
    assert "being counted for the first time" in page
    assert "Nothing needs you." not in page


def test_overview_without_a_trail_says_that_nothing_is_counted_by_day() -> None:
    assert "No audit trail is kept" in overview(keeps_days=False)


def test_overview_without_a_client_says_what_gateway_check_says_and_what_to_do() -> None:
    page = overview(clients=Piece(0), is_quiet=False)
    assert emptiness.NO_CLIENT in page
    assert 'href="/operator/clients/new"' in page
    assert "Redis has lost its data" in page


def test_empty_pictures_are_a_sentence() -> None:
    page = overview(counts=counts_of(Tally(NOW_MS).census(NOW_MS)), days=Piece())
    assert "No certificate ends in the next 90 days." in page
    assert "Nothing was issued, renewed or failed in the last 14 days." in page
    assert '<svg class="picture' not in page


def test_figures_lead_to_the_hostnames_that_they_count() -> None:
    tally = Tally(NOW_MS)
    tally.add(Hostname("a.example.test"), None)
    page = overview(counts=counts_of(tally.census(NOW_MS)))
    assert 'href="/operator/hostnames?state=unreadable"' in page
    assert "state=failed" not in page
    assert set(STATES_OF_FIGURES.values()) <= set(STATES)
    names = {name for _, figures in counts_of(tally.census(NOW_MS)).tables for name, _ in figures}
    assert STATES_OF_FIGURES.keys() <= names


def test_figures_say_when_they_were_counted() -> None:
    page = overview(counts=counts_of(Tally(NOW_MS).census(NOW_MS)))
    assert "what stands at the top is as of now" in page


def test_many_failures_of_one_cause_are_a_few_lines_and_a_number() -> None:
    needs = [
        Need(Hostname(f"h{number}.example.test"), "failed", NOW_MS, "no <b>TXT</b>", place="ca")
        for number in range(40)
    ]
    group = Concerned(Concern.FAILED, "Failed issuances", tuple(alike(needs)), 23)
    page = overview(needs=Piece(Needs((group,), {})), is_quiet=False)
    assert "Failed issuances (63)" in page
    assert "40 hostnames" in page
    assert page.count("no &lt;b&gt;TXT&lt;/b&gt;") == 1
    assert page.count("/operator/hostnames/h") == 5
    assert "and 35 more of this cause" in page
    assert "and 23 more: " in page
    assert "/operator/hostnames?state=failed" in page
    assert "gateway issuances list --state failed" in page
