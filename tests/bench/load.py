"""Callers in processes of their own, which run errands for some time and report every little while.

Responsible for the mix and the pace, and for an end whatever happens: bounded in time, and after so
many failures. A lane runs one errand after the other. With a rate each begins at its own time, and
none is made up for that came too late, so a gateway that is slow is not besieged.
Must not: judge. Called by `soak` and `calls`.
"""

from __future__ import annotations

import asyncio
import itertools
import multiprocessing
import queue
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.bench.forking import heed_starter_alone, signals_waiting
from tests.bench.lanes import REISSUE_LIMIT_SECONDS, Ground, Lane
from tests.bench.tally import Tally

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from multiprocessing.process import BaseProcess
    from multiprocessing.queues import Queue

MOST_FAILURES = 1_000
"""Of one process: the rest would tell nothing new."""

_REPORT_SECONDS = 1.0
_STOP_SECONDS = 40.0


@dataclass(frozen=True)
class Plan:
    """What callers do: errands by weight, for how long, and how many a second in all (0: any).

    `most_each`: how many errands each lane runs, at the most (0: any number).
    """

    weights: Mapping[str, int]
    seconds: float
    rate: float
    processes: int
    lanes_each: int
    seed: str
    most_each: int = 0

    @property
    def lanes(self) -> int:
        """How many connections there are."""
        return self.processes * self.lanes_each


class Callers:
    """Running callers; `collect` what they have seen."""

    def __init__(self, processes: list[BaseProcess], reports: Queue[Tally | None]) -> None:
        self._processes = processes
        self._reports = reports
        self._ended = 0

    def collect(self) -> Tally:
        """What was reported since the last time."""
        seen = Tally()
        while True:
            try:
                report = self._reports.get_nowait()
            except queue.Empty:
                return seen
            if report is None:
                self._ended += 1
            else:
                seen.add(report)

    @property
    def is_over(self) -> bool:
        """Whether all have ended, and all of it was collected."""
        return self._ended == len(self._processes)

    @property
    def died(self) -> bool:
        """Whether one has ended with an error."""
        return any(process.exitcode for process in self._processes)


@contextmanager
def calling(ground: Ground, plan: Plan) -> Iterator[Callers]:
    """Callers at work beside the block; whoever is not done at its end is stopped."""
    forking = multiprocessing.get_context("fork")
    reports: Queue[Tally | None] = forking.Queue()
    processes: list[BaseProcess] = [
        forking.Process(target=_call, args=(ground, plan, number, reports), daemon=True)
        for number in range(plan.processes)
    ]
    try:
        with signals_waiting():
            for process in processes:
                process.start()
        yield Callers(processes, reports)
    finally:
        for process in processes:
            if process.is_alive():
                process.terminate()
                process.join(_STOP_SECONDS)
        reports.close()


def _call(ground: Ground, plan: Plan, process: int, reports: Queue[Tally | None]) -> None:
    heed_starter_alone()
    asyncio.run(_run_lanes(ground, plan, process, reports))
    reports.put(None)
    reports.close()
    reports.join_thread()


async def _run_lanes(
    ground: Ground, plan: Plan, process: int, reports: Queue[Tally | None]
) -> None:
    numbers = range(process * plan.lanes_each, (process + 1) * plan.lanes_each)
    lanes = [Lane(ground, number, plan.lanes, plan.seed) for number in numbers]
    end = time.monotonic() + plan.seconds
    work = asyncio.gather(*(_run(lane, plan, end) for lane in lanes))
    failed = 0
    try:
        async with asyncio.timeout(plan.seconds + REISSUE_LIMIT_SECONDS):
            while not work.done() and failed < MOST_FAILURES:
                await asyncio.wait([work], timeout=_REPORT_SECONDS)
                failed += _report(lanes, reports)
        if not work.done():
            work.cancel()
        await asyncio.wait([work])
    finally:
        _report(lanes, reports)
        for lane in lanes:
            lane.close()
    if not work.cancelled():
        work.result()


def _report(lanes: list[Lane], reports: Queue[Tally | None]) -> int:
    failed = 0
    for lane in lanes:
        tally, lane.tally = lane.tally, Tally()
        failed += tally.all_failed
        if tally.calls:
            reports.put(tally)
    return failed


async def _run(lane: Lane, plan: Plan, end: float) -> None:
    names, weights = list(plan.weights), list(plan.weights.values())
    pause = plan.lanes / plan.rate if plan.rate else 0.0
    next_at = time.monotonic() + lane.chance.random() * pause
    for done in itertools.count():
        now = time.monotonic()
        if now >= end or 0 < plan.most_each <= done:
            return
        if now < next_at:
            await asyncio.sleep(min(next_at, end) - now)
            if next_at > end:
                return
        next_at = max(next_at + pause, time.monotonic())
        (errand,) = lane.chance.choices(names, weights)
        await lane.errands[errand]()
