"""One piece of a page, asked for by itself: when it fails or hangs, its fault stands in its place.

Must not: know what is asked. Called by the pages that show several parts of the gateway.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from gateway.http.page.faults import KNOWN, fault_of

if TYPE_CHECKING:
    from collections.abc import Awaitable

Value = TypeVar("Value")

PIECE_SECONDS: Final = 4.0
"""Two after each other are within the time that a page has."""


@dataclass(frozen=True, slots=True)
class Piece(Generic[Value]):
    """What was asked for, or in one sentence why it is not known."""

    value: Value | None = None
    fault: str | None = None


async def piece(call: Awaitable[Value], within_seconds: float = PIECE_SECONDS) -> Piece[Value]:
    """What a call answers within that time. Raises what `faults.KNOWN` does not have."""
    try:
        async with asyncio.timeout(within_seconds):
            return Piece(await call)
    except TimeoutError:
        return Piece(fault=f"It gave no answer within {within_seconds:g} seconds.")
    except KNOWN as error:
        return Piece(fault=fault_of(error).sentence)
