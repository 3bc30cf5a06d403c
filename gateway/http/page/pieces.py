"""One piece of a page, asked for by itself: when it fails or hangs, its fault stands in its place.

Must not: know what is asked. Called by the pages that show several parts of the gateway.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Generic, TypeVar, TypeVarTuple

from gateway.http.page.faults import KNOWN, fault_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

Value = TypeVar("Value")
Asked = TypeVarTuple("Asked")

PIECE_SECONDS: Final = 4.0
"""Two after each other are within the time that a page has."""


@dataclass(frozen=True, slots=True)
class Piece(Generic[Value]):
    """What was asked for, or in one sentence why it is not known."""

    value: Value | None = None
    fault: str | None = None


async def piece(
    ask: Callable[[*Asked], Awaitable[Value]], *asked: *Asked, within_seconds: float = PIECE_SECONDS
) -> Piece[Value]:
    """What is answered within that time. Raises what `faults.KNOWN` does not have.

    The call is made here: of a page that its visitor has left, none is begun that nobody awaits.
    """
    try:
        async with asyncio.timeout(within_seconds):
            return Piece(await ask(*asked))
    except TimeoutError:
        return Piece(fault=f"It gave no answer within {within_seconds:g} seconds.")
    except KNOWN as error:
        return Piece(fault=fault_of(error).sentence)
