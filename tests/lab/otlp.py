"""A collector of traces: takes OTLP over HTTP, as the OpenTelemetry Collector does.

Responsible for: every span that was sent to it, decoded, with its resource and the headers that it
came with; and for being away, or hanging, when a test says so.
Must not: make up a span.
Called by: tests of what a gateway traces.
"""

import gzip
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span as Sent, Status

from tests.lab.ports import LOOPBACK, free_port

Value = str | int | float | bool
Attributes = Mapping[str, Value]

_PATH = "/v1/traces"


@dataclass(frozen=True)
class Span:
    """A span as it came; ids in hex, `parent` is empty for one that is below nothing."""

    name: str
    trace: str
    id: str
    parent: str
    kind: str
    has_failed: bool
    attributes: Attributes
    resource: Attributes
    headers: Mapping[str, str]


class Collector:
    """A collector at `url`; a context manager that runs it. May be stopped and started again."""

    def __init__(self) -> None:
        self.port = free_port()
        self.url = f"http://{LOOPBACK}:{self.port}"
        self.answers_with = 200
        self._lock = threading.Lock()
        self._spans: list[Span] = []
        self._running: tuple[ThreadingHTTPServer, threading.Thread] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        del kind, error, traceback
        self.stop()

    def start(self) -> None:
        server = _Server(self)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        self._running = server, thread
        thread.start()

    def stop(self) -> None:
        """Be away: connections are refused. May be repeated."""
        if self._running is None:
            return
        server, thread = self._running
        self._running = None
        server.shutdown()
        thread.join()
        server.server_close()

    @property
    def spans(self) -> list[Span]:
        """All that have come so far, in the order of their ends as they were sent."""
        with self._lock:
            return list(self._spans)

    def take(self, body: bytes, headers: Mapping[str, str]) -> None:
        """Called by the server for each request."""
        request = ExportTraceServiceRequest.FromString(body)
        found = [
            _read(sent, _plain(of_resource.resource.attributes), headers)
            for of_resource in request.resource_spans
            for of_scope in of_resource.scope_spans
            for sent in of_scope.spans
        ]
        with self._lock:
            self._spans += found


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, collector: Collector) -> None:
        super().__init__((LOOPBACK, collector.port), _Handler)
        self.collector = collector


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        collector, status = self.server.collector, self.server.collector.answers_with
        if self.path != _PATH:
            status = 404
        if status == 200:
            is_packed = self.headers.get("Content-Encoding") == "gzip"
            headers = {name.lower(): value for name, value in self.headers.items()}
            collector.take(gzip.decompress(body) if is_packed else body, headers)
        answer = ExportTraceServiceResponse().SerializeToString()
        self.send_response(status)
        self.send_header("Content-Type", "application/x-protobuf")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the base's own name)
        """Say nothing: a test reads spans."""


def _read(sent: Sent, resource: Attributes, headers: Mapping[str, str]) -> Span:
    return Span(
        name=sent.name,
        trace=sent.trace_id.hex(),
        id=sent.span_id.hex(),
        parent=sent.parent_span_id.hex(),
        kind=Sent.SpanKind.Name(sent.kind).removeprefix("SPAN_KIND_").lower(),
        has_failed=sent.status.code == Status.STATUS_CODE_ERROR,
        attributes=_plain(sent.attributes),
        resource=resource,
        headers=headers,
    )


def _plain(attributes: Iterable[KeyValue]) -> dict[str, Value]:
    return {
        each.key: getattr(each.value, str(each.value.WhichOneof("value"))) for each in attributes
    }
