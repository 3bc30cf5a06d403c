"""`POST /typedrequest`: one envelope in, one envelope out, whatever happens in between.

Every answer is an envelope, within 10 seconds. What nobody foresaw becomes `internal` with an
incident id, and only the log says more. Each call has a request id, which all log lines on its way
have and the answer's header `X-Request-Id` too, and one line of its own once it has ended.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import structlog

from gateway import logs, measures, tracing, underway
from gateway.contract import (
    CallError,
    EnvelopeInvalid,
    Internal,
    Overloaded,
    RequestEnvelope,
    Unavailable,
    parse_request,
    render_response,
)
from gateway.contract.faults import quoted
from gateway.http.body import BODY_BOUND_SECONDS, collect_body, whole_body
from gateway.http.deadlines import Deadlines
from gateway.http.entrance import ShutOut, digest_shown
from gateway.http.listener.cycle import WHOLE_ANSWER
from gateway.store.connection import StoreUnavailable
from gateway.store.documents import Contended

if TYPE_CHECKING:
    from collections.abc import Iterator

    from starlette.types import Receive, Scope, Send

    from gateway.contract import Written
    from gateway.http.entrance import Entrance

CALL_BOUND_SECONDS: Final = 9.5
SHUT_OUT_BODY_SECONDS: Final = 2.0
"""So long a body may take from an address that only known tokens pass from."""

RETRY_AFTER_MS: Final = 1_000
_CUT_SHORT: Final = frozenset({408, 413})
"""What is left of the body is not read then, so the connection cannot carry another request."""
REQUEST_ID_HEADER: Final = "X-Request-Id"
_REQUEST_ID: Final = REQUEST_ID_HEADER.lower().encode()

_IDS_AT_ONCE: Final = 256
_ID_DIGITS: Final = 16

_log = structlog.get_logger(__name__)


class Answers(Protocol):
    """What carries calls out: `access.calls.Calls`."""

    async def answer(
        self, method_name: str, request: dict[str, object], digest: str | None
    ) -> Written:
        """The `response` object of a call, written; raises `CallError`."""


class _Answer(NamedTuple):
    """What goes back, but for its headers."""

    http_status: int
    body: bytes


class TypedRequestEndpoint:
    """The endpoint, an ASGI application by itself."""

    def __init__(self, calls: Answers, entrance: Entrance) -> None:
        self._calls = calls
        self._entrance = entrance
        self._under_way = 0
        self._request_ids = _ids()
        self._time_of_call = Deadlines(CALL_BOUND_SECONDS)
        self._time_of_body = Deadlines(BODY_BOUND_SECONDS)
        self._time_of_shut_out = Deadlines(SHUT_OUT_BODY_SECONDS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one HTTP request."""
        began, request_id = measures.moment(), next(self._request_ids)
        remote = self._entrance.remote_of(scope)
        underway.begin(request_id, remote)
        self._under_way += 1
        try:
            with tracing.call(scope["headers"], request_id, remote) as span:
                answer = await self._respond(scope, receive, remote, began, span)
        finally:
            self._under_way -= 1
        await _send(scope, send, answer, request_id)

    async def _respond(
        self, scope: Scope, receive: Receive, remote: str, began: float, span: tracing.Span
    ) -> _Answer:
        voucher: str | None = None
        envelope: RequestEnvelope | None = None
        digest: str | None = None
        response: Written | None = None
        refusal: CallError | None = None
        try:
            body = await self._body(scope, receive, remote)
            if self._entrance.is_shut_out(remote):
                voucher = await self._entrance.demand_calm(remote, body)
            envelope = parse_request(body)
            digest = digest_shown(envelope)
            if voucher is not None:
                await self._entrance.demand_own(remote, digest, voucher)
            response = await self._answer(envelope, remote, digest)
        except CallError as error:
            refusal = error
        self._entrance.note(remote, voucher, digest, refusal)
        seconds = measures.moment() - began
        _tell_end(envelope, response, refusal, seconds, span, is_alone=self._under_way == 1)
        return _render(envelope, response, refusal)

    async def _body(self, scope: Scope, receive: Receive, remote: str) -> bytes:
        try:
            if scope["method"] != "POST":
                raise EnvelopeInvalid("The method must be POST.", 405)
            body = whole_body(scope)
            if body is None:
                is_shut_out = self._entrance.is_shut_out(remote)
                bound = self._time_of_shut_out if is_shut_out else self._time_of_body
                body = await collect_body(receive, bound.within())
            return body
        except EnvelopeInvalid as fault:
            if fault.http_status not in _CUT_SHORT:
                await self._entrance.demand_calm(remote, b"")
            raise

    async def _answer(self, envelope: RequestEnvelope, remote: str, digest: str | None) -> Written:
        try:
            with self._time_of_call.within(), self._entrance.place(remote, digest) as place:
                if place.waits:
                    await place.turn()
                return await self._calls.answer(envelope.method, envelope.request, digest)
        except CallError:
            raise
        except StoreUnavailable as error:
            _log.warning("call unavailable", method=envelope.method, error=str(error))
            raise Unavailable(RETRY_AFTER_MS) from error
        except (Contended, TimeoutError) as error:
            raise Overloaded(RETRY_AFTER_MS) from error
        except Exception as error:
            incident_id = secrets.token_hex(6)
            _log.exception("call broke", incident_id=incident_id, method=envelope.method)
            raise Internal(incident_id) from error


