"""The soak: a mixed load on one gateway with many holdings, and whether it stands it.

Responsible for the lab, the mix, what is watched every few seconds, and the report.
Must not: change a rule to be met; `judging` has them. Called by `__main__`.
"""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.bench.gateways import loaded_environ
from tests.bench.judging import Sample, faults_of, rises
from tests.bench.lanes import Ground
from tests.bench.load import Callers, Plan, calling
from tests.bench.logs import LogCount, count_log
from tests.bench.paces import tell
from tests.bench.reporting import MEBI, machine
from tests.bench.stock import Stock
from tests.bench.stocking import Stocked, count_renewed, stock_up
from tests.bench.tally import Tally, latency_of, latency_of_all
from tests.bench.watching import look_at
from tests.lab.gateway import GatewayProcess, running_gateway
from tests.lab.lab import Lab, LabOptions, running_lab
from tests.lab.ports import free_port

MIX = {
    "get ready": 455,
    "sync unchanged": 260,
    "sync replace": 100,
    "context": 80,
    "capabilities": 20,
    "bad token": 40,
    "broken request": 30,
    "create and withdraw": 10,
    "release and reissue": 2,
    "provisioning": 3,
}
"""How often each errand begins, in a thousand."""

PROCESSES = 2
LANES_EACH = 8

_WARM_CALLS = 17_000
"""More than the hand-outs that a gateway remembers (`gateway.store.trail`): its largest memory."""

_WARM_SECONDS = 300.0
_MOST_RENEWALS = 60
_LOOKS = 120
_SHORTEST_PAUSE_SECONDS = 0.1
_LONGEST_PAUSE_SECONDS = 5.0
_COURSE_POINTS = 10
_TELL_SECONDS = 5.0
_LATE_SECONDS = 90.0
"""After the time is over: what was begun may still end."""


