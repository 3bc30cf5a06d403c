"""Judges what was seen of a process under load: pure.

Memory is *flat* when the trend of the last half of the run, over that half, is a rise of no more
than `FLAT_SHARE` of the resident memory, or `FLAT_BYTES` where that is more: the first half is for
caches, pools and the allocator to fill. The trend is the median of the slopes between all pairs of
samples (Theil and Sen), which neither a peak nor a saw-tooth moves. Open descriptors and threads
are judged by the same trend, against `FLAT_COUNT`: work under way opens and closes some.

Called by `soak`; its tests state the rules by example.
"""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

FLAT_SHARE = 0.02
FLAT_BYTES = 2 << 20
FLAT_COUNT = 2.0
FEWEST_SAMPLES = 4


@dataclass(frozen=True, slots=True)
class Sample:
    """What a process had at one moment; `at` and `cpu_seconds` count from any beginning."""

    at: float
    rss_bytes: int
    descriptors: int
    threads: int
    cpu_seconds: float


@dataclass(frozen=True, slots=True)
class Trends:
    """The trends of a run's last half, as the rise within that half; `seconds` is its length."""

    seconds: float
    rss_bytes: float
    rss_allowed: float
    descriptors: float
    threads: float


def trends(samples: Sequence[Sample]) -> Trends | None:
    """The trends; None with too few samples to tell any."""
    if not samples:
        return None
    middle = (samples[0].at + samples[-1].at) / 2
    half = [sample for sample in samples if sample.at >= middle]
    if len(half) < FEWEST_SAMPLES:
        return None
    times = [sample.at for sample in half]
    resident = statistics.median(sample.rss_bytes for sample in half)
    return Trends(
        seconds=times[-1] - times[0],
        rss_bytes=rise(times, [sample.rss_bytes for sample in half]),
        rss_allowed=max(FLAT_BYTES, FLAT_SHARE * resident),
        descriptors=rise(times, [sample.descriptors for sample in half]),
        threads=rise(times, [sample.threads for sample in half]),
    )


def rise(times: Sequence[float], values: Sequence[float]) -> float:
    """By how much values rise from the first to the last time, by their trend."""
    points = list(zip(times, values, strict=True))
    slopes = [
        (later[1] - earlier[1]) / (later[0] - earlier[0])
        for earlier, later in combinations(points, 2)
        if later[0] > earlier[0]
    ]
    return statistics.median(slopes) * (times[-1] - times[0]) if slopes else 0.0


def faults_of(samples: Sequence[Sample], failed: int, calls: int) -> list[str]:
    """All that speaks against the process, each in a sentence; none when it stood the load."""
    faults = []
    if calls == 0:
        faults.append("no call was answered")
    if failed:
        faults.append(f"{failed} of {calls} calls were not answered as they should be")
    seen = trends(samples)
    if seen is None:
        return [*faults, "there are too few samples to judge memory and descriptors by"]
    if seen.rss_bytes > seen.rss_allowed:
        faults.append(
            f"memory grew by {seen.rss_bytes / 1024:.0f} KiB in the last {seen.seconds:.0f} s, "
            f"{seen.rss_allowed / 1024:.0f} KiB are allowed"
        )
    for what, grown in (("descriptors", seen.descriptors), ("threads", seen.threads)):
        if grown > FLAT_COUNT:
            faults.append(
                f"open {what} grew by {grown:.1f} in the last {seen.seconds:.0f} s, "
                f"{FLAT_COUNT:.0f} are allowed"
            )
    return faults
