"""What callers have seen: how long each kind of call took, and what was not as it should be. Pure.

Called by `lanes`, which fill tallies, and by whoever adds them up and prints them.
"""

import statistics
from collections import defaultdict
from dataclasses import dataclass, field

SHOWN_FAILURES = 20


@dataclass
class Tally:
    """`seconds` by kind of call; `failures` are the first of the `failed` calls, in words.

    `reissues`: seconds from a release to the next certificate, over all the calls in between.
    """

    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    failed: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    failures: list[str] = field(default_factory=list)
    reissues: list[float] = field(default_factory=list)

    @property
    def calls(self) -> int:
        """How many calls were made, whatever came of them."""
        return sum(map(len, self.seconds.values()))

    @property
    def all_failed(self) -> int:
        """How many of them failed."""
        return sum(self.failed.values())

    def note(self, kind: str, seconds: float, failure: str | None) -> None:
        """Count one call."""
        self.seconds[kind].append(seconds)
        if failure is not None:
            self.fail(kind, failure)

    def fail(self, kind: str, failure: str) -> None:
        """Count a failure."""
        self.failed[kind] += 1
        if len(self.failures) < SHOWN_FAILURES:
            self.failures.append(f"{kind}: {failure}")

    def add(self, other: "Tally") -> None:
        """Count what another has counted."""
        for kind, seconds in other.seconds.items():
            self.seconds[kind] += seconds
        for kind, count in other.failed.items():
            self.failed[kind] += count
        self.reissues += other.reissues
        self.failures = [*self.failures, *other.failures][:SHOWN_FAILURES]

    def __reduce__(self) -> tuple[object, ...]:
        # Between processes without its factories, which cannot be pickled.
        return _restored, (
            dict(self.seconds),
            dict(self.failed),
            self.failures,
            self.reissues,
        )


def _restored(
    seconds: dict[str, list[float]],
    failed: dict[str, int],
    failures: list[str],
    reissues: list[float],
) -> Tally:
    tally = Tally(failures=failures, reissues=reissues)
    tally.seconds.update(seconds)
    tally.failed.update(failed)
    return tally


@dataclass(frozen=True, slots=True)
class Latency:
    """Milliseconds of one kind of call."""

    count: int
    p50: float
    p95: float
    p99: float
    longest: float

    def as_json(self) -> dict[str, float]:
        """For the line that programs read."""
        return {
            "count": self.count,
            "p50Ms": round(self.p50, 2),
            "p95Ms": round(self.p95, 2),
            "p99Ms": round(self.p99, 2),
            "maxMs": round(self.longest, 2),
        }


def latency_of(seconds: list[float]) -> Latency:
    """The figures of some durations; there must be one at least."""
    milliseconds = sorted(each * 1000 for each in seconds)
    cuts = (
        statistics.quantiles(milliseconds, n=100, method="inclusive")
        if len(milliseconds) > 1
        else milliseconds * 99
    )
    return Latency(len(milliseconds), cuts[49], cuts[94], cuts[98], milliseconds[-1])


def latency_of_all(tally: Tally) -> Latency | None:
    """The figures of all kinds of call together; None when there was none."""
    every = [seconds for each in tally.seconds.values() for seconds in each]
    return latency_of(every) if every else None
