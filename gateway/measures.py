"""What this process counts and times, for Prometheus: every figure, its name, unit and labels.

Responsible for one registry of the gateway's own and a small function for each thing that happens.
A label's value is one of a known few (zones and authorities of the configuration, methods of the
contract, codes): never a hostname, a client or what a peer sent, which would make the figures grow
without end and tell strangers who is served. Units are seconds and bytes.
Must not: judge, log or do I/O. Called by every layer of the server, from any thread; shown by
`http.metrics`. What is known about all hostnames together comes from `certificates.census`.
"""

from __future__ import annotations

import platform
import time
from functools import cache
from typing import TYPE_CHECKING, Final

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
)

from gateway import __version__
from gateway.durations import Counts, Durations

if TYPE_CHECKING:
    from collections.abc import Iterable

REGISTRY: Final = CollectorRegistry()

CALL_METHODS: Final = frozenset(
    {
        "syncGatewayClientDnsRecord",
        "getGatewayClientCertificate",
        "releaseGatewayClientCertificate",
        "getGatewayCapabilities",
        "getGatewayClientContext",
        "provisionGatewayClientCredential",
    }
)
"""The contract's methods; what anybody may send as a method's name is `UNKNOWN`."""

UNKNOWN: Final = "unknown"

_CALL_BOUNDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_DNS_BOUNDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 1.5, 3.0)
_ACME_BOUNDS: Final = (0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 30.0)
_REDIS_BOUNDS: Final = (0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 2.0)
_ISSUANCE_BOUNDS: Final = (1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 900.0, 3600.0, 21600.0)

# Else each counter has a second series with its birth, which nobody asks for.
disable_created_metrics()  # type: ignore[no-untyped-call]

ProcessCollector(registry=REGISTRY)

_build = Gauge(
    "gateway_build_info",
    "The release that runs, and its Python, as labels",
    ["version", "python"],
    registry=REGISTRY,
)
_build.labels(__version__, platform.python_version()).set(1)

_calls = Counts(
    "gateway_calls",
    "Calls answered, by method and by the status or error code that was answered",
    ["method", "outcome"],
    registry=REGISTRY,
)
_call_seconds = Durations(
    "gateway_call_seconds",
    "How long calls took, from the request's head to the answer",
    "method",
    buckets=_CALL_BOUNDS,
    registry=REGISTRY,
)
_dns_exchanges = Counter(
    "gateway_dns_exchanges",
    "Messages to DNS servers, by zone, kind, and the rcode or fault that they came to",
    ["zone", "kind", "outcome"],
    registry=REGISTRY,
)
_dns_seconds = Histogram(
    "gateway_dns_exchange_seconds",
    "How long messages to DNS servers took, faults included",
    ["zone", "kind"],
    buckets=_DNS_BOUNDS,
    registry=REGISTRY,
)
_acme_calls = Counter(
    "gateway_acme_calls",
    "Requests to authorities, by kind, and `ok` or the fault that they came to",
    ["authority", "kind", "outcome"],
    registry=REGISTRY,
)
_acme_seconds = Histogram(
    "gateway_acme_call_seconds",
    "How long requests to authorities took, faults included",
    ["authority", "kind"],
    buckets=_ACME_BOUNDS,
    registry=REGISTRY,
)
_budget_left = Gauge(
    "gateway_acme_budget_left",
    "How much of a figure of the account is unused; no series where there is no limit",
    ["authority", "limit"],
    registry=REGISTRY,
)
_budget_size = Gauge(
    "gateway_acme_budget_size",
    "The whole of that figure",
    ["authority", "limit"],
    registry=REGISTRY,
)
_orders_held = Gauge(
    "gateway_acme_orders_held",
    "Whether every order is held back: by the authority's word, or since it could not be reached",
    ["authority", "by"],
    registry=REGISTRY,
)
_issuances_ended = Counter(
    "gateway_issuances_ended",
    "Issuances that ended here: issued, released, or the reason why they came to nothing",
    ["authority", "outcome"],
    registry=REGISTRY,
)
_issuance_seconds = Histogram(
    "gateway_issuance_seconds",
    "From the request, or the end of the last wait, to the certificate",
    ["authority"],
    buckets=_ISSUANCE_BOUNDS,
    registry=REGISTRY,
)
_leases_lost = Counter(
    "gateway_leases_lost",
    "Hostnames given up in the middle: taken over by another process, or released",
    registry=REGISTRY,
)
_queue_late = Gauge(
    "gateway_queue_late_seconds",
    "How long the hostname that is due the longest has waited for a worker",
    registry=REGISTRY,
)
_redis_seconds = Durations(
    "gateway_redis_exchange_seconds",
    "How long Redis took, by the first command of each exchange",
    "command",
    buckets=_REDIS_BOUNDS,
    registry=REGISTRY,
)
_redis_faults = Counter(
    "gateway_redis_faults",
    "Exchanges with Redis without an answer: timeout, or connection",
    ["fault"],
    registry=REGISTRY,
)
_audit_entries = Counter(
    "gateway_audit_entries",
    "Entries of the audit trail that this process has written or lost",
    ["outcome"],
    registry=REGISTRY,
)
_spans = Counter(
    "gateway_trace_spans",
    "Spans that a collector has taken (sent), and those that it could not be given (lost)",
    ["outcome"],
    registry=REGISTRY,
)
_limited = Counter(
    "gateway_calls_limited",
    "Calls refused by a limit: unauthenticated, concurrency, rate, records, certificates",
    ["limit"],
    registry=REGISTRY,
)
_clock_difference = Gauge(
    "gateway_redis_clock_difference_seconds",
    "How far Redis's clock, by which all gateways go, is ahead of this machine's",
    registry=REGISTRY,
)
_part_up = Gauge(
    "gateway_part_up",
    "Whether a part was well when it was last looked at, as on /readyz",
    ["part", "kind"],
    registry=REGISTRY,
)
_ready = Gauge("gateway_ready", "Whether /readyz is 200", registry=REGISTRY)
_configuration_refused = Gauge(
    "gateway_configuration_refused",
    "Whether the last reload was refused, so that the process runs on a former configuration",
    registry=REGISTRY,
)


