"""Records spans with OpenTelemetry and sends them to a collector, by OTLP over HTTP.

Responsible for the one recorder there is, and for a sender that harms nothing: spans wait in a
bounded queue, the oldest are dropped when it is full, and a thread of its own sends them. That
a collector does not take them is told once, and so is that it takes them again. The library's own
words, one for each failure, are kept out of the log but for `debug`.
Must not: be imported unless traces are configured: its libraries are an extra of the package.
Called by `gateway.running`; `gateway.tracing` knows what is recorded.
"""

from __future__ import annotations

import logging
import os
import socket
import time
from typing import TYPE_CHECKING, Final, Self

import requests
import structlog
from opentelemetry import context, trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
from opentelemetry.trace import SpanKind, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from gateway import __version__, measures
from gateway.contract.faults import plain
from gateway.files import Reading
from gateway.tracing import NO_SPAN, Attributes, Span

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextvars import Token
    from types import TracebackType

    from opentelemetry.sdk.trace import ReadableSpan

    from gateway.config import TracesSettings

SEND_SECONDS: Final = 5.0
"""How long one batch is tried to be sent, repetitions included."""

QUEUE: Final = 4096
BATCH: Final = 512
EVERY_MS: Final = 1_000
LONGEST_ATTRIBUTE: Final = 512
_LONGEST_DETAIL: Final = 300
_SCOPE: Final = "gateway"

_log = structlog.get_logger(__name__)


class TraceExport:
    """The recorder of a process and what sends its spans, from now until `close`.

    `instance` tells this process from all others.
    """

    def __init__(self, settings: TracesSettings, instance: str) -> None:
        resource = Resource.create(
            {
                "service.name": settings.service_name,
                "service.version": __version__,
                "service.instance.id": instance,
                "host.name": socket.gethostname(),
                "process.pid": os.getpid(),
            }
        )
        self._provider = TracerProvider(
            ParentBased(TraceIdRatioBased(settings.sample)),
            resource,
            shutdown_on_exit=False,
            span_limits=SpanLimits(max_span_attribute_length=LONGEST_ATTRIBUTE),
        )
        self._provider.add_span_processor(
            BatchSpanProcessor(
                _Sender(settings),
                max_queue_size=QUEUE,
                schedule_delay_millis=EVERY_MS,
                max_export_batch_size=BATCH,
            )
        )
        self.recorder: Final = _Recorder(self._provider.get_tracer(_SCOPE, __version__))

    async def close(self, within_seconds: float) -> None:
        """Send what waits, as far as the time allows."""
        # The library waits half a minute for a collector that hangs.
        closing = Reading(self._provider.shutdown, within_seconds)
        try:
            await closing.result()
        except TimeoutError:
            pass  # it goes on while the process does; nobody waits for it
        except Exception:  # noqa: BLE001 (a fault of the library must not end a stop)
            _log.exception("traces broke at their end")


class _Recorder:
    """See `tracing.Recorder`."""

    def __init__(self, tracer: trace.Tracer) -> None:
        self._tracer = tracer
        self._propagator = TraceContextTextMapPropagator()

    def call(self, name: str, attributes: Attributes, headers: Mapping[str, str]) -> Span:
        above = self._propagator.extract(headers, Context())
        return self._begin(name, attributes, above, SpanKind.SERVER)

    def root(self, name: str, attributes: Attributes) -> Span:
        return self._begin(name, attributes, Context(), SpanKind.INTERNAL)

    def inner(self, name: str, attributes: Attributes) -> Span:
        if not trace.get_current_span().is_recording():
            return NO_SPAN
        return self._begin(name, attributes, context.get_current(), SpanKind.INTERNAL)

    def past(self, name: str, attributes: Attributes, seconds: float, fault: str) -> None:
        if not trace.get_current_span().is_recording():
            return
        ended_ns = time.time_ns()
        span = self._tracer.start_span(
            name,
            kind=SpanKind.CLIENT,
            attributes=attributes,
            start_time=ended_ns - round(seconds * 1e9),
        )
        _fail(span, fault)
        span.end(ended_ns)

    def note(self, attributes: Attributes) -> None:
        trace.get_current_span().set_attributes(attributes)

    def trace_id(self) -> str | None:
        span = trace.get_current_span()
        return (
            trace.format_trace_id(span.get_span_context().trace_id) if span.is_recording() else None
        )

    def _begin(self, name: str, attributes: Attributes, above: Context, kind: SpanKind) -> Span:
        # An exception's text may hold anything: its kind is enough, and the log has the rest.
        span = self._tracer.start_span(
            name,
            above,
            kind,
            attributes,
            record_exception=False,
            set_status_on_exception=False,
        )
        return _Block(span, above)


