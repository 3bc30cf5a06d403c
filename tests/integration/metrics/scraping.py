"""Scrapes a gateway's metrics listener, as Prometheus does, and reads single figures.

Used by the tests of this folder. Counters of a gateway that was forked may not begin at 0: tests
compare two scrapes.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import httpx
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from tests.integration.service.calling import NO_TLS
from tests.lab.process import wait_until

CLOCK_ERROR_SECONDS = 0.5


@dataclass(frozen=True)
class Page:
    """One scrape. A figure is the sum of all series with these labels; 0 without any."""

    text: str

    def figure(self, name: str, **labels: str) -> float:
        return sum(value for found, value in self.series(name) if labels.items() <= found.items())

    def has(self, name: str, **labels: str) -> bool:
        return any(labels.items() <= found.items() for found, _ in self.series(name))

    @cached_property
    def _families(self) -> list[Metric]:
        return list(text_string_to_metric_families(self.text))

    def series(self, name: str) -> list[tuple[Mapping[str, str], float]]:
        return [
            (sample.labels, sample.value)
            for family in self._families
            for sample in family.samples
            if sample.name == name
        ]

    def names(self) -> set[str]:
        """The names that samples have or, where there are none now, would have."""
        found: set[str] = set()
        for family in self._families:
            endings = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count")}
            found |= {family.name + ending for ending in endings.get(family.type, ("",))}
        return found

    def labels(self) -> dict[str, set[str]]:
        """The names of all samples, each with the labels that it has."""
        found: dict[str, set[str]] = {}
        for family in self._families:
            for sample in family.samples:
                found.setdefault(sample.name, set()).update(sample.labels)
        return found


@dataclass(frozen=True)
class Scraper:
    """The metrics listener of one process."""

    port: int

    def get(self, path: str, accept: str | None = None, method: str = "GET") -> httpx.Response:
        headers = {} if accept is None else {"Accept": accept}
        return httpx.request(
            method,
            f"http://127.0.0.1:{self.port}{path}",
            headers=headers,
            trust_env=False,
            verify=NO_TLS,
            timeout=15,
        )

    def page(self) -> Page:
        answer = self.get("/metrics")
        assert answer.status_code == 200
        return Page(answer.text)

    def figure(self, name: str, **labels: str) -> float:
        return self.page().figure(name, **labels)

    def counted(self) -> Page:
        """A page on which all hostnames were counted after this was called."""
        name = "gateway_census_age_seconds"
        began = time.monotonic()
        found: list[Page] = []

        def is_new() -> bool:
            # A census that is younger than this wait was when the page was asked for began within
            # it. Its age goes by Redis's clock, which the gateway knows to some milliseconds.
            waited_seconds = time.monotonic() - began
            found[:] = [self.page()]
            age_seconds = found[0].figure(name)
            return found[0].has(name) and age_seconds + CLOCK_ERROR_SECONDS < waited_seconds

        wait_until(is_new, "all is counted", pause_seconds=0.1)
        return found[0]

    def until(self, condition: Callable[[Page], bool], what: str) -> Page:
        """The first page of which it is true."""
        found: list[Page] = []

        def is_so() -> bool:
            found[:] = [self.page()]
            return condition(found[0])

        wait_until(is_so, what, pause_seconds=0.1)
        return found[0]
