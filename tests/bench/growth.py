"""Many holdings beside a hundred: the latency of each call, the start, and what a holding takes.

Responsible for two labs at a time, stocked directly in the product's own form, and the same calls
at both, one after the other, in turns, for as many hostnames of as many clients at either. Flat is
what costs the same. A certificate that is handed out for the first time is told to the audit trail,
which costs more; of a hundred nothing is left to be the first, so that stands alone.
Called by `rows`.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from tests.bench.comparing import alone, alternate, at_most, compared
from tests.bench.gateways import loaded_environ, serving
from tests.bench.paces import Pace, tell
from tests.bench.reporting import MEBI
from tests.bench.soak import ground_of
from tests.bench.stock import Stock
from tests.bench.stocking import Stocked, stock_up
from tests.bench.visits import Visitor
from tests.bench.watching import look_at
from tests.lab.gateway import GatewayProcess, prepare_gateway
from tests.lab.lab import Lab, LabOptions, running_lab
from tests.lab.ports import free_port

FEW = 100
SIZES = (10_000, 100_000, 1_000_000)
FLAT = 1.2

_ERRANDS = (
    *("get ready", "context", "capabilities", "sync unchanged", "sync replace"),
    *("create and withdraw", "provisioning"),
)
_SECONDS = 6.0
_FIRST_SECONDS = 2.0
_FIRST = "get next"
_START, _MEMORY = "start to ready", "memory of the gateway"


@dataclass
class _Place:
    """A stocked lab with a gateway, and who calls it."""

    lab: Lab
    gateway: GatewayProcess
    stocked: Stocked
    visitor: Visitor
    newcomer: Visitor
    starts: Iterator[int] = field(default_factory=count)

    def figures(self, seconds: float) -> dict[str, float]:
        """Milliseconds of each kind of call (median) and of a start, MiB of the gateway."""
        calls = self.visitor.medians_ms(_ERRANDS, seconds)
        memory = look_at(self.gateway.pid).rss_bytes / MEBI
        return {**calls, _START: self._start() * 1000, _MEMORY: memory}

    def first_ms(self, seconds: float) -> float:
        """Milliseconds of a certificate that nobody was handed before (median)."""
        return self.newcomer.medians_ms([_FIRST], seconds)[_FIRST]

    def faults(self) -> list[str]:
        """What was not answered as it should be."""
        return [*self.visitor.faults(), *self.newcomer.faults()]

    def _start(self) -> float:
        """Seconds until a further process is ready."""
        another = prepare_gateway(
            self.lab.config,
            f"start-{next(self.starts)}",
            port=free_port(),
            environ=loaded_environ(free_port()),
        )
        began = time.monotonic()
        try:
            another.start()
            return time.monotonic() - began
        finally:
            another.stop()


def measure(pace: Pace) -> dict[str, Any]:
    """All sizes up to `pace.size`, each beside a hundred."""
    sizes = [*(size for size in SIZES if size < pace.size), pace.size]
    rows: list[dict[str, Any]] = []
    courses: dict[str, list[float]] = {}
    faults = []
    with _stocked(FEW, FEW) as base:
        for size in sizes:
            tell(f"stocking {size:,} holdings")
            with _stocked(size, FEW) as large:
                tell(f"stocked in {large.stocked.seconds:.0f} s")
                figures = _alternated(pace, large, base)
                bytes_each = large.stocked.redis_bytes / size
                seconds = pace.seconds(_FIRST_SECONDS)
                first_ms = [large.first_ms(seconds) for _ in range(pace.rounds)]
                seen = _rows(size, figures)
                all_of_size = [
                    *seen,
                    alone(f"{size:,}: get ready, handed out for the first time", "ms", first_ms),
                    alone(f"{size:,}: Redis, a holding", "bytes", [bytes_each]),
                ]
                # Those between are points of the curves.
                rows += [{**row, "isDetail": size != pace.size} for row in all_of_size]
                faults += large.faults()
            for (kind, _), row in zip(figures.items(), seen, strict=True):
                courses.setdefault(kind, [row["reference"]]).append(row["product"])
        faults += base.faults()
    return {
        "rows": rows,
        "notes": [],
        "curves": _curves([FEW, *sizes], courses),
        "faults": faults,
    }


def _alternated(pace: Pace, large: _Place, base: _Place) -> dict[str, list[tuple[float, float]]]:
    seconds = pace.seconds(_SECONDS)
    for place in (large, base):
        place.figures(min(seconds, 1.0))
    pairs = alternate(pace.rounds, lambda: large.figures(seconds), lambda: base.figures(seconds))
    return {kind: [(many[kind], few[kind]) for many, few in pairs] for kind in pairs[0][0]}


def _rows(size: int, figures: dict[str, list[tuple[float, float]]]) -> list[dict[str, Any]]:
    return [
        compared(
            f"{size:,}: {kind}",
            "MiB" if kind == _MEMORY else "ms",
            f"{FEW} holdings",
            pairs,
            None if kind == _MEMORY else at_most(FLAT),
        )
        for kind, pairs in figures.items()
    ]


def _curves(sizes: Sequence[int], courses: dict[str, list[float]]) -> list[dict[str, Any]]:
    calls = {name: values for name, values in courses.items() if name not in {_START, _MEMORY}}
    along = {"along": "holdings", "places": list(sizes)}
    return [
        {**along, "name": "calls", "unit": "ms", "title": "Median of each call", "lines": calls},
        {
            **along,
            "name": "start",
            "unit": "ms",
            "title": "From a start to ready",
            "lines": {_START: courses[_START]},
        },
        {
            **along,
            "name": "memory",
            "unit": "MiB",
            "title": "Resident memory of a gateway",
            "lines": {_MEMORY: courses[_MEMORY]},
        },
    ]


@contextmanager
def _stocked(holdings: int, called_for: int) -> Iterator[_Place]:
    with ExitStack() as stack:
        lab = stack.enter_context(running_lab(LabOptions(gateways=0)))
        (gateway,) = stack.enter_context(serving(lab.config))
        stocked = stock_up(lab, Stock(holdings), gateway.url, renewals=0, within_seconds=1)
        ground = ground_of(lab, gateway, stocked)
        # One more than would divide it: else all of them were of a few clients.
        every = 1 if holdings <= called_for else holdings // called_for + 1
        visitor = stack.enter_context(closing(Visitor(ground, every=every)))
        newcomer = stack.enter_context(closing(Visitor(ground)))
        yield _Place(lab, gateway, stocked, visitor, newcomer)
