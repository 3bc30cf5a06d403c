"""The recorder in a process of one's own: what it leaves out, and that it raises nothing."""

import asyncio
import string
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
import structlog
from hypothesis import given, settings, strategies as st

from gateway import tracing
from gateway.config import TracesSettings
from gateway.trace_export import LONGEST_ATTRIBUTE, QUEUE, TraceExport
from tests.lab.otlp import Collector, Span

CLOSING_SECONDS = 30.0


class Recording:
    """A collector, and the export that sends to it."""

    def __init__(self, collector: Collector, **changes: Any) -> None:
        self._collector = collector
        self._export = TraceExport(TracesSettings(endpoint=collector.url, **changes), "one")
        tracing.record_with(self._export.recorder)

    async def ended(self) -> list[Span]:
        """Send what waits; every span."""
        tracing.record_with(None)
        await self._export.close(CLOSING_SECONDS)
        return self._collector.spans


@pytest.fixture
async def recording() -> AsyncIterator[Recording]:
    with Collector() as collector:
        recording = Recording(collector)
        yield recording
        await recording.ended()


async def test_text_of_an_exception_is_left_out(recording: Recording) -> None:
    with pytest.raises(ValueError, match="hunter2"), tracing.call((), "1", "192.0.2.1"):
        raise ValueError("hunter2")
    (span,) = await recording.ended()
    assert span.has_failed
    assert span.attributes["error.type"] == "ValueError"
    assert "hunter2" not in repr(span)


@pytest.mark.parametrize(
    ("outcome", "has_failed"),
    [("internal", True), ("unavailable", True), ("unauthorized", False), ("ok", False)],
)
async def test_call_has_failed_where_the_gateway_has(
    recording: Recording, outcome: str, *, has_failed: bool
) -> None:
    with tracing.call((), "1", "192.0.2.1") as span:
        tracing.call_ended(span, "getGatewayClientContext", outcome)
    (sent,) = await recording.ended()
    assert (sent.name, sent.has_failed) == ("getGatewayClientContext", has_failed)


async def test_what_is_to_be_forgotten_is_not_sent(recording: Recording) -> None:
    with tracing.call((), "1", "192.0.2.1") as span:
        span.forget()
    with tracing.work("relay.example.test"):
        pass
    assert [each.name for each in await recording.ended()] == ["work"]


async def test_nothing_is_below_what_has_ended(recording: Recording) -> None:
    tracing.redis_asked("GET", 1, ("redis.example.test", 6379), 0.1)
    with tracing.work("relay.example.test"):
        tracing.redis_asked("GET", 3, ("redis.example.test", 6379), 0.1, "timeout")
        assert tracing.trace_id() is not None
    tracing.redis_asked("SET", 1, ("redis.example.test", 6379), 0.1)
    assert tracing.trace_id() is None
    asked, work = await recording.ended()
    assert (asked.parent, asked.trace) == (work.id, work.trace)
    assert asked.has_failed
    assert asked.attributes == {
        "db.system.name": "redis",
        "db.operation.name": "GET",
        "db.operation.batch.size": 3,
        "server.address": "redis.example.test",
        "server.port": 6379,
        "error.type": "timeout",
    }


@pytest.mark.parametrize(
    ("outcome", "attribute", "has_failed"),
    [
        ("NOERROR", "gateway.dns.rcode", False),
        ("SERVFAIL", "gateway.dns.rcode", False),
        ("3841", "gateway.dns.rcode", False),
        ("NoReply", "error.type", True),
        ("cancelled", "error.type", True),
    ],
)
async def test_dns_exchange_has_failed_without_an_answer(
    recording: Recording, outcome: str, attribute: str, *, has_failed: bool
) -> None:
    with tracing.work("relay.example.test"):
        server = "192.0.2.53", 53
        tracing.dns_asked("example.test", "query", "a.test", server, "udp", outcome, 0.1)
    asked, _ = await recording.ended()
    assert asked.has_failed == has_failed
    told = {"gateway.dns.rcode", "error.type"} & asked.attributes.keys()
    assert {each: asked.attributes[each] for each in told} == {attribute: outcome}


async def test_acme_call_has_failed_with_the_authoritys_fault(recording: Recording) -> None:
    with tracing.work("relay.example.test"):
        tracing.acme_asked("ca.example.test", "newOrder", "rate-limited", 429, 0.1)
    asked, _ = await recording.ended()
    assert asked.has_failed
    assert asked.attributes["error.type"] == "rate-limited"
    assert asked.attributes["http.response.status_code"] == 429


async def test_worker_begins_a_trace_of_its_own_also_within_a_call(recording: Recording) -> None:
    with tracing.call((), "1", "192.0.2.1"), tracing.work("relay.example.test"):
        pass
    work, call = await recording.ended()
    assert work.parent == ""
    assert work.trace != call.trace


async def test_long_text_is_cut(recording: Recording) -> None:
    with tracing.work("a" * (LONGEST_ATTRIBUTE + 1)):
        pass
    (span,) = await recording.ended()
    assert span.attributes["gateway.hostname"] == "a" * LONGEST_ATTRIBUTE


async def test_more_spans_than_are_kept_lose_the_oldest() -> None:
    collector = Collector()
    recording = Recording(collector)
    # None is sent before the collector is there: the first batch is full, and repeated.
    for number in range(3 * QUEUE):
        with tracing.work(str(number)):
            pass
    collector.start()
    spans = await recording.ended()
    collector.stop()
    numbers = [int(span.attributes["gateway.hostname"]) for span in spans]
    assert numbers[-1] == 3 * QUEUE - 1
    assert 0 < len(numbers) < 3 * QUEUE


async def test_redirect_is_told_and_is_no_success() -> None:
    with Collector() as collector, structlog.testing.capture_logs() as lines:
        collector.answers_with = 307
        recording = Recording(collector)
        with tracing.work("relay.example.test"):
            pass
        await recording.ended()
    (told,) = [line for line in lines if line["event"] == "traces are not taken"]
    assert "redirects" in told["detail"]


@pytest.fixture(scope="module")
def export() -> Iterator[TraceExport]:
    with Collector() as collector:
        export = TraceExport(TracesSettings(endpoint=collector.url), "one")
        yield export
        asyncio.run(export.close(CLOSING_SECONDS))


HEADERS = st.dictionaries(
    st.sampled_from(["traceparent", "tracestate"]),
    st.one_of(
        st.text(alphabet=st.characters(max_codepoint=255)),
        st.text(alphabet=string.hexdigits + "-=,@", max_size=600),
        st.builds("00-{}-{}-{}".format, *[st.text(alphabet=string.hexdigits, max_size=33)] * 3),
    ),
)


@settings(max_examples=50)
@given(headers=HEADERS, name=st.text(), number=st.integers())
def test_whatever_comes_in_nothing_is_raised(
    export: TraceExport, headers: dict[str, str], name: str, number: int
) -> None:
    tracing.record_with(export.recorder)
    try:
        raw = [(key.encode(), value.encode("latin-1")) for key, value in headers.items()]
        with tracing.call(raw, name, name) as span:
            tracing.admitted(name)
            tracing.speaks_for(name, name)
            with tracing.step(name, name, name) as step:
                tracing.step_ended(step, name, name)
            tracing.dns_asked(name, name, name, (name, number), name, name, 0.1)
            tracing.acme_asked(name, name, name, number, 0.1)
            tracing.redis_asked(name, number, (name, number), 0.1, name)
            tracing.call_ended(span, name, name)
    finally:
        tracing.record_with(None)