# To look the series up by its labels takes longer than to count. These are never cleared.
_dns_exchanges_of = cache(_dns_exchanges.labels)
_dns_seconds_of = cache(_dns_seconds.labels)

moment: Final = time.perf_counter
"""A count of seconds, for taking the length of something and nothing else.

The event loop's own time stands still between two rounds, and uvloop's counts milliseconds.
"""


def call_ended(method: str, outcome: str, seconds: float) -> None:
    """A call was answered. `method`: one of `CALL_METHODS`, or `UNKNOWN` for any other.

    `outcome`: its status, `ok` for an answer without one, or a code.
    """
    _calls.count(method, outcome)
    _call_seconds.observe(method, seconds)


def dns_asked(zone: str, kind: str, outcome: str, seconds: float) -> None:
    """A message went to a server of a configured zone. `kind`: query, update or transfer."""
    _dns_exchanges_of(zone, kind, outcome).inc()
    _dns_seconds_of(zone, kind).observe(seconds)


def acme_asked(authority: str, kind: str, outcome: str, seconds: float) -> None:
    """A request went to an authority of the configuration, called by its name."""
    _acme_calls.labels(authority, kind, outcome).inc()
    _acme_seconds.labels(authority, kind).observe(seconds)


def budgets_seen(budgets: Iterable[tuple[str, str, int, int]]) -> None:
    """Every figure of an account that there is now: authority, limit, what is unused, the whole."""
    _budget_left.clear()  # a reload may have taken an authority away, or its limit
    _budget_size.clear()
    for authority, limit, left, size in budgets:
        _budget_left.labels(authority, limit).set(left)
        _budget_size.labels(authority, limit).set(size)


def orders_held(held: Iterable[tuple[str, str, bool]]) -> None:
    """Every authority, and whether it gets no order for now, by `authority` or `suspended`."""
    _orders_held.clear()
    for authority, by, is_held in held:
        _orders_held.labels(authority, by).set(is_held)


def issuance_ended(authority: str, outcome: str) -> None:
    """An issuance ended: `issued`, `released`, or with the reason of its failure."""
    _issuances_ended.labels(authority, outcome).inc()


def issued_within(authority: str, seconds: float) -> None:
    """A certificate came that long after it was requested."""
    _issuance_seconds.labels(authority).observe(seconds)


def lease_lost() -> None:
    """A hostname that was worked on is another's now, or was released."""
    _leases_lost.inc()


def queue_seen(late_seconds: float) -> None:
    """The hostname that is due the longest has waited that long; 0 with none."""
    _queue_late.set(late_seconds)


def redis_asked(command: str, seconds: float) -> None:
    """Redis was sent something, whatever came of it."""
    _redis_seconds.observe(command, seconds)


def redis_failed(fault: str) -> None:
    """Redis gave no answer: `timeout`, or `connection`."""
    _redis_faults.labels(fault).inc()


def audit_written(entries: int) -> None:
    """Redis has taken entries of the audit trail."""
    _audit_entries.labels("written").inc(entries)


def audit_lost(entries: int) -> None:
    """Entries of the audit trail will never be written."""
    _audit_entries.labels("lost").inc(entries)


def spans_sent(count: int) -> None:
    """A collector has taken spans."""
    _spans.labels("sent").inc(count)


def spans_lost(count: int) -> None:
    """Spans came to no collector."""
    _spans.labels("lost").inc(count)


def limit_reached(limit: str) -> None:
    """A call was refused by a limit, one of those that the figure names."""
    _limited.labels(limit).inc()


def clock_differs(seconds: float) -> None:
    """Redis's clock is so far ahead of this machine's."""
    _clock_difference.set(seconds)


def health_seen(parts: Iterable[tuple[str, str, bool]], *, ready: bool) -> None:
    """Every part there is now, by name and kind, whether each is up, and the service ready."""
    _part_up.clear()  # a reload may have taken a zone away
    for part, kind, up in parts:
        _part_up.labels(part, kind).set(up)
    _ready.set(ready)


def configuration_refused(*, is_refused: bool) -> None:
    """A reload has ended: whether its configuration was not taken."""
    _configuration_refused.set(is_refused)


def known_ahead(zones: Iterable[str], authorities: Iterable[str]) -> None:
    """Begin the counters of this configuration at 0: a rate needs a value before the first fault.

    A counter that first appears with the value 1 has not increased, as Prometheus sees it.
    """
    for method in (*CALL_METHODS, UNKNOWN):
        for code in ("internal", "unavailable", "overloaded"):
            _calls.begin(method, code)
    for zone in zones:
        for kind in ("query", "update"):
            _dns_exchanges.labels(zone, kind, "NOERROR")
    for authority in authorities:
        for outcome in ("issued", "issuance-failed"):
            _issuances_ended.labels(authority, outcome)
    for fault in ("timeout", "connection"):
        _redis_faults.labels(fault)
    for limit in ("unauthenticated", "concurrency", "rate", "records", "certificates"):
        _limited.labels(limit)
    _audit_entries.labels("lost")