class _Block:
    """See `tracing.Span`: the current span while its block lasts."""

    def __init__(self, span: trace.Span, above: Context) -> None:
        self._span = span
        self._above = above
        self._token: Token[Context] | None = None
        self._is_forgotten = False

    def __enter__(self) -> Self:
        self._token = context.attach(trace.set_span_in_context(self._span, self._above))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        del error, traceback
        if self._token is not None:
            context.detach(self._token)
        if kind is not None:
            _fail(self._span, kind.__name__)
        # One that never ends is never sent.
        if not self._is_forgotten:
            self._span.end()

    def note(self, attributes: Attributes, *, fault: str = "") -> None:
        self._span.set_attributes(attributes)
        _fail(self._span, fault)

    def rename(self, name: str) -> None:
        self._span.update_name(name)

    def forget(self) -> None:
        self._is_forgotten = True


class _Sender(SpanExporter):
    """The library's exporter, and a word on it when a collector does not take what it sends."""

    def __init__(self, settings: TracesSettings) -> None:
        self._endpoint = settings.endpoint
        session = requests.Session()
        session.trust_env = False  # or a proxy or a netrc that is meant for something else is used
        session.hooks["response"].append(_refuse_redirect)
        self._exporter = OTLPSpanExporter(
            f"{settings.endpoint}/v1/traces",
            certificate_file=None if settings.ca_bundle is None else str(settings.ca_bundle),
            headers=settings.headers,
            timeout=SEND_SECONDS,
            compression=Compression.Gzip,
            session=session,
        )
        self._overheard = _Overheard()
        self._lost = 0

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send a batch; called by one thread at a time."""
        self._overheard.first = ""
        result = self._exporter.export(spans)
        if result is SpanExportResult.SUCCESS:
            measures.spans_sent(len(spans))
            if self._lost:
                _log.info("traces are taken again", endpoint=self._endpoint, lost=self._lost)
            self._lost = 0
            return result
        measures.spans_lost(len(spans))
        if not self._lost:
            detail = plain(self._overheard.first, _LONGEST_DETAIL)
            _log.warning("traces are not taken", endpoint=self._endpoint, detail=detail)
        self._lost += len(spans)
        return result

    def shutdown(self) -> None:
        """Give up what is being sent."""
        self._exporter.shutdown()  # type: ignore[no-untyped-call]


class _Overheard(logging.Handler):
    """Takes what the library says, and keeps the first of it since `first` was emptied."""

    def __init__(self) -> None:
        super().__init__()
        self.first = ""
        logger = logging.getLogger("opentelemetry")
        logger.handlers = [self]
        logger.propagate = False
        logger.setLevel(logging.WARNING)  # also where the gateway's own lines are only errors

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a line."""
        text = record.getMessage()
        if record.name.startswith("opentelemetry.exporter"):
            self.first = self.first or text
        _log.debug("opentelemetry says", text=text)


def _refuse_redirect(answer: requests.Response, **_: object) -> None:
    # The library takes a redirect for success, and nothing arrives anywhere.
    if 300 <= answer.status_code < 400:
        answer.close()
        raise requests.TooManyRedirects("it redirects elsewhere: traces.endpoint is to say where")


def _fail(span: trace.Span, fault: str) -> None:
    if fault:
        span.set_attribute("error.type", fault)
        span.set_status(StatusCode.ERROR)
