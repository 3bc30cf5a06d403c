"""A time as a person spells it, such as `2h` or `2026-09-14`: pure.

Called by `cli.audit` and the page.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final

SPELLINGS: Final = "must be a time such as 2h, 7d, 2026-09-14 or 2026-09-14T11:20:00Z"
"""What is said of any other spelling, behind the name of what has it."""

_UNITS: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_AGO: Final = re.compile(r"(\d{1,9})([smhdw])")


def since_of(text: str, now: datetime) -> int:
    """The time that a person means, in epoch milliseconds; without a zone it is UTC.

    One copied from the page or from a command's sentence is read too.

    Raises:
        ValueError: it means none.
    """
    ago = _AGO.fullmatch(text)
    if ago is not None:
        try:
            at = now - timedelta(seconds=int(ago[1]) * _UNITS[ago[2]])
        except OverflowError:
            at = datetime(1970, 1, 1, tzinfo=UTC)
    else:
        at = datetime.fromisoformat(text.removesuffix(" UTC"))
        at = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
    return int(at.timestamp() * 1000)
