"""The census as Prometheus sees it, and how old it is by now.

Responsible for the names of the figures over all hostnames. Every process shows the same ones, so
queries take the largest of all (`max by`), and never their sum. Without a census there are none.
Must not: read Redis. Called by `gateway.figures`, which tells it what was last counted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from gateway import measures

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from gateway.certificates.census import Census


class CensusFigures(Collector):
    """What was last counted, as gauges."""

    def __init__(self) -> None:
        self._census: Census | None = None
        self._now_ms: Callable[[], int] = lambda: 0

    def tell(self, census: Census | None, now_ms: Callable[[], int]) -> None:
        """Show this census from now on; `now_ms` is the clock that its times are of."""
        self._now_ms = now_ms
        self._census = census

    def describe(self) -> Iterator[GaugeMetricFamily]:
        """Nothing: the names are no others than `collect` has, and are not asked for."""
        return iter(())

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """The gauges, as of now."""
        census, now_ms = self._census, self._now_ms()
        if census is None:
            return
        age = _seconds_since(census.taken_at_ms, now_ms)
        yield _one("census_age_seconds", "Since the last census began", age)
        yield _one("census_seconds", "How long it took to count", census.took_ms / 1000)
        holds = {
            "anything": census.documents,
            "record": census.records,
            "claim": census.claims,
            "unreadable": census.unreadable,
        }
        yield _by("documents", "Hostnames by what is stored of them", "holds", holds)
        yield from _of_certificates(census)
        yield _by("issuances", "Issuances that are not finished", "state", census.issuances)
        oldest_ms = census.oldest_issuance_ms
        yield _one(
            "issuance_oldest_age_seconds",
            "How long the oldest of them is under way, or waits",
            None if oldest_ms is None else _seconds_since(oldest_ms, now_ms),
        )
        yield _by("debts", "What is still to be cleaned up outside", "kind", census.debts)


FIGURES = CensusFigures()
"""Those of this process; shown with all other figures."""

measures.REGISTRY.register(FIGURES)


def _of_certificates(census: Census) -> Iterator[GaugeMetricFamily]:
    yield _by(
        "certificates", "Certificates by the days they have left", "left", census.certificates
    )
    yield _one(
        "certificate_earliest_end_timestamp_seconds",
        "When the first of all certificates that are still valid ends, as Unix time",
        None if census.earliest_end_ms is None else census.earliest_end_ms / 1000,
    )
    yield _one(
        "certificates_renewal_due",
        "Certificates past the time of their renewal, and not renewed yet",
        census.renewals_due,
    )
    yield _one(
        "certificates_near_end",
        "Those among them with less than a tenth of their lifetime left, or expired",
        census.near_end,
    )


def _seconds_since(at_ms: int, now_ms: int) -> float:
    return max(0, now_ms - at_ms) / 1000


def _one(name: str, text: str, value: float | None) -> GaugeMetricFamily:
    """None: there is no such thing now, and the figure has a name only."""
    return GaugeMetricFamily(f"gateway_{name}", text, value=value)


def _by(name: str, text: str, label: str, values: Mapping[str, int]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(f"gateway_{name}", text, labels=[label])
    for key, value in values.items():
        family.add_metric([key], value)
    return family
