"""Figures that are counted many times for each call: without locks or checks.

Shown as prometheus_client's own Counter and Histogram are, which take five times as long to count.
Must not: be counted by more than one thread (the event loop's), else a count may be lost. Made by
`measures`.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from prometheus_client import CollectorRegistry


class Counts(Collector):
    """The counts of one name, by its labels' values, of a known few."""

    def __init__(
        self,
        name: str,
        documentation: str,
        labels: Sequence[str],
        *,
        registry: CollectorRegistry,
    ) -> None:
        self._name = name
        self._documentation = documentation
        self._labels = labels
        self._counts: dict[tuple[str, ...], int] = {}
        registry.register(self)

    def count(self, *values: str) -> None:
        """Count one more."""
        self._counts[values] = self._counts.get(values, 0) + 1

    def begin(self, *values: str) -> None:
        """Have a count begin at 0."""
        self._counts.setdefault(values, 0)

    def collect(self) -> Iterable[CounterMetricFamily]:
        """For the registry."""
        family = CounterMetricFamily(self._name, self._documentation, labels=self._labels)
        for values, count in list(self._counts.items()):
            family.add_metric(values, float(count))
        return [family]


class _Series:
    """The durations under one label; seconds."""

    __slots__ = ("counts", "total")

    def __init__(self, bounds: int) -> None:
        self.counts = [0] * (bounds + 1)
        """By bucket; the last one is of those beyond every bound."""
        self.total = 0.0


class Durations(Collector):
    """The series of one name, by one label. `buckets` are their upper bounds, from the lowest."""

    def __init__(
        self,
        name: str,
        documentation: str,
        label: str,
        *,
        buckets: Sequence[float],
        registry: CollectorRegistry,
    ) -> None:
        self._name = name
        self._documentation = documentation
        self._label = label
        self._bounds = tuple(buckets)
        self._named = [*map(floatToGoString, self._bounds), "+Inf"]
        self._series: dict[str, _Series] = {}
        registry.register(self)

    def observe(self, value: str, seconds: float) -> None:
        """Count one of a label's value, of a known few."""
        series = self._series.get(value)
        if series is None:
            series = self._series[value] = _Series(len(self._bounds))
        series.counts[bisect_left(self._bounds, seconds)] += 1
        series.total += seconds

    def collect(self) -> Iterable[HistogramMetricFamily]:
        """For the registry."""
        family = HistogramMetricFamily(self._name, self._documentation, labels=[self._label])
        for value, series in list(self._series.items()):
            reached, buckets = 0, []
            for name, count in zip(self._named, series.counts, strict=True):
                reached += count
                buckets.append((name, float(reached)))
            family.add_metric([value], buckets, series.total)
        return [family]
