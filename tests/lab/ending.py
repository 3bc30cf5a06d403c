"""Turns the signals that end a program into an exception, so that everything is cleaned up.

Responsible for: SIGTERM, SIGINT and SIGHUP; the first one counts, further ones are ignored, since
an impatient ^C must not cut the clean-up short.
Must not: end the process; whoever catches `AskedToEnd` does.
Called by: programs that run a lab.
"""

import signal
from types import FrameType
from typing import NoReturn

_ENDING_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class AskedToEnd(BaseException):
    """Raised by a signal wherever the program is; its clean-up is on the way out."""


def end_on_signals() -> None:
    """From now on a signal raises `AskedToEnd` in the main thread."""
    for number in _ENDING_SIGNALS:
        signal.signal(number, _end)


def _end(number: int, frame: FrameType | None) -> NoReturn:
    del number, frame
    for ending in _ENDING_SIGNALS:
        signal.signal(ending, signal.SIG_IGN)
    raise AskedToEnd
