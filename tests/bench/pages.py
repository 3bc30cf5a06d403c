"""The operator's page, with few hostnames and with many: how long each of its pages takes.

Responsible for two labs, one stocked with a hundred hostnames, the other with as many as told, and
the same pages read by plain HTTP in one session, one after the other, a number of times each.
Must not: judge but that every page was shown. Called by `__main__`.
"""

import os
import statistics
import time
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from redis import Redis

from gateway.store.keys import CENSUS_KEY
from tests.bench.paces import tell
from tests.bench.reporting import machine
from tests.bench.stock import Stock, client_id
from tests.bench.stocking import stock_up
from tests.lab.gateway import running_gateway
from tests.lab.lab import Lab, LabOptions, running_lab
from tests.lab.page_session import PageSession
from tests.lab.process import wait_until

FEW = 100
MOST_LOADS = 1_000

_WARM_LOADS = 3
_CENSUS_LIMIT_SECONDS = 300.0


@dataclass(frozen=True)
class Options:
    """What is told: how many hostnames the large lab has, and how often each page is loaded."""

    holdings: int
    loads: int


def measure(options: Options) -> dict[str, Any]:
    """Run both labs once; the report."""
    loads: list[float] = []
    failures: list[str] = []
    few = _loads_with(Stock(FEW), options.loads, loads, failures)
    many = _loads_with(Stock(options.holdings), options.loads, loads, failures)
    return {
        "bench": "page",
        "few": FEW,
        "holdings": options.holdings,
        "loads": options.loads,
        "rows": [_row(kind, few[kind], many[kind]) for kind in few],
        "machine": machine(loads),
        "failures": failures,
        "faults": [f"{len(failures)} pages were not shown"] if failures else [],
    }


@dataclass
class _Loaded:
    seconds: list[float]
    size: int = 0


def _loads_with(
    stock: Stock, times: int, loads: list[float], failures: list[str]
) -> dict[str, _Loaded]:
    with (
        running_lab(LabOptions(gateways=0)) as lab,
        running_gateway(lab.config) as gateway,
    ):
        tell(f"stocking {stock.holdings:,} hostnames")
        stock_up(lab, stock, gateway.url, renewals=0, within_seconds=1)
        _await_census(lab)
        with closing(PageSession(gateway.base_url, lab.config.admin_token)) as session:
            return {
                kind: _load(session, kind, path, times, loads, failures)
                for kind, path in _pages(stock).items()
            }


def _pages(stock: Stock) -> dict[str, str]:
    """The pages by what they are called in the table, and their paths below the page's own."""
    last = stock.holdings - 1
    hostname = stock.hostname(last)
    return {
        "overview": "",
        "hostnames": "/hostnames",
        "hostnames, by prefix": f"/hostnames?prefix=h{last // 2}",
        "hostnames, from the middle": f"/hostnames?after={stock.hostname(last // 2)}",
        "hostnames of a client": f"/hostnames?client={client_id(0)}",
        "hostname": f"/hostnames/{hostname}",
        "hostname, in the zone": f"/hostnames/{hostname}/zone",
        "hostname, the verdict": f"/hostnames/{hostname}/verdict",
        "clients": "/clients",
        "client": f"/clients/{client_id(0)}",
        "audit trail": "/audit",
        "audit trail of a hostname": f"/audit?hostname={stock.hostname(0)}",
    }


def _load(
    session: PageSession,
    kind: str,
    path: str,
    times: int,
    loads: list[float],
    failures: list[str],
) -> _Loaded:
    tell(kind)
    loaded = _Loaded([])
    for number in range(_WARM_LOADS + times):
        began = time.monotonic()
        answer = session.get(path)
        took = time.monotonic() - began
        if answer.status_code != 200:
            failures.append(f"{kind}: {answer.status_code}")
        elif number >= _WARM_LOADS:
            loaded.seconds.append(took)
            loaded.size = len(answer.content)
    loads.append(os.getloadavg()[0])
    return loaded


def _await_census(lab: Lab) -> None:
    """The overview shows what was counted, so it is worth measuring once that is there."""
    with Redis.from_url(lab.redis.url) as redis:
        wait_until(
            lambda: bool(redis.exists(CENSUS_KEY)), "the census is taken", _CENSUS_LIMIT_SECONDS
        )


def _row(kind: str, few: _Loaded, many: _Loaded) -> dict[str, Any]:
    return {"page": kind, "few": _figures(few), "many": _figures(many)}


def _figures(loaded: _Loaded) -> dict[str, float] | None:
    if not loaded.seconds:
        return None
    ranked = sorted(loaded.seconds)
    return {
        "medianMs": round(statistics.median(ranked) * 1000, 1),
        "p99Ms": round(ranked[min(len(ranked) - 1, int(len(ranked) * 0.99))] * 1000, 1),
        "bytes": loaded.size,
    }
