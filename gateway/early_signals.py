"""Holds back signals that would end a process before it has somebody to hear them.

SIGHUP (reload) and SIGUSR1 (say everything) may come while a gateway is still starting. The kernel
keeps them as long as they are blocked. Called by `gateway.cli.serve` first of all, and by
`gateway.running` once the signals are heard.
"""

from __future__ import annotations

import signal
from typing import Final

_HELD: Final = frozenset({signal.SIGHUP, signal.SIGUSR1})


def hold() -> None:
    """From now on they wait."""
    signal.pthread_sigmask(signal.SIG_BLOCK, _HELD)


def release() -> None:
    """Let them come, those that have waited at once."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _HELD)