@dataclass(frozen=True)
class Options:
    """What a soak is told. `rate` is errands a second in all."""

    minutes: float
    holdings: int
    rate: float

    @property
    def seconds(self) -> float:
        """How long the load lasts."""
        return self.minutes * 60

    @property
    def renewals(self) -> int:
        """How many certificates come due for renewal meanwhile."""
        return min(_MOST_RENEWALS, self.holdings // 100)


@dataclass
class Seen:
    """All that was seen: of the gateway at each look, and of the calls up to it."""

    samples: list[Sample] = field(default_factory=list)
    between: list[Tally] = field(default_factory=list)
    loads: list[float] = field(default_factory=list)
    tally: Tally = field(default_factory=Tally)
    faults: list[str] = field(default_factory=list)
    untold: Tally = field(default_factory=Tally)
    told_at: float = 0.0


def soak(options: Options) -> dict[str, object]:
    """Run it once; the report, whose `faults` are empty when the gateway stood it."""
    stock = Stock(options.holdings)
    with running_lab(LabOptions(gateways=0)) as lab, loaded_gateway(lab) as (gateway, _):
        tell(f"stocking {stock.holdings} holdings of {stock.clients} clients")
        stocked = stock_up(
            lab,
            stock,
            gateway.url,
            renewals=options.renewals,
            within_seconds=options.seconds,
        )
        tell(f"stocked in {stocked.seconds:.0f} s; warming up")
        ground = ground_of(lab, gateway, stocked)
        warmed = _warm_up(ground, options)
        tell(f"warm after {warmed.calls} calls; the load begins")
        seen = _watch(gateway, ground, _plan(options), options)
        seen.tally.add(warmed)
        renewed = count_renewed(lab, stock, options.renewals)
        logged = count_log(gateway.process.log_file)
        others = {
            "redis": look_at(lab.redis.pids[0]).rss_bytes / MEBI,
            "primary": look_at(lab.bind.pids["primary"]).rss_bytes / MEBI,
        }
    return _report(options, stocked, seen, logged, renewed, others)


@contextmanager
def loaded_gateway(lab: Lab) -> Iterator[tuple[GatewayProcess, int]]:
    """A gateway that counts what callers do as one in production, within limits that let all by.

    Its figures are shown, at the port that comes with it, and the census begins again as soon as it
    has ended: a minute's pause would leave too few of them in a quarter of a run to judge by.
    """
    metrics_port = free_port()
    environ = {**loaded_environ(metrics_port), "GATEWAY_METRICS__CENSUS_SECONDS": "1"}
    with running_gateway(lab.config, environ=environ) as gateway:
        yield gateway, metrics_port


def ground_of(lab: Lab, gateway: GatewayProcess, stocked: Stocked) -> Ground:
    """What the lanes call."""
    return Ground(gateway.port, stocked.stock, stocked.tokens, lab.config.admin_token)


def _plan(options: Options) -> Plan:
    lanes_each = min(LANES_EACH, options.holdings // PROCESSES)
    return Plan(MIX, options.seconds, options.rate, PROCESSES, lanes_each, seed="soak")


def _warm_up(ground: Ground, options: Options) -> Tally:
    """Fill what the gateway remembers of each hostname, up to its bound, before it is watched."""
    lanes_each = min(LANES_EACH, options.holdings // PROCESSES)
    calls_each = min(_WARM_CALLS, options.holdings) // (PROCESSES * lanes_each) + 1
    each_once = {"get next": 1}
    plan = Plan(each_once, _WARM_SECONDS, 0, PROCESSES, lanes_each, "warm", calls_each)
    tally = Tally()
    with calling(ground, plan) as callers:
        while not (callers.is_over or callers.died):
            time.sleep(_SHORTEST_PAUSE_SECONDS)
            tally.add(callers.collect())
    return tally


def _watch(gateway: GatewayProcess, ground: Ground, plan: Plan, options: Options) -> Seen:
    seen = Seen()
    pause = min(max(options.seconds / _LOOKS, _SHORTEST_PAUSE_SECONDS), _LONGEST_PAUSE_SECONDS)
    with calling(ground, plan) as callers:
        began = time.monotonic()
        while not callers.is_over and not callers.died:
            time.sleep(pause)
            past = time.monotonic() - began
            if past > options.seconds + _LATE_SECONDS:
                seen.faults.append("the callers did not end in time")
                break
            _look(gateway, callers, seen, past, is_within=past <= options.seconds)
            if not gateway.process.is_running:
                seen.faults.append(f"the gateway ended: {gateway.process.exit_code}")
                break
        if callers.died:
            seen.faults.append("a process of callers broke; its error is above")
    return seen


def _look(
    gateway: GatewayProcess, callers: Callers, seen: Seen, past: float, *, is_within: bool
) -> None:
    tally = callers.collect()
    seen.tally.add(tally)
    seen.untold.add(tally)
    if not (is_within and gateway.process.is_running):
        return
    sample = look_at(gateway.pid)
    seen.samples.append(sample)
    seen.between.append(tally)
    seen.loads.append(os.getloadavg()[0])
    if past < seen.told_at + _TELL_SECONDS:
        return
    shown, latency = "no call", latency_of_all(seen.untold)
    if latency is not None:
        shown = f"{latency.count} calls, p50 {latency.p50:.1f} ms, p99 {latency.p99:.1f} ms"
    seen.told_at, seen.untold = past, Tally()
    tell(
        f"{past:5.0f} s: {sample.rss_bytes / MEBI:.1f} MiB, {sample.descriptors} descriptors, "
        f"{sample.threads} threads; {shown}; {seen.tally.all_failed} failed"
    )


def _report(
    options: Options,
    stocked: Stocked,
    seen: Seen,
    logged: LogCount,
    renewed: int,
    others: dict[str, float],
) -> dict[str, object]:
    tally = seen.tally
    paced = tally.calls - len(tally.seconds.get("get next", ()))
    faults = [*seen.faults, *faults_of(seen.samples, tally.all_failed, tally.calls)]
    if logged.errors:
        faults.append(f"the gateway logged {sum(logged.errors.values())} errors")
    found = rises(seen.samples)
    return {
        "bench": "soak",
        "machine": machine(seen.loads),
        "minutes": options.minutes,
        "holdings": options.holdings,
        "clients": stocked.stock.clients,
        "stockedInSeconds": round(stocked.seconds, 1),
        "redisBytesPerHolding": stocked.redis_bytes // options.holdings,
        "calls": tally.calls,
        "callsPerSecond": round(paced / options.seconds, 1),
        "failed": tally.all_failed,
        "failures": tally.failures,
        "latency": {
            kind: {**latency_of(seconds).as_json(), "failed": tally.failed.get(kind, 0)}
            for kind, seconds in tally.seconds.items()
        },
        "reissues": latency_of(tally.reissues).as_json() if tally.reissues else None,
        "renewals": {"due": options.renewals, "done": renewed},
        "course": _course(seen),
        "lastQuarter": None
        if found is None
        else {
            "seconds": round(found.seconds, 1),
            "memoryGrewKiB": found.rss_bytes // 1024,
            "memoryAllowedKiB": int(found.rss_allowed) // 1024,
            "descriptorsGrew": found.descriptors,
            "threadsGrew": found.threads,
        },
        "logged": {"errors": logged.errors, "warnings": logged.warnings},
        "othersMiB": {name: round(size, 1) for name, size in others.items()},
        "samples": [
            (
                round(each.at - seen.samples[0].at, 1),
                each.rss_bytes // 1024,
                each.descriptors,
                each.threads,
            )
            for each in seen.samples
        ],
        "faults": faults,
    }


def _course(seen: Seen) -> list[dict[str, object]]:
    """The run in a few parts, each with its last look."""
    step = max(1, -(-len(seen.samples) // _COURSE_POINTS))
    points: list[dict[str, object]] = []
    for start in range(0, len(seen.samples), step):
        part = slice(start, start + step)
        samples, tally = seen.samples[part], Tally()
        for each in seen.between[part]:
            tally.add(each)
        first = seen.samples[max(0, start - 1)]
        last = samples[-1]
        elapsed = max(last.at - first.at, 1e-9)
        points.append(
            {
                "second": round(last.at - seen.samples[0].at),
                "rssMiB": round(last.rss_bytes / MEBI, 1),
                "descriptors": last.descriptors,
                "threads": last.threads,
                "cpuShare": round((last.cpu_seconds - first.cpu_seconds) / elapsed, 2),
                "load": round(seen.loads[part][-1], 1),
                "calls": tally.calls,
                "failed": tally.all_failed,
                "p99Ms": {
                    kind: round(latency_of(seconds).p99, 1)
                    for kind, seconds in tally.seconds.items()
                    if kind in {"get ready", "sync unchanged", "sync replace"}
                },
            }
        )
    return points
