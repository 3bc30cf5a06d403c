"""Issuances that wait for a slow CA, ten and ten thousand: what each takes in the gateway.

Responsible for a CA that leaves each order `processing`, for one issuance that came so far by
itself, and for copies of it in Redis, which the gateway finds, looks after, and never sees the end
of. Memory and threads are looked at when all of them were looked after. Called by `rows`.
"""

import json
import secrets
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from redis import Redis

from gateway.contract.names import Hostname
from gateway.store import keys
from tests.bench.comparing import alone, at_most
from tests.bench.gateways import serving
from tests.bench.judging import Sample
from tests.bench.paces import Pace, tell
from tests.bench.stock import APP_ID, Stock, client_id
from tests.bench.stocking import provision_clients
from tests.bench.watching import look_at
from tests.integration.service.calling import Caller, Ownership
from tests.lab.acme_calls import Answer, Operation
from tests.lab.acme_moods import Exchange
from tests.lab.acme_proxy import AcmeProxy
from tests.lab.gateway import GatewayProcess, write_gateway_config
from tests.lab.lab import Lab, LabOptions, running_lab
from tests.lab.process import wait_until

FEW = 10
WORKER_PLACES = 32
"""How many hostnames the worker has in hand at once, by default: the most threads it may need."""

_RETRY_AFTER_SECONDS = 600
"""Longer than it takes to look at all of them once: who waits is looked at, and not those again."""

_LIMIT_SECONDS = 30.0
_FEWEST_A_SECOND = 20
_SECONDS = 10.0
_AT_ONCE = 500
_KIBI = 1024


@dataclass
class _StillProcessing:
    """Pebble's own answer about an order, before it was done; kept as the last one."""

    kept: Answer | None = None
    name: str = "processing, by Pebble"

    def __call__(self, exchange: Exchange) -> Answer:
        answer = exchange.pass_on()
        body = {**answer.json(), "status": "processing"}
        body.pop("certificate", None)
        self.kept = answer.with_json(body).with_header("Retry-After", str(_RETRY_AFTER_SECONDS))
        return self.kept


@dataclass(frozen=True)
class _Processing:
    """The same answer about the order of each hostname; Pebble has no such orders."""

    kept: Answer
    name: str = "processing"

    def __call__(self, exchange: Exchange) -> Answer:
        hostname = exchange.call.path.rpartition("/")[2]
        identifiers = [{"type": "dns", "value": hostname}]
        answer = self.kept.with_json({**self.kept.json(), "identifiers": identifiers})
        # No nonce of Pebble's is needed where Pebble sees none of the requests.
        return answer.with_header("Replay-Nonce", secrets.token_urlsafe(16))


def measure(pace: Pace) -> dict[str, Any]:
    """Both numbers, the larger one being `pace.size`; each looked at for `pace.rounds` times."""
    stock = Stock(pace.size)
    with (
        running_lab(LabOptions(gateways=0)) as lab,
        _slow_ca(lab, stock) as (proxy, gateway, tokens),
        Redis.from_url(lab.redis.url, decode_responses=True) as redis,
    ):
        model = _Model(redis, proxy, Caller(gateway.url, tokens[0]), stock)
        seen = {}
        for count in (FEW, pace.size):
            tell(f"{count:,} issuances wait")
            model.copy_up_to(count)
            model.await_looks()
            seen[count] = _look(gateway, pace)
        left = model.left()
    return {
        "rows": _rows(pace.size, seen),
        "notes": [],
        "faults": [f"{left} issuances no longer wait"] if left else [],
    }


def _rows(size: int, seen: dict[int, list[Sample]]) -> list[dict[str, Any]]:
    few, many = seen[FEW], seen[size]
    more = size - FEW

    before = statistics.median(sample.rss_bytes for sample in few)
    threads_before = statistics.median(sample.threads for sample in few)
    # In a smoke what they take is less than what the allocator has left over.
    each = [max(0.0, (sample.rss_bytes - before) / _KIBI / more) for sample in many]
    threads = [max(0.0, sample.threads - threads_before) for sample in many]
    elapsed = many[-1].at - many[0].at
    share = (many[-1].cpu_seconds - many[0].cpu_seconds) / elapsed
    return [
        alone(f"{size:,} issuances wait: memory of each", "KiB", each, at_most(20)),
        alone(f"the same: threads more than with {FEW}", "", threads, at_most(WORKER_PLACES)),
        alone("the same: processor, of one core", "", [share]),
    ]


