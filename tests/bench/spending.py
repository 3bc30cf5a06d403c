"""Where the processor time of a piece of work goes: what bounds it, where everything shares a core.

Responsible for the time of every process that the bench has started and of the bench itself, by
program, and for how many cores were busy meanwhile. What the kernel does for none of them (the
disk's thread) is left out. Called by the modules of `rows`, whose reports have it as `spent`.
"""

import contextlib
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.bench.watching import cpu_seconds, processes, program

PROGRAMS = {
    "gateway": "gateway",
    "redis-server": "Redis",
    "named": "BIND",
    "pebble": "Pebble",
}
"""As the kernel names them, and as people do. All others are the callers: the bench, wrk, and what
is compared with the gateway, if it runs meanwhile: the Starlette endpoint, the script on acme."""

CALLERS = "callers"
_NAMES = (*PROGRAMS.values(), CALLERS)


@dataclass
class Spent:
    """The seconds of each program on `count` pieces of work, in so many seconds."""

    count: int = 0
    seconds: float = 0.0
    by_program: dict[str, float] = field(default_factory=lambda: dict.fromkeys(_NAMES, 0.0))


class Spending:
    """What each kind of work has cost, over all rounds."""

    def __init__(self) -> None:
        self._works: dict[str, Spent] = {}

    @contextmanager
    def on(self, work: str) -> Iterator[Spent]:
        """Count the block to a kind of work; its `count` is to be raised by what was done."""
        spent = self._works.setdefault(work, Spent())
        before, began = _seconds(), time.monotonic()
        yield spent
        spent.seconds += time.monotonic() - began
        for name, used in _seconds().items():
            spent.by_program[name] += used - before[name]

    def report(self) -> list[dict[str, Any]]:
        """For each kind of work the milliseconds of one, by program, and the cores in use."""
        return [
            {
                "work": work,
                "ms": {
                    name: float(f"{1000 * used / max(spent.count, 1):.3g}")
                    for name, used in spent.by_program.items()
                },
                "cores": round(sum(spent.by_program.values()) / spent.seconds, 2),
            }
            for work, spent in self._works.items()
        ]


def _seconds() -> dict[str, float]:
    """What each program has used so far, the bench with all that has ended: its callers have.

    The servers outlive what is measured.
    """
    seconds = dict.fromkeys(_NAMES, 0.0)
    for pid in processes():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # ended meanwhile
            used = cpu_seconds(pid, with_ended_children=pid == os.getpid())
            seconds[PROGRAMS.get(program(pid), CALLERS)] += used
    return seconds
