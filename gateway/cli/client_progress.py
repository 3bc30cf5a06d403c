"""What a person sees while `gateway client certificate wait` waits.

Responsible for: one line at a terminal that is drawn again and again, plain lines now and then for
a log, and the words of both, which are pure. Must not: write to standard output. Used by
`cli.client_certificate`.
"""

from __future__ import annotations

import itertools
import os
import sys
import threading
import time
from typing import TYPE_CHECKING, Final, Self

from gateway.cli.client_words import seconds_words
from gateway.cli.session import say
from gateway.cli.streams import silence_error
from gateway.client import GatewayError, Pending
from gateway.printable import printable

if TYPE_CHECKING:
    from gateway.client import Progress

PLAIN_LINES_EVERY_SECONDS: Final = 30.0

_FRAMES: Final = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_ASCII_FRAMES: Final = "|/-\\"
_REDRAWN_EVERY_SECONDS: Final = 0.1
_BAR_CELLS: Final = 12
_USUAL_COLUMNS: Final = 80
_CLEARED: Final = "\r\x1b[K"


class ProgressShower:
    """Is told how the waiting goes; this one shows nothing of it.

    `is_under_way`: whether the gateway has said that it issues, and not since that it does not.
    """

    def __init__(self) -> None:
        self.is_under_way = False

    def tell(self, progress: Progress) -> None:
        """Take note of an answer, or of a call that came to nothing."""
        if not isinstance(progress.answer, GatewayError):
            self.is_under_way = isinstance(progress.answer, Pending)

    def tell_failure(self, failure: GatewayError) -> None:
        """Take note of a failure after which the same call is made again."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Leave nothing on the screen that moves."""


def progress_shower(hostname: str, timeout: float, *, is_wanted: bool) -> ProgressShower:
    """What shows progress on standard error as long as it is entered.

    A terminal that can clear a line gets a live one, anything else plain lines.
    """
    if not is_wanted:
        return ProgressShower()
    if sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb":
        return _LiveLine(timeout)
    return PlainLines(hostname)


class PlainLines(ProgressShower):
    """For what is no terminal: a line at first, when the state changes, and now and then."""

    def __init__(self, hostname: str) -> None:
        super().__init__()
        self._hostname = hostname
        self._told_state = ""
        self._told_at = 0.0

    def tell_failure(self, failure: GatewayError) -> None:
        """Print the failure, unless it is the state that was told last."""
        state = failure_words(failure)
        if state != self._told_state:
            self._told_state = state
            say(f"{self._hostname}: {state}; trying again", err=True)

    def tell(self, progress: Progress) -> None:
        """Print the progress, or pass over it."""
        super().tell(progress)
        state = state_words(progress)
        is_news = state != self._told_state
        if is_news or progress.waited_seconds - self._told_at >= PLAIN_LINES_EVERY_SECONDS:
            self._told_state, self._told_at = state, progress.waited_seconds
            say(plain_line(self._hostname, progress), err=True)


class _LiveLine(ProgressShower):
    """A line at the terminal that a thread draws while the calls are made elsewhere."""

    def __init__(self, timeout: float) -> None:
        super().__init__()
        self._timeout = timeout
        self._started_at = time.monotonic()
        self._latest: tuple[str, float | None] = "asking", None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._draw, name="progress", daemon=True)

    def tell(self, progress: Progress) -> None:
        super().tell(progress)
        self._latest = state_words(progress), time.monotonic() + progress.next_in_seconds

    def tell_failure(self, failure: GatewayError) -> None:
        self._latest = f"trying again: {failure_words(failure)}", None

    def __enter__(self) -> Self:
        self._started_at = time.monotonic()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _draw(self) -> None:
        # A terminal that has gone away is no reason to stop waiting.
        try:
            for frame in itertools.cycle(_frames()):
                self._write(_CLEARED + self._line(frame))
                if self._ended.wait(_REDRAWN_EVERY_SECONDS):
                    break
            self._write(_CLEARED)
        except (OSError, ValueError):
            silence_error()

    def _line(self, frame: str) -> str:
        now = time.monotonic()
        waited = now - self._started_at
        state, asks_at = self._latest
        asks_in = None if asks_at is None else asks_at - now
        return live_line(frame, waited, self._timeout, asks_in, state, _columns())

    def _write(self, text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()


def live_line(
    frame: str,
    waited: float,
    timeout: float,
    asks_in: float | None,
    state: str,
    columns: int,
) -> str:
    """The line at a terminal of so many columns, all times in seconds; it never wraps."""
    filled = int(_BAR_CELLS * min(waited / timeout, 1))
    bar = "#" * filled + "-" * (_BAR_CELLS - filled)
    left = clock_words(timeout - waited)
    asks = "" if asks_in is None else f", asks in {max(asks_in, 0):.0f} s"
    # Characters that take two columns, or none, would make the line longer than it looks.
    shown_state = state.encode("ascii", "backslashreplace").decode()
    text = f"{frame} [{bar}] {clock_words(waited)} waited, {left} left{asks}: {shown_state}"
    return text[: max(columns - 1, 0)]


def plain_line(hostname: str, progress: Progress) -> str:
    """The line for a log."""
    return (
        f"{hostname}: {state_words(progress)}; {clock_words(progress.waited_seconds)} waited,"
        f" asks in {seconds_words(progress.next_in_seconds)},"
        f" {clock_words(progress.left_seconds)} left"
    )


def state_words(progress: Progress) -> str:
    """What the gateway answered last, on one line."""
    answer = progress.answer
    if isinstance(answer, GatewayError):
        return failure_words(answer)
    if isinstance(answer, Pending):
        return "issuance under way"
    return _on_one_line(f"{answer.reason}: {answer.message}")


def failure_words(failure: GatewayError) -> str:
    """Why a call came to nothing, on one line."""
    return _on_one_line(failure.text)


def clock_words(seconds: float) -> str:
    """A span of time as on a stopwatch: minutes and seconds, with hours when there are any."""
    whole = max(int(seconds), 0)
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _on_one_line(text: str) -> str:
    return printable(text).rstrip(".")


def _frames() -> str:
    try:
        _FRAMES.encode(sys.stderr.encoding or "ascii")
    except (LookupError, UnicodeEncodeError):
        return _ASCII_FRAMES
    return _FRAMES


def _columns() -> int:
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or _USUAL_COLUMNS
    except OSError:
        return _USUAL_COLUMNS
