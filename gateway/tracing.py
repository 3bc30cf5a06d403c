"""What is traced of this process: every span, its name and attributes; nothing unless told to.

Responsible for one small function for each thing that becomes a span. Calls, and the worker's turns
at a hostname, are roots; what happens within one of them is below it, and what nobody asked for (a
look at a part's health, a poll of the queues) is no span. Names of attributes are those of
OpenTelemetry's semantic conventions where these have one, else `gateway.…`. Hostnames are welcome
here, unlike in `measures`; tokens, keys and what a peer sent are not.
Must not: import OpenTelemetry, raise, judge or do I/O. Called by every layer of the server, from
any thread. What records is a `Recorder`: `gateway.trace_export` has the one that there is, and
without any each function ends at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol, Self

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import TracebackType

Attributes = dict[str, str | int]

_OWN_FAULTS: Final = frozenset({"internal", "unavailable"})
"""Outcomes of a call that are the gateway's fault; a refusal is the caller's own."""


class Span(Protocol):
    """Something that goes on for as long as its block."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...

    def note(self, attributes: Attributes, *, fault: str = "") -> None:
        """Add what is known by now; with a `fault` it has failed."""

    def rename(self, name: str) -> None:
        """Call it something else."""

    def forget(self) -> None:
        """Have nothing recorded of it."""


class Recorder(Protocol):
    """Where spans go. May be called by any thread, and raises nothing."""

    def call(self, name: str, attributes: Attributes, headers: Mapping[str, str]) -> Span:
        """A root, or what these HTTP headers say that it is below of."""

    def root(self, name: str, attributes: Attributes) -> Span:
        """A span below nothing."""

    def inner(self, name: str, attributes: Attributes) -> Span:
        """A span below the current one; none where none is recorded now."""

    def past(self, name: str, attributes: Attributes, seconds: float, fault: str) -> None:
        """A call to another server that has just ended, below the current span as `inner`."""

    def note(self, attributes: Attributes) -> None:
        """Add to the current span."""

    def trace_id(self) -> str | None:
        """The current span's trace, in hex; None where none is recorded."""


class _NoSpan:
    """What there is instead of a span while nothing is recorded."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        del kind, error, traceback

    def note(self, attributes: Attributes, *, fault: str = "") -> None:
        del attributes, fault

    def rename(self, name: str) -> None:
        del name

    def forget(self) -> None:
        pass


NO_SPAN: Final = _NoSpan()

_recorder: Recorder | None = None


def record_with(recorder: Recorder | None) -> None:
    """From now on spans go there; None ends it."""
    global _recorder
    _recorder = recorder


def is_recording() -> bool:
    """Whether there is anybody to tell: for whoever would have to find out first what to tell."""
    return _recorder is not None


def trace_id() -> str | None:
    """The trace to which what happens now belongs; None where none is recorded."""
    return None if _recorder is None else _recorder.trace_id()


def call(headers: Sequence[tuple[bytes, bytes]], request_id: str, remote: str) -> Span:
    """A call to this gateway, below its caller's own span where the headers name one.

    `headers` are those of the request, as they came, by names in lower case.
    """
    if _recorder is None:
        return NO_SPAN
    attributes: Attributes = {"gateway.request_id": request_id, "client.address": remote}
    # Of several of one name the first one counts.
    first = {name.decode("latin-1"): value.decode("latin-1") for name, value in reversed(headers)}
    return _recorder.call("call", attributes, first)


def call_ended(span: Span, method: str, outcome: str) -> None:
    """What was called, one of the contract's methods or `unknown`, and its status or code."""
    span.rename(method)
    fault = outcome if outcome in _OWN_FAULTS else ""
    span.note({"rpc.method": method, "gateway.outcome": outcome}, fault=fault)


def admitted(credential: str) -> None:
    """The current call is this credential's: its id, or `admin`."""
    if _recorder is not None:
        _recorder.note({"gateway.credential": credential})


def speaks_for(hostname: str, app_id: str) -> None:
    """The current call is about this hostname, which is its client's to use."""
    if _recorder is not None:
        _recorder.note({"gateway.hostname": hostname, "gateway.app_id": app_id})


def work(hostname: str) -> Span:
    """The worker's turn at a hostname, from its lease to the next rest."""
    if _recorder is None:
        return NO_SPAN
    return _recorder.root("work", {"gateway.hostname": hostname})


def step(command: str, issuance_id: str, state: str) -> Span:
    """One step of an issuance: what the worker was told to do, and in which state."""
    if _recorder is None:
        return NO_SPAN
    attributes: Attributes = {"gateway.issuance.id": issuance_id, "gateway.issuance.state": state}
    return _recorder.inner(f"step {command}", attributes)


def step_ended(span: Span, event: str, state: str) -> None:
    """What the step saw, and the state to which that led."""
    span.note({"gateway.issuance.event": event, "gateway.issuance.next_state": state})


def dns_asked(
    zone: str,
    kind: str,
    name: str,
    server: tuple[str, int],
    transport: str,
    outcome: str,
    seconds: float,
) -> None:
    """As `measures.dns_asked`: `name` was asked for, of a host and port, over udp or tcp."""
    if _recorder is None:
        return
    attributes: Attributes = {
        "gateway.zone": zone,
        "gateway.dns.kind": kind,
        "dns.question.name": name,
        "server.address": server[0],
        "server.port": server[1],
        "network.transport": transport,
    }
    # An rcode is an answer, whichever it is; the name of a fault stands for none.
    is_rcode = outcome.isupper() or outcome.isdigit()
    if is_rcode:
        attributes["gateway.dns.rcode"] = outcome
    _recorder.past(f"DNS {kind}", attributes, seconds, "" if is_rcode else outcome)


def acme_asked(authority: str, kind: str, outcome: str, status: int | None, seconds: float) -> None:
    """As `measures.acme_asked`; `status` is that of HTTP where there was an answer."""
    if _recorder is None:
        return
    attributes: Attributes = {
        "gateway.authority": authority,
        "gateway.acme.operation": kind,
        "gateway.outcome": outcome,
    }
    if status is not None:
        attributes["http.response.status_code"] = status
    _recorder.past(f"ACME {kind}", attributes, seconds, "" if outcome == "ok" else outcome)


def redis_asked(
    command: str, count: int, server: tuple[str, int], seconds: float, fault: str = ""
) -> None:
    """As `measures.redis_asked`: `count` commands at once, of which this one is the first."""
    if _recorder is None:
        return
    attributes: Attributes = {
        "db.system.name": "redis",
        "db.operation.name": command,
        "server.address": server[0],
    }
    if server[1]:
        attributes["server.port"] = server[1]
    if count > 1:
        attributes["db.operation.batch.size"] = count
    _recorder.past(f"Redis {command}", attributes, seconds, fault)
