"""`POST /typedrequest`: one envelope in, one envelope out, whatever happens in between.

Every answer is an envelope, within 10 seconds. What nobody foresaw becomes `internal` with an
incident id, and only the log says more.
"""

from __future__ import annotations

import asyncio
import secrets
from typing import TYPE_CHECKING, Final, Protocol

import structlog
from starlette.responses import Response

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
from gateway.http.body import read_body
from gateway.store.connection import StoreUnavailable
from gateway.store.documents import Contended

if TYPE_CHECKING:
    from typing import Any

    from starlette.requests import Request

CALL_BOUND_SECONDS: Final = 9.5
RETRY_AFTER_MS: Final = 1_000

_log = structlog.get_logger(__name__)


class Answers(Protocol):
    """What carries calls out: `access.calls.Calls`."""

    async def answer(self, method_name: str, request: dict[str, object]) -> dict[str, Any]:
        """The `response` object of a call; raises `CallError`."""


class TypedRequestEndpoint:
    """The endpoint, as a plain function from request to response."""

    def __init__(self, calls: Answers) -> None:
        self._calls = calls

    async def __call__(self, request: Request) -> Response:
        """Answer one HTTP request."""
        if request.method != "POST":
            refusal = EnvelopeInvalid("The method must be POST.", 405)
            return _render(None, None, refusal, {"Allow": "POST"})
        try:
            envelope = parse_request(await read_body(request))
        except EnvelopeInvalid as error:
            return _render(None, None, error)
        try:
            response = await self._answer(envelope)
        except CallError as error:
            # An unknown method's name is any text: a token by mistake, escapes for a terminal.
            _log.info("call refused", method=quoted(envelope.method), code=error.code)
            return _render(envelope, None, error)
        return _render(envelope, response, None)

    async def _answer(self, envelope: RequestEnvelope) -> dict[str, Any]:
        try:
            async with asyncio.timeout(CALL_BOUND_SECONDS):
                return await self._calls.answer(envelope.method, envelope.request)
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


def _render(
    envelope: RequestEnvelope | None,
    response: dict[str, Any] | None,
    error: CallError | None,
    headers: dict[str, str] | None = None,
) -> Response:
    body = render_response(
        None if envelope is None else envelope.method,
        None if envelope is None else envelope.correlation_id,
        response,
        error,
    )
    status = 200 if error is None else error.http_status
    all_headers = dict(headers or {})
    if status in {408, 413}:
        # What is left of the body is not read, so the connection cannot carry another request.
        all_headers["Connection"] = "close"
    return Response(body, status, all_headers, "application/json")
