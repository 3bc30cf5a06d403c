"""Judges what was seen of a process under load: pure. Only the last half of a run is looked at.

The first half is for caches, pools and the allocator to fill.

What leaks never goes, while all else comes and goes with the work under way. So of memory, open
descriptors and threads the *least* of the last quarter is compared with the least of the quarter
before. It may be higher by `FLAT_SHARE` of the memory, or `FLAT_BYTES` where that is more, and by
`FLAT_COUNT` descriptors or threads: a pool grows when more calls than ever come together.

Called by `soak`; its tests state the rules by example.
"""

from collections.abc import Sequence
from dataclasses import dataclass

FLAT_SHARE = 0.01
FLAT_BYTES = 1 << 20
FLAT_COUNT = 5
FEWEST_SAMPLES = 4
"""In each of the two quarters."""


@dataclass(frozen=True, slots=True)
class Sample:
    """What a process had at one moment; `at` and `cpu_seconds` count from any beginning."""

    at: float
    rss_bytes: int
    descriptors: int
    threads: int
    cpu_seconds: float


@dataclass(frozen=True, slots=True)
class Rises:
    """By how much the least of each is higher in the last quarter, which is `seconds` long."""

    seconds: float
    rss_bytes: int
    rss_allowed: float
    descriptors: int
    threads: int


def rises(samples: Sequence[Sample]) -> Rises | None:
    """The rises; None with too few samples to tell any."""
    quarter = len(samples) // 4
    if quarter < FEWEST_SAMPLES:
        return None
    before, last = samples[-2 * quarter : -quarter], samples[-quarter:]
    least = min(sample.rss_bytes for sample in before)
    return Rises(
        seconds=last[-1].at - last[0].at,
        rss_bytes=min(sample.rss_bytes for sample in last) - least,
        rss_allowed=max(FLAT_BYTES, FLAT_SHARE * least),
        descriptors=min(sample.descriptors for sample in last)
        - min(sample.descriptors for sample in before),
        threads=min(sample.threads for sample in last) - min(sample.threads for sample in before),
    )


def faults_of(samples: Sequence[Sample], failed: int, calls: int) -> list[str]:
    """All that speaks against the process, each in a sentence; none when it stood the load."""
    faults = []
    if calls == 0:
        faults.append("no call was answered")
    if failed:
        faults.append(f"{failed} of {calls} calls were not answered as they should be")
    seen = rises(samples)
    if seen is None:
        return [*faults, "there are too few samples to judge memory and descriptors by"]
    if seen.rss_bytes > seen.rss_allowed:
        faults.append(
            f"memory grew by {seen.rss_bytes // 1024} KiB within {seen.seconds:.0f} s, "
            f"{seen.rss_allowed / 1024:.0f} KiB are allowed"
        )
    for what, grown in (("open descriptors", seen.descriptors), ("threads", seen.threads)):
        if grown > FLAT_COUNT:
            faults.append(
                f"{what} grew by {grown} within {seen.seconds:.0f} s, {FLAT_COUNT} are allowed"
            )
    return faults
