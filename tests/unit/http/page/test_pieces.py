"""A piece of a page that fails or hangs is a sentence, and the overview says it in its place."""

import asyncio
from typing import Any

import pytest

from gateway.http.page.pieces import Piece, piece
from gateway.http.page.rendering import render
from gateway.store.connection import StoreRefused, StoreUnavailable

NOW_MS = 1_800_000_000_000


async def answers() -> int:
    return 1


async def hangs() -> int:
    await asyncio.Event().wait()
    return 1


async def fails(error: Exception) -> int:
    raise error


async def test_piece_is_what_was_answered() -> None:
    assert await piece(answers()) == Piece(1)


async def test_piece_that_hangs_says_so() -> None:
    assert await piece(hangs(), 0.01) == Piece(None, "It gave no answer within 0.01 seconds.")


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (StoreUnavailable("Redis cannot be reached"), "Redis cannot be reached"),
        (StoreRefused("Redis refused a command: WRONGTYPE"), "WRONGTYPE"),
    ],
)
async def test_piece_that_fails_says_why(error: Exception, words: str) -> None:
    found: Piece[int] = await piece(fails(error))
    assert found.value is None
    assert found.fault is not None
    assert words in found.fault


async def test_fault_of_the_gateway_itself_is_no_piece() -> None:
    with pytest.raises(ZeroDivisionError):
        await piece(fails(ZeroDivisionError()))


def overview(**changed: Any) -> str:
    whole: dict[str, Any] = {
        "visit": None,
        "now_ms": NOW_MS,
        "census": Piece(),
        "counts": None,
        "needs": Piece([]),
        "conflicts": Piece([]),
        "conflict_hours": 24,
        "down": [],
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
        needs=Piece(fault="documents away"),
        conflicts=Piece(fault="trail away"),
        budgets=[("ca", Piece(fault="ledger away"))],
        is_quiet=False,
    )
    for words in ("census away", "documents away", "trail away", "days &lt;away&gt;"):
        assert words in page
    assert "ledger away" in page
    assert "Nothing needs you." not in page


def test_overview_before_the_first_count_says_when_it_comes() -> None:
    page = overview()
    assert "being counted for the first time" in page
    assert "Nothing needs you." not in page


def test_overview_without_a_trail_says_that_nothing_is_counted_by_day() -> None:
    assert "No audit trail is kept" in overview(keeps_days=False)