def _ids() -> Iterator[str]:
    """Request ids without end: of randomness for many, since each draw is a system call."""
    while True:
        digits = secrets.token_hex(_IDS_AT_ONCE * _ID_DIGITS // 2)
        for start in range(0, len(digits), _ID_DIGITS):
            yield digits[start : start + _ID_DIGITS]


def _tell_end(
    envelope: RequestEnvelope | None,
    response: Written | None,
    refusal: CallError | None,
    seconds: float,
    span: tracing.Span,
    *,
    is_alone: bool,
) -> None:
    """Say how a call ended: the one place where it is logged, counted and traced.

    `is_alone`: no other call is under way, so its line is written before it is answered.
    """
    called = measures.UNKNOWN if envelope is None else envelope.method
    method = called if called in measures.CALL_METHODS else measures.UNKNOWN
    # An unknown method's name is any text: a token by mistake, escapes for a terminal.
    shown = method if called == method else quoted(called)
    milliseconds, may_wait = round(seconds * 1000, 1), not is_alone
    if refusal is None:
        outcome = "ok" if response is None else response.status
        logs.call_ended("call answered", shown, "status", outcome, milliseconds, may_wait=may_wait)
    elif isinstance(refusal, ShutOut):
        outcome = refusal.code  # no line for each, nor a span: they come by the thousand
        span.forget()
    else:
        outcome = refusal.code
        logs.call_ended("call refused", shown, "code", outcome, milliseconds, may_wait=may_wait)
        _log.debug("call refused because", text=refusal.text)
    measures.call_ended(method, outcome, seconds)
    if tracing.is_recording():
        tracing.call_ended(span, method, outcome)


def _render(
    envelope: RequestEnvelope | None,
    response: Written | None,
    error: CallError | None,
) -> _Answer:
    body = render_response(
        None if envelope is None else envelope.method,
        None if envelope is None else envelope.correlation_id,
        None if response is None else response.body,
        error,
    )
    return _Answer(200 if error is None else error.http_status, body)


async def _send(scope: Scope, send: Send, answer: _Answer, request_id: str) -> None:
    headers = [
        (_REQUEST_ID, request_id.encode()),
        (b"content-length", b"%d" % len(answer.body)),
        (b"content-type", b"application/json"),
    ]
    if answer.http_status == 405:
        headers.append((b"allow", b"POST"))
    if answer.http_status in _CUT_SHORT:
        headers.append((b"connection", b"close"))
    start = {"type": "http.response.start", "status": answer.http_status, "headers": headers}
    if WHOLE_ANSWER in scope.get("extensions", {}):
        await send({**start, "type": WHOLE_ANSWER, "body": answer.body})
        return
    await send(start)
    await send({"type": "http.response.body", "body": answer.body})
