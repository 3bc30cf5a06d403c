"""The figures of a process, without one."""

from collections.abc import Iterator

import pytest
from hypothesis import given, strategies as st
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest

from gateway import measures
from gateway.durations import Counts, Durations


@pytest.mark.parametrize("method", [*sorted(measures.CALL_METHODS), measures.UNKNOWN])
def test_faults_of_every_method_are_counted_from_0_on(method: str) -> None:
    measures.known_ahead((), ())
    labels = {"method": method, "outcome": "internal"}
    # Other tests of this process may have counted.
    assert measures.REGISTRY.get_sample_value("gateway_calls_total", labels) is not None


@pytest.fixture
def budgets() -> Iterator[None]:
    """Budgets that nobody else sees: gateways are forked off this process."""
    yield
    measures.budgets_seen([])
    measures.orders_held([])


@pytest.mark.usefixtures("budgets")
def test_budgets_and_holds_are_those_of_the_last_look() -> None:
    measures.budgets_seen([("former", "orders", 3, 5)])
    measures.orders_held([("former", "authority", True)])
    measures.budgets_seen([("current", "orders", 2, 5)])
    measures.orders_held([("current", "authority", False)])
    for name, value in (("budget_left", 2), ("budget_size", 5), ("orders_held", 0)):
        assert of_account(name, "current") == value
        assert of_account(name, "former") is None


def of_account(name: str, authority: str) -> float | None:
    by = {"by": "authority"} if name == "orders_held" else {"limit": "orders"}
    labels = {"authority": authority, **by}
    return measures.REGISTRY.get_sample_value(f"gateway_acme_{name}", labels)


@given(st.lists(st.tuples(st.sampled_from(["a", 'b"\\']), st.floats(0, 20)), max_size=30))
def test_durations_are_shown_as_the_librarys_own_histogram_shows_them(
    seen: list[tuple[str, float]],
) -> None:
    name, words, bounds = "some_seconds", "How long", (0.005, 0.5, 1.0, 10.0)
    ours, theirs = CollectorRegistry(), CollectorRegistry()
    durations = Durations(name, words, "of", buckets=bounds, registry=ours)
    histogram = Histogram(name, words, ["of"], buckets=bounds, registry=theirs)
    for value, seconds in seen:
        durations.observe(value, seconds)
        histogram.labels(value).observe(seconds)
    assert generate_latest(ours) == generate_latest(theirs)


@given(st.lists(st.sampled_from([("a", "ok"), ('b"\\', "ok"), ("a", "refused")]), max_size=30))
def test_counts_are_shown_as_the_librarys_own_counter_shows_them(
    seen: list[tuple[str, str]],
) -> None:
    name, words, labels = "some", "How many", ["of", "outcome"]
    ours, theirs = CollectorRegistry(), CollectorRegistry()
    counts = Counts(name, words, labels, registry=ours)
    counter = Counter(name, words, labels, registry=theirs)
    counts.begin("a", "ok")
    counter.labels("a", "ok")
    for values in seen:
        counts.count(*values)
        counter.labels(*values).inc()
    assert generate_latest(ours) == generate_latest(theirs)
