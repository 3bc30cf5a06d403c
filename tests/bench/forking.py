"""Processes of the bench's own, forked: a fresh interpreter would read all modules beside the load.

Responsible for the signals around a fork. Python runs hooks there, and prints what a signal raises
in one of them instead of raising it: the first ^C would be lost, and further ones are ignored. So
they wait until the fork is over. A process that was forked leaves ^C and the end of the terminal,
which reach the whole group, to the one that has started it, and ends by SIGTERM.
Must not: know what the processes do. Called by whatever forks: `load`, `bursts`, `parts`,
`stocking`.
"""

import multiprocessing
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.pool import Pool

from tests.lab.ending import ENDING_SIGNALS


@contextmanager
def signals_waiting() -> Iterator[None]:
    """For the block the signals that end the bench wait; what has come is raised at its end."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING_SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def forked_pool(processes: int) -> Iterator[Pool]:
    """A pool of so many, which is ended with the block."""
    with signals_waiting():
        pool = multiprocessing.get_context("fork").Pool(processes, heed_starter_alone)
        with pool:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING_SIGNALS)
            yield pool


def heed_starter_alone() -> None:
    """The first thing in a forked process: end by SIGTERM, and by nothing else that waits."""
    for number in ENDING_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING_SIGNALS)
