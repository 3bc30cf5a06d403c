"""The rules by which a soak is judged, by example."""

from collections.abc import Callable

from tests.bench.judging import FLAT_BYTES, Sample, faults_of

MEBI = 1 << 20
SECONDS = 600


def samples(
    rss: Callable[[int], float] = lambda _: 90 * MEBI,
    descriptors: Callable[[int], int] = lambda _: 40,
    threads: Callable[[int], int] = lambda _: 8,
) -> list[Sample]:
    """One every 5 seconds, each figure by the second."""
    return [
        Sample(float(at), int(rss(at)), descriptors(at), threads(at), 0.0)
        for at in range(0, SECONDS, 5)
    ]


def judged(seen: list[Sample]) -> str:
    return " ".join(faults_of(seen, failed=0, calls=1000))


def test_a_process_that_stays_as_it_is_stands_the_load() -> None:
    assert judged(samples()) == ""


def test_growth_in_the_first_half_is_warming_up() -> None:
    assert judged(samples(rss=lambda at: 90 * MEBI + min(at, 290) * MEBI)) == ""


def test_memory_that_grows_until_the_end_is_told() -> None:
    assert "memory grew by" in judged(samples(rss=lambda at: 90 * MEBI + at * MEBI / 100))


def test_a_saw_tooth_of_memory_is_flat() -> None:
    assert judged(samples(rss=lambda at: 90 * MEBI + (at % 60) * MEBI)) == ""


def test_a_peak_that_does_not_end_is_no_leak_yet() -> None:
    assert judged(samples(rss=lambda at: (900 if at > 580 else 90) * MEBI)) == ""


def test_a_step_of_memory_within_what_is_allowed_is_flat() -> None:
    assert judged(samples(rss=lambda at: 90 * MEBI + (FLAT_BYTES / 2 if at > 450 else 0))) == ""


def test_descriptors_that_are_never_closed_are_told() -> None:
    assert "descriptors grew by" in judged(samples(descriptors=lambda at: 40 + at // 20))


def test_descriptors_that_come_and_go_are_no_growth() -> None:
    assert judged(samples(descriptors=lambda at: 40 + (at // 5 % 10) * at // 100)) == ""


def test_threads_that_never_end_are_told() -> None:
    assert "threads grew by" in judged(samples(threads=lambda at: 8 + at // 20))


def test_a_failed_call_is_told() -> None:
    assert faults_of(samples(), failed=1, calls=9) == [
        "1 of 9 calls were not answered as they should be"
    ]


def test_no_call_at_all_is_told() -> None:
    assert faults_of(samples(), failed=0, calls=0) == ["no call was answered"]


def test_too_few_samples_are_told() -> None:
    assert "too few samples" in judged(samples()[:3])