def _look(gateway: GatewayProcess, pace: Pace) -> list[Sample]:
    samples = [look_at(gateway.pid)]
    for _ in range(pace.rounds):
        time.sleep(pace.seconds(_SECONDS))
        samples.append(look_at(gateway.pid))
    return samples


class _Model:
    """The issuance that came to `processing` by itself, and copies of it."""

    def __init__(self, redis: Redis, proxy: AcmeProxy, caller: Caller, stock: Stock) -> None:
        self._redis = redis
        self._stock = stock
        self._count = 1
        mood = _StillProcessing()
        proxy.on(Operation.FINALIZE, mood, times=None)
        proxy.on(Operation.ORDER, mood, times=None)
        Ownership(caller, stock.hostname(0), APP_ID).get()
        wait_until(self._is_processing, "the model's order is processing", _LIMIT_SECONDS)
        self._issuance: dict[str, Any] = json.loads(str(redis.hget(self._key(0), "issuance")))
        assert mood.kept is not None
        self._orders_url = proxy.directory_url.rpartition("/")[0] + "/order-of/"
        proxy.on(Operation.OTHER, _Processing(mood.kept), times=None)

    def copy_up_to(self, count: int) -> None:
        """Store so many in all; each is due at once."""
        numbers = range(self._count, count)
        for start in range(0, len(numbers), _AT_ONCE):
            pipeline = self._redis.pipeline(transaction=False)
            for number in numbers[start : start + _AT_ONCE]:
                self._copy(pipeline, number)
            pipeline.execute()
        self._count = count

    def _copy(self, pipeline: Any, number: int) -> None:
        hostname = Hostname(self._stock.hostname(number))
        holder = client_id(self._stock.client_of(number))
        now_ms = time.time_ns() // 1_000_000
        own = {
            "issuance_id": secrets.token_hex(8),
            "order_url": self._orders_url + hostname,
            "due_at_ms": now_ms,
            "looks": 0,
        }
        document = {
            "version": secrets.token_hex(8),
            "holder": json.dumps({"clientId": holder, "appId": APP_ID}),
            "issuance": json.dumps({**self._issuance, **own}),
        }
        pairs = [each for pair in document.items() for each in pair]
        pipeline.hset(self._key(number), items=pairs)
        bucket = keys.bucket_of(hostname)
        pipeline.zadd(keys.due_key(bucket), {hostname: now_ms})
        pipeline.zadd(keys.names_key(bucket), {hostname: 0})
        index = keys.client_holdings_key(keys.fingerprint(holder))
        pipeline.zadd(index, {hostname: now_ms})

    def await_looks(self) -> None:
        """Wait until the CA was asked about each, since it was stored. Raises: LabFault."""
        left: Sequence[int] = range(self._count)

        def are_all_seen() -> bool:
            # What was looked at once is not read again: that would take a core by itself.
            nonlocal left
            seen = zip(left, self._issuances(left), strict=True)
            left = [number for number, each in seen if each.get("looks", 0) == 0]
            return not left

        wait_until(
            are_all_seen,
            f"the CA is asked about {self._count:,} orders",
            _LIMIT_SECONDS + self._count / _FEWEST_A_SECOND,
            pause_seconds=0.5,
        )

    def left(self) -> int:
        """How many do not wait any more."""
        return sum(
            each.get("state") != "finalizing" for each in self._issuances(range(self._count))
        )

    def _issuances(self, numbers: Sequence[int]) -> Iterator[dict[str, Any]]:
        for start in range(0, len(numbers), _AT_ONCE):
            pipeline = self._redis.pipeline(transaction=False)
            for number in numbers[start : start + _AT_ONCE]:
                pipeline.hget(self._key(number), "issuance")
            for text in pipeline.execute():
                yield json.loads(text or "{}")

    def _is_processing(self) -> bool:
        (issuance,) = self._issuances([0])
        return issuance.get("state") == "finalizing" and issuance.get("looks", 0) > 0

    def _key(self, number: int) -> str:
        return keys.host_key(Hostname(self._stock.hostname(number)))


@contextmanager
def _slow_ca(lab: Lab, stock: Stock) -> Iterator[tuple[AcmeProxy, GatewayProcess, tuple[str, ...]]]:
    with AcmeProxy(lab.folder, lab.pebble) as proxy:
        config = write_gateway_config(lab.folder / "slow", lab.bind, lab.redis.url, proxy)
        with serving(config) as (gateway,):
            tokens = provision_clients(gateway.url, config.admin_token, stock)
            yield proxy, gateway, tokens
