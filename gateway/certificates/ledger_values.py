"""What stands under a ledger's keys, read: a figure's time, or a hold.

A value that no ledger has written (not a number, not JSON, a time in the far future) counts as
absent, with a warning: it must not stop issuance, and the next write takes its place. Pure but for
that warning. Called by `certificates.ledger`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import structlog

if TYPE_CHECKING:
    from collections.abc import Callable

FURTHEST_MS: Final = 366 * 24 * 3_600_000
"""No time lies further off, however wrong the clock was of the process that wrote it."""

_log = structlog.get_logger(__name__)


class StoredFigure(NamedTuple):
    """A figure as it is stored: when it is unused again, and after how long each one comes back."""

    full_ms: int
    interval_ms: int


class StoredHold(NamedTuple):
    """A hold as it is stored: until when, epoch ms, in what words, told to whose order."""

    until_ms: int
    detail: str
    hostname: str


class Values:
    """Reads the values of one authority's ledger; says once of each key that it is unreadable."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._reported: set[str] = set()

    def figure(self, key: str, stored: str | None, interval_ms: int, now_ms: int) -> int | None:
        """When a figure is unused again, epoch ms; None for one that is unused.

        `interval_ms` is its own now. What was written by another stays counted: as many are used
        as were, and each comes back after the interval of now.
        """
        read: StoredFigure | None = self._read(key, stored, _figure_in)
        if read is None or not self._is_near(key, read.full_ms, now_ms):
            return None
        if interval_ms in (read.interval_ms, 0):
            return read.full_ms
        left_ms = max(0, read.full_ms - now_ms)
        return now_ms + -(-left_ms * interval_ms // read.interval_ms)

    def hold(self, key: str, stored: str | None, now_ms: int) -> StoredHold | None:
        """A hold that is not over."""
        read: StoredHold | None = self._read(key, stored, _hold_in)
        if read is None or not self._is_near(key, read.until_ms, now_ms):
            return None
        return read if read.until_ms > now_ms else None

    def _read(self, key: str, stored: str | None, parse: Callable[[str], Any]) -> Any:
        if not stored:
            return None
        try:
            return parse(stored)
        except (ValueError, TypeError, LookupError, RecursionError):
            self._report(key)
            return None

    def _is_near(self, key: str, at_ms: int, now_ms: int) -> bool:
        if at_ms > now_ms + FURTHEST_MS:
            self._report(key)
            return False
        return True

    def _report(self, key: str) -> None:
        if key not in self._reported:
            self._reported.add(key)
            _log.warning(
                "a value of the ledger is unreadable and counts as absent",
                authority=self._name,
                key=key,
            )


def written_figure(full_ms: int, interval_ms: int) -> str:
    """The stored form of a figure."""
    return f"{full_ms}/{interval_ms}"


def written_hold(hold: StoredHold) -> str:
    """The stored form of a hold."""
    told = {"untilMs": hold.until_ms, "detail": hold.detail, "hostname": hold.hostname}
    return json.dumps(told)


def _figure_in(stored: str) -> StoredFigure:
    full, _, interval = stored.partition("/")
    read = StoredFigure(int(full), int(interval))
    if read.interval_ms <= 0:
        raise ValueError("interval")
    return read


def _hold_in(stored: str) -> StoredHold:
    told = json.loads(stored)
    until_ms = told["untilMs"]
    if type(until_ms) is not int:
        raise ValueError("untilMs")
    return StoredHold(until_ms, _shown(told.get("detail")), _shown(told.get("hostname")))


def _shown(text: object) -> str:
    """A text that can be printed and sent, whoever wrote it."""
    if not isinstance(text, str):
        return ""
    return "".join(one if one.isprintable() else "?" for one in text)
