"""Turns the signals that end a program into an exception, so that everything is cleaned up.

Responsible for: SIGTERM, SIGINT and SIGHUP; the first one counts, further ones are ignored, since
an impatient ^C must not cut the clean-up short.
Must not: end the process; whoever catches `AskedToEnd` does.
Called by: programs that run a lab.
"""

import signal
from types import FrameType
from typing import NoReturn

ENDING_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class AskedToEnd(KeyboardInterrupt):
    """Raised by a signal wherever the program is; its clean-up is on the way out.

    asyncio lets a `KeyboardInterrupt` out of a callback, where it logs and loses any other.
    """

    def __init__(self, number: int) -> None:
        super().__init__(signal.strsignal(number))
        self.exit_status = 128 + number
        """What a shell says of a program that this signal has ended."""


def end_on_signals() -> None:
    """From now on a signal raises `AskedToEnd` in the main thread."""
    for number in ENDING_SIGNALS:
        signal.signal(number, _end)


def _end(number: int, frame: FrameType | None) -> NoReturn:
    del frame
    for ending in ENDING_SIGNALS:
        signal.signal(ending, signal.SIG_IGN)
    raise AskedToEnd(number)
