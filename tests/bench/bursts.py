"""The same load for whatever answers HTTP: requests made beforehand, over kept connections.

Responsible for sending them as fast as they are answered, from processes of its own, and for
holding each answer against what a right one contains. By wrk where it is installed
(`tests.bench.wrk`), which takes the least of the cores that what is measured has to share.
Must not: know what is called. Called by the modules of `rows`.
"""

import asyncio
import itertools
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from tests.bench import wrk
from tests.bench.forking import forked_pool
from tests.bench.tally import latency_of
from tests.bench.wire import Wire
from tests.lab.process import LabFault

PROCESSES = 2
_LATE_SECONDS = 60.0
_TOO_MANY, _PAUSE_SECONDS = b'"overloaded"', 0.1
"""What says that a request is to be sent again, and when, at the soonest."""


@dataclass(frozen=True)
class Burst:
    """Whole requests, and what the body of each right answer contains.

    With several `ports` the connections take turns.
    """

    ports: tuple[int, ...]
    requests: Sequence[bytes]
    proof: bytes


@dataclass(frozen=True, slots=True)
class Load:
    """What came of it: so many answers were right, and so many not (or there was none)."""

    per_second: float
    p50_ms: float
    p99_ms: float
    failed: int
    right: int


@dataclass
class _Some:
    """What one process has seen; times by the steady clock."""

    began: float
    ended: float = 0.0
    took: list[float] = field(default_factory=list)
    failed: int = 0
    right: int = 0


def keep_up(burst: Burst, seconds: float, connections: int) -> Load:
    """Send the requests round and round for that long; wrk counts in whole seconds, from one on.

    Raises: LabFault when nothing is answered.
    """
    if not wrk.is_there():
        return _by_own_callers(burst, connections, seconds)
    seen = wrk.run(burst.ports, burst.requests, burst.proof, seconds, connections)
    return Load(seen.per_second, seen.p50_ms, seen.p99_ms, seen.failed, seen.right)


def send_each(burst: Burst, connections: int) -> Load:
    """Send each request once; one that could not be sent in time is a failure too.

    Raises: LabFault when nothing is answered.
    """
    load = _by_own_callers(burst, connections, None)
    return replace(load, failed=len(burst.requests) - load.right)


def _by_own_callers(burst: Burst, connections: int, seconds: float | None) -> Load:
    processes = min(PROCESSES, connections)
    share = -(-connections // processes)
    with forked_pool(processes) as pool:
        arguments = [(burst, part, processes, share, seconds) for part in range(processes)]
        seen = pool.starmap(_send, arguments)
    took = [each for some in seen for each in some.took]
    if not took:
        raise LabFault("no call was answered")
    latency = latency_of(took)
    # The kernel's steady clock is the same in all processes.
    elapsed = max(some.ended for some in seen) - min(some.began for some in seen)
    failed = sum(some.failed for some in seen)
    right = sum(some.right for some in seen)
    return Load(len(took) / elapsed, latency.p50, latency.p99, failed, right)


def _send(burst: Burst, part: int, parts: int, connections: int, seconds: float | None) -> _Some:
    mine = burst.requests[part::parts]
    requests = iter(mine) if seconds is None else itertools.cycle(mine)
    return asyncio.run(_send_all(burst, requests, connections, seconds))


async def _send_all(
    burst: Burst, requests: Iterator[bytes], connections: int, seconds: float | None
) -> _Some:
    some = _Some(began=time.monotonic())
    end = some.began + (_LATE_SECONDS if seconds is None else seconds)
    ports = itertools.islice(itertools.cycle(burst.ports), connections)
    await asyncio.gather(*(_lane(port, burst.proof, requests, end, some) for port in ports))
    some.ended = time.monotonic()
    return some


async def _lane(
    port: int, proof: bytes, requests: Iterator[bytes], end: float, some: _Some
) -> None:
    wire = Wire(port)
    for request in requests:
        if time.monotonic() >= end:
            break
        try:
            answer = await _answer_in_turn(wire, request, end, some)
        except (OSError, EOFError):
            some.failed += 1
            continue
        if proof in answer:
            some.right += 1
        else:
            some.failed += 1
    wire.close()


async def _answer_in_turn(wire: Wire, request: bytes, end: float, some: _Some) -> bytes:
    """Send a request, again while there are too many; it takes as long as all of that."""
    began = time.monotonic()
    while True:
        _, answer = await wire.send(request)
        if _TOO_MANY not in answer or time.monotonic() >= end:
            some.took.append(time.monotonic() - began)
            return answer
        await asyncio.sleep(_PAUSE_SECONDS)
