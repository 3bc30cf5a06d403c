"""Each kind of call alone, warm, as fast as the gateway answers; and the parts it is made of.

Responsible for the throughput and the latency of each kind, what one call of it costs the gateway
and Redis, and how often it asks Redis and the DNS server; the same of the parts by themselves.
Must not: judge but that every call was answered as it should be. Called by `__main__`.
"""

import os
import re
import time
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from redis import Redis

from tests.bench.lanes import Ground
from tests.bench.load import Plan, calling
from tests.bench.paces import tell
from tests.bench.parts import Part, ask, dns_query, redis_ping
from tests.bench.reporting import machine
from tests.bench.soak import ground_of, loaded_gateway
from tests.bench.stock import Stock
from tests.bench.stocking import stock_up
from tests.bench.tally import Tally, latency_of, latency_of_all
from tests.bench.watching import cpu_seconds
from tests.lab.gateway import GatewayProcess
from tests.lab.lab import Lab, LabOptions, running_lab
from tests.lab.ports import LOOPBACK

KINDS = (
    *("get ready", "context", "capabilities", "sync unchanged", "sync replace"),
    *("create and withdraw", "provisioning", "bad token", "broken request"),
)
PROCESSES = 2

_WARM_SECONDS = 0.5
_PAUSE_SECONDS = 0.1
_LATE_SECONDS = 30.0
_DNS_EXCHANGES = re.compile(r"^gateway_dns_exchanges_total\{[^}]*\} ([0-9.e+]+)$", re.MULTILINE)
_OWN_COMMANDS = 1
"""The question itself is among the commands that Redis has counted."""


@dataclass(frozen=True)
class Options:
    """What is told: `seconds` of each of these kinds, over so many connections in all."""

    kinds: Sequence[str]
    seconds: float
    connections: int
    holdings: int


@dataclass(frozen=True)
class _Spent:
    """What was spent so far: the gateway's processor time, Redis' commands and theirs, DNS."""

    gateway_seconds: float
    redis_commands: int
    redis_micros: int
    dns_messages: float


class _Meter:
    """Reads what a gateway and its servers have spent."""

    def __init__(self, lab: Lab, gateway: GatewayProcess, metrics_port: int) -> None:
        self._redis = Redis.from_url(lab.redis.url)
        self._pid = gateway.pid
        self._metrics_url = f"http://{LOOPBACK}:{metrics_port}/metrics"

    def read(self) -> _Spent:
        stats: Any = self._redis.info("commandstats")
        rows = stats.values()
        return _Spent(
            cpu_seconds(self._pid),
            sum(int(row["calls"]) for row in rows),
            sum(int(row["usec"]) for row in rows),
            sum(map(float, _DNS_EXCHANGES.findall(self._figures()))),
        )

    def close(self) -> None:
        self._redis.close()

    def _figures(self) -> str:
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(self._metrics_url, timeout=_LATE_SECONDS) as answer:
            text: str = answer.read().decode()
        return text


def measure(options: Options) -> dict[str, Any]:
    """Run all kinds once; the report."""
    loads, rows, all_calls, faults = [], [], Tally(), []
    with (
        running_lab(LabOptions(gateways=0)) as lab,
        loaded_gateway(lab) as (gateway, metrics_port),
    ):
        stock = Stock(options.holdings)
        stocked = stock_up(lab, stock, gateway.url, renewals=0, within_seconds=1)
        ground = ground_of(lab, gateway, stocked)
        meter = _Meter(lab, gateway, metrics_port)
        for kind in options.kinds:
            tell(kind)
            _run(ground, options, kind, _WARM_SECONDS, "warm")
            before = meter.read()
            tally, is_whole = _run(ground, options, kind, options.seconds, "measured")
            rows.append(_row(kind, tally, before, meter.read(), options.seconds))
            all_calls.add(tally)
            loads.append(os.getloadavg()[0])
            if not is_whole:
                faults.append(f"{kind}: the callers broke")
        meter.close()
        parts = (redis_ping(_port(lab.redis.url)), dns_query(lab.bind, stock.hostname(1)))
        rows += [_part_row(part, options) for part in parts]
    if all_calls.all_failed:
        faults.append(f"{all_calls.all_failed} calls were not answered as they should be")
    return {
        "bench": "calls",
        "machine": machine(loads),
        "seconds": options.seconds,
        "connections": options.connections,
        "holdings": options.holdings,
        "rows": rows,
        "failures": all_calls.failures,
        "faults": faults,
    }


def _run(
    ground: Ground, options: Options, kind: str, seconds: float, seed: str
) -> tuple[Tally, bool]:
    lanes_each = max(1, options.connections // PROCESSES)
    plan = Plan({kind: 1}, seconds, 0, PROCESSES, lanes_each, seed)
    tally, end = Tally(), time.monotonic() + seconds + _LATE_SECONDS
    with calling(ground, plan) as callers:
        while not (callers.is_over or callers.died) and time.monotonic() < end:
            time.sleep(_PAUSE_SECONDS)
            tally.add(callers.collect())
        return tally, callers.is_over


def _row(kind: str, tally: Tally, before: _Spent, after: _Spent, seconds: float) -> dict[str, Any]:
    """The figures of one kind; its errands may be several calls, which all count."""
    count = max(tally.calls, 1)
    latency = latency_of_all(tally) or latency_of([0.0])
    commands = after.redis_commands - before.redis_commands - _OWN_COMMANDS
    micros = after.redis_micros - before.redis_micros
    return {
        "kind": kind,
        **latency.as_json(),
        "perSecond": round(tally.calls / seconds, 1),
        "cpuMs": round((after.gateway_seconds - before.gateway_seconds) * 1000 / count, 2),
        "redis": round(commands / count, 1),
        "redisMicros": round(micros / count),
        "dns": round((after.dns_messages - before.dns_messages) / count, 1),
    }


def _part_row(part: Part, options: Options) -> dict[str, Any]:
    ask(part, _WARM_SECONDS, PROCESSES, options.connections)
    took = ask(part, options.seconds, PROCESSES, options.connections)
    latency = latency_of(took)
    nothing = dict.fromkeys(("cpuMs", "redis", "redisMicros", "dns"))
    rate = round(len(took) / options.seconds, 1)
    return {"kind": part.kind, **latency.as_json(), "perSecond": rate, **nothing}


def _port(redis_url: str) -> int:
    return int(redis_url.rpartition(":")[2].partition("/")[0])
