"""Holds back signals that would end a process before it has somebody to hear them.

SIGHUP (reload), SIGUSR1 (say everything) and SIGTERM (stop) may come while a gateway is still
starting. The kernel keeps them as long as they are blocked, also those to the first process of a
container, which it drops else. What comes before `hold`, in the first tenths of a second, has its
default effect. Called by `gateway.cli.serve` first of all, and by `gateway.running` once somebody
hears them: SIGTERM as soon as there is something to wind up, the others once there are parts.
"""

from __future__ import annotations

import signal
from typing import Final

_REQUESTS: Final = frozenset({signal.SIGHUP, signal.SIGUSR1})
_STOP: Final = frozenset({signal.SIGTERM})


def hold() -> None:
    """From now on they wait."""
    signal.pthread_sigmask(signal.SIG_BLOCK, _REQUESTS | _STOP)


def release_stop() -> None:
    """Let SIGTERM come, at once if it has waited."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOP)


def release_requests() -> None:
    """Let the others come, those that have waited at once."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _REQUESTS)
