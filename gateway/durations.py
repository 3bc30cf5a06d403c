"""A histogram of durations that is counted many times for each call: without locks or checks.

Shown as prometheus_client's own Histogram is, which takes five times as long to count. Must not: be
counted by more than one thread (the event loop's), else a count may be lost. Made by `measures`.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

from prometheus_client.core import HistogramMetricFamily
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from prometheus_client import CollectorRegistry


class Series:
    """The durations under one label; seconds."""

    __slots__ = ("_bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        """By bucket; the last one is of those beyond every bound."""
        self.total = 0.0

    def observe(self, seconds: float) -> None:
        """Count one."""
        self.counts[bisect_left(self._bounds, seconds)] += 1
        self.total += seconds


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
        self._series: dict[str, Series] = {}
        registry.register(self)

    def of(self, value: str) -> Series:
        """The series of a label's value, one of a known few."""
        series = self._series.get(value)
        if series is None:
            series = self._series[value] = Series(self._bounds)
        return series

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
