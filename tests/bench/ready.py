"""Getting a certificate that is ready: one gateway and two, beside a minimal Starlette endpoint.

Responsible for the same 32 connections on each, one after the other; the endpoint runs in one
uvicorn process and reads the same Redis. And for how that grows with the cores: all of it, Redis
and the callers too, on one core, and with a second gateway on two. Called by `rows`.
"""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.bench import bodies, reference_app, wrk
from tests.bench.bursts import Burst, Load, keep_up
from tests.bench.comparing import alternate, at_least, at_most, compared
from tests.bench.cores import available, on_cores
from tests.bench.gateways import serving
from tests.bench.paces import Pace, tell
from tests.bench.spending import Spending
from tests.bench.stock import Stock
from tests.bench.stocking import stock_up
from tests.bench.watching import cpu_seconds
from tests.lab.lab import Lab, LabOptions, running_lab
from tests.lab.ports import LOOPBACK, free_port, refuses_connections
from tests.lab.process import Process

CONNECTIONS = 32
_SECONDS = 8.0
_WARM_SECONDS = 2.0
_ROOT = Path(__file__).parents[2]
_READY = b'"status":"ready"'
_ENDPOINT = "Starlette, two GETs, AES-GCM, 6 KB"
_SPREAD = "get ready, two processes, all on two cores"
_TOGETHER = "one process, all on one core"


@dataclass(frozen=True)
class _Server:
    """What answers, and the processes whose time it takes."""

    burst: Burst
    pids: tuple[int, ...]


@dataclass(frozen=True)
class _Seen:
    load: Load
    cpu_ms: float


def measure(pace: Pace) -> dict[str, Any]:
    """All rounds; `pace.size` holdings."""
    spending = Spending()
    with (
        running_lab(LabOptions(gateways=0)) as lab,
        serving(lab.config, 2) as gateways,
        _endpoint(lab) as endpoint,
    ):
        stock = Stock(pace.size)
        stocked = stock_up(lab, stock, gateways[0].url, renewals=0, within_seconds=1)
        requests = [bodies.get(stock, stocked.tokens, number) for number in range(pace.size)]
        ports = tuple(gateway.port for gateway in gateways)
        pids = tuple(gateway.pid for gateway in gateways)
        one = _Server(Burst(ports[:1], requests, _READY), pids[:1])
        two = _Server(Burst(ports, requests, _READY), pids)
        for server in (one, two, endpoint):
            keep_up(server.burst, pace.seconds(_WARM_SECONDS), CONNECTIONS)
        tell("one gateway, and the endpoint")
        seconds = pace.seconds(_SECONDS)
        beside = alternate(
            pace.rounds,
            lambda: _spent_on(spending, "get ready, one process", one, seconds),
            lambda: _load(endpoint, seconds),
        )
        tell("two gateways, and one")
        more = alternate(
            pace.rounds,
            lambda: _spent_on(spending, "get ready, two processes", two, seconds),
            lambda: _load(one, seconds),
        )
        scaled, notes = [], wrk.notes()
        if available() > 1:
            tell("two gateways on two cores, and one on one")
            scaled = alternate(
                pace.rounds,
                lambda: _load(two, seconds, cores=2),
                lambda: _load(one, seconds, cores=1),
            )
        else:
            notes.append(f"{_SPREAD}: left out, there is one core only")
    failed = sum(seen.load.failed for pair in (*beside, *more, *scaled) for seen in pair)
    return {
        "rows": [*_rows(beside), *_rows_of_two(more, scaled)],
        "spent": spending.report(),
        "notes": notes,
        "faults": [f"{failed} answers were not as they should be"] if failed else [],
    }


def _rows(beside: Sequence[tuple[_Seen, _Seen]]) -> list[dict[str, Any]]:
    p99 = [(one.load.p99_ms, two.load.p99_ms) for one, two in beside]
    cpu = [(one.cpu_ms, two.cpu_ms) for one, two in beside]
    return [
        compared("get ready", "calls/s", _ENDPOINT, _rates(beside), at_least(1.5)),
        compared("get ready, p99", "ms", _ENDPOINT, p99, at_most(1.0)),
        compared("get ready, CPU of a call", "ms", _ENDPOINT, cpu, None),
    ]


def _rows_of_two(
    more: Sequence[tuple[_Seen, _Seen]], scaled: Sequence[tuple[_Seen, _Seen]]
) -> list[dict[str, Any]]:
    # One gateway leaves the second core to Redis and the load, which it shares with another.
    rows = [compared("get ready, two processes", "calls/s", "one process", _rates(more), None)]
    if scaled:
        rows.append(compared(_SPREAD, "calls/s", _TOGETHER, _rates(scaled), at_least(1.6)))
    return rows


def _rates(pairs: Sequence[tuple[_Seen, _Seen]]) -> list[tuple[float, float]]:
    return [(one.load.per_second, two.load.per_second) for one, two in pairs]


def _spent_on(spending: Spending, work: str, server: _Server, seconds: float) -> _Seen:
    with spending.on(work) as spent:
        seen = _load(server, seconds)
        spent.count += seen.load.right
    return seen


def _load(server: _Server, seconds: float, cores: int | None = None) -> _Seen:
    """`cores`: how many there are for everything; all of the machine's unless told."""
    before = sum(map(cpu_seconds, server.pids))
    with nullcontext() if cores is None else on_cores(cores):
        load = keep_up(server.burst, seconds, CONNECTIONS)
    spent = sum(map(cpu_seconds, server.pids)) - before
    # The kernel counts in hundredths of a second: nothing, at times, of a short run.
    return _Seen(load, max(spent, 0.01) * 1000 / max(load.right, 1))


@contextmanager
def _endpoint(lab: Lab) -> Iterator[_Server]:
    port = free_port()
    command = [sys.executable, "-m", "uvicorn", "--factory", "tests.bench.reference_app:app"]
    command += ["--host", LOOPBACK, "--port", str(port), "--no-access-log"]
    path = os.pathsep.join([str(_ROOT), *os.environ.get("PYTHONPATH", "").split(os.pathsep)])
    environ = {**reference_app.stock(lab.redis.url), "PYTHONPATH": path.rstrip(os.pathsep)}
    process = Process("reference", command, lab.folder, environ)
    process.start(lambda: not refuses_connections(port))
    try:
        request = b"GET / HTTP/1.1\r\nHost: lab\r\n\r\n"
        yield _Server(Burst((port,), [request], reference_app.PROOF), (process.pid,))
    finally:
        process.stop()
