"""Renewals by the hundred thousand that come due in one moment: what the API's callers notice.

Responsible for the same paced calls before that moment and after it, for how many certificates a
second are renewed meanwhile, and for whether the clients get on alike. Not to its end: it would
take as long as the rate says. Called by `rows`.
"""

import json
import secrets
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from redis import Redis

from gateway.contract.names import Hostname
from gateway.store import keys
from tests.bench.comparing import alone, at_least, at_most, compared
from tests.bench.gateways import serving
from tests.bench.lanes import Ground
from tests.bench.load import Plan, calling
from tests.bench.logs import count_log
from tests.bench.paces import Pace, tell
from tests.bench.soak import ground_of
from tests.bench.stock import Stock
from tests.bench.stocking import stock_up
from tests.bench.tally import Tally, latency_of_all
from tests.lab.lab import LabOptions, running_lab
from tests.lab.process import LabFault, wait_until

CALLS_A_SECOND = 50.0
_LANES_EACH, _PROCESSES = 4, 2
_SECONDS = 20.0
_SMOKE_SECONDS = 1.0
_AT_ONCE = 500
_PAUSE_SECONDS = 0.05
_LIMIT_SECONDS = 60.0


@dataclass(frozen=True)
class _Round:
    """Of one round: the calls' p99, how long it lasted, and what was still due at its end."""

    p99_ms: float
    elapsed: float
    left: Counter[int]
    tally: Tally


def measure(pace: Pace) -> dict[str, Any]:
    """Rounds before, then as many after all of `pace.size` but the first have come due."""
    stock = Stock(pace.size)
    with (
        running_lab(LabOptions(gateways=0)) as lab,
        serving(lab.config) as (gateway,),
        Redis.from_url(lab.redis.url, decode_responses=True) as redis,
    ):
        tell(f"stocking {pace.size:,} holdings")
        stocked = stock_up(lab, stock, gateway.url, renewals=0, within_seconds=1)
        bench = _Bench(redis, ground_of(lab, gateway, stocked), pace)
        bench.round("warm")
        before = [bench.round(f"before {number}") for number in range(pace.rounds)]
        tell("all of them come due")
        bench.make_due()
        # The worker sees them at its next poll, half a second later at the most.
        wait_until(bench.has_begun, "the first one is renewed", _LIMIT_SECONDS)
        due = bench.left()
        after = [bench.round(f"after {number}") for number in range(pace.rounds)]
        errors = count_log(gateway.process.log_file).errors
    faults = [f"the gateway logged errors: {errors}"] if errors else []
    failures = [each for one in (*before, *after) for each in one.tally.failures]
    faults += [f"{len(failures)} calls failed: {failures[0]}"] if failures else []
    return {"rows": _rows(pace, due, before, after), "notes": [_NOTE], "faults": faults}


_NOTE = "before and after cannot take turns: what has come due stays so"


def _rows(
    pace: Pace, due: Counter[int], before: Sequence[_Round], after: Sequence[_Round]
) -> list[dict[str, Any]]:
    work = f"{pace.size:,} renewals due at once"
    pairs = [(late.p99_ms, early.p99_ms) for early, late in zip(before, after, strict=True)]
    rates, left = [], due
    for one in after:
        rates.append(max(0, left.total() - one.left.total()) / one.elapsed)
        left = one.left
    done = [due[client] - left[client] for client in due]
    # One who has got on with nothing yet, in a run as short as a smoke.
    fairness = min(done) / max(max(done), 1)
    return [
        compared(f"{work}: get ready, p99", "ms", "before", pairs, at_most(2.0)),
        alone("the same: certificates renewed", "1/s", rates),
        alone("the same: least of a client to most", "", [fairness], at_least(0.5)),
    ]


class _Bench:
    """A stocked lab, its load, and its due queues."""

    def __init__(self, redis: Redis, ground: Ground, pace: Pace) -> None:
        self._redis = redis
        self._ground = ground
        self._stock = ground.stock
        self._seconds = _SMOKE_SECONDS if pace.is_smoke else _SECONDS

    def round(self, seed: str) -> _Round:
        """Calls for certificates, so many a second, while the gateway does what else it has to.

        Raises: LabFault when the callers break.
        """
        lanes_each = min(_LANES_EACH, self._stock.holdings // _PROCESSES)
        kinds = {"get ready": 1}
        plan = Plan(kinds, self._seconds, CALLS_A_SECOND, _PROCESSES, lanes_each, seed)
        tally, began = Tally(), time.monotonic()
        with calling(self._ground, plan) as callers:
            while not callers.is_over:
                if callers.died or time.monotonic() > began + self._seconds + _LIMIT_SECONDS:
                    raise LabFault("the callers broke")
                time.sleep(_PAUSE_SECONDS)
                tally.add(callers.collect())
        latency = latency_of_all(tally)
        if latency is None:
            raise LabFault("no call was answered")
        return _Round(latency.p99, time.monotonic() - began, self.left(), tally)

    def make_due(self) -> None:
        """Have every certificate but the first come due now, as if its time were over."""
        for numbers in self._batches():
            pipeline = self._redis.pipeline(transaction=False)
            for hostname in map(self._hostname, numbers):
                pipeline.hget(keys.host_key(hostname), "certificate")
            stored = pipeline.execute()
            now_ms = time.time_ns() // 1_000_000
            for hostname, text in zip(map(self._hostname, numbers), stored, strict=True):
                certificate = {**json.loads(text), "renew_at_ms": now_ms}
                fields = {"certificate": json.dumps(certificate), "version": secrets.token_hex(8)}
                pairs = [each for pair in fields.items() for each in pair]
                pipeline.hset(keys.host_key(hostname), items=pairs)
                pipeline.zadd(keys.due_key(keys.bucket_of(hostname)), {hostname: now_ms})
            pipeline.execute()

    def has_begun(self) -> bool:
        """Whether one is not due any more."""
        return self.left().total() < self._stock.holdings - 1

    def left(self) -> Counter[int]:
        """How many hostnames of each client are due."""
        pipeline = self._redis.pipeline(transaction=False)
        now_ms = time.time_ns() // 1_000_000
        for bucket in range(keys.BUCKETS):
            pipeline.zrangebyscore(keys.due_key(bucket), "-inf", now_ms)
        names = (name for some in pipeline.execute() for name in some)
        # h<number>.c<client>.<zone>, see `stock`.
        return Counter(int(name.split(".")[1].removeprefix("c")) for name in names)

    def _hostname(self, number: int) -> Hostname:
        return Hostname(self._stock.hostname(number))

    def _batches(self) -> Iterator[range]:
        for start in range(1, self._stock.holdings, _AT_ONCE):
            yield range(start, min(start + _AT_ONCE, self._stock.holdings))
