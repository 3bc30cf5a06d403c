"""The door of each URL below `/operator`: what is the same for all of them, logged in or not.

Responsible for a request's id, its bounds of time and of methods, faults as pages, the headers, and
one log line each, which has the path as the routes write it and never what was asked for in a
query. Must not: know sessions; `answering` and `login` do. Called by `frame`.
"""

from __future__ import annotations

import asyncio
import math
import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeVar

import structlog
from starlette.requests import Request
from starlette.responses import Response

from gateway import measures, underway
from gateway.http.entrance import ShutOut
from gateway.http.page.faults import KNOWN, UNSURE, PageFault, fault_of, unsure
from gateway.http.page.headers import headers_for, is_poll
from gateway.http.page.rendering import render
from gateway.store.connection import StoreRefused, StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from starlette.types import Receive, Scope, Send

    from gateway.http.entrance import Entrance
    from gateway.http.page.shapes import Visit

BOUND_SECONDS: Final = 9.5
"""How long a page may take in all, once what was sent has arrived."""

REQUEST_ID_HEADER: Final = "X-Request-Id"
_UNAVAILABLE: Final = 503
_CUT_SHORT: Final = frozenset({408, 413})
"""What is left of the body is not read then, so the connection cannot carry another request."""

Answer = TypeVar("Answer")

_log = structlog.get_logger(__name__)


@dataclass(slots=True)
class Arrival:
    """One request at a door. `visit` is set once it is known whose it is."""

    request: Request
    remote: str
    is_encrypted: bool
    """Whether there is TLS between the browser and this machine, or a trusted proxy."""

    visit: Visit | None = None
    is_acting: bool = False
    """Whether what a form asks for was begun: then a fault does not tell that nothing was done."""

    headers: dict[str, str] = field(default_factory=dict)
    """What the answer says besides."""

    cookies: list[str] = field(default_factory=list)
    """What the answer has the browser keep or forget, each as in `Set-Cookie`."""

    @property
    def query(self) -> str:
        """What was asked for behind the path, as it was sent: not by way of `Host`."""
        sent: bytes = self.request.scope["query_string"]
        return sent.decode("ascii", "replace")

    @property
    def url(self) -> str:
        """What was asked for, as it was sent: path and query."""
        path: str = self.request.scope["raw_path"].decode("ascii", "replace")
        return f"{path}?{self.query}" if self.query else path

    @property
    def is_post(self) -> bool:
        """Whether a form was sent."""
        return self.request.method == "POST"

    @property
    def is_poll(self) -> bool:
        """Whether the page's script asks by itself, which is no sign of a person."""
        return self.request.method == "GET" and is_poll(self.request.headers)


class Door:
    """The ASGI application of one URL; it takes every method, and refuses all but its own."""

    def __init__(
        self,
        name: str,
        entrance: Entrance,
        now_ms: Callable[[], int],
        answer: Callable[[Arrival], Awaitable[Response]],
        *,
        takes_forms: bool = False,
        is_told: bool = True,
    ) -> None:
        self._name = name
        self._entrance = entrance
        self._now_ms = now_ms
        self._answer = answer
        self._is_told = is_told
        self._methods = ("GET", "HEAD", "POST") if takes_forms else ("GET", "HEAD")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        began, request_id = measures.moment(), secrets.token_hex(8)
        request = Request(scope, receive)
        remote = self._entrance.remote_of(scope)
        underway.begin(request_id, remote)
        is_encrypted = self._entrance.is_encrypted(scope)
        arrival = Arrival(request, remote, is_encrypted)
        response, is_told = await self._respond(arrival)
        if is_told and self._is_told:
            # What a browser asks for by itself, every second or so, is of no interest.
            say = _log.debug if arrival.is_poll else _log.info
            say(
                "page answered",
                page=self._name,
                method=request.method if request.method in self._methods else "other",
                status=response.status_code,
                milliseconds=round((measures.moment() - began) * 1000, 1),
            )
        own_tls = scope["scheme"] == "https"
        told = headers_for(has_own_tls=own_tls) | {REQUEST_ID_HEADER: request_id}
        response.headers.update(told | arrival.headers)
        for cookie in arrival.cookies:
            response.headers.append("Set-Cookie", cookie)
        await response(scope, receive, send)

    async def _respond(self, arrival: Arrival) -> tuple[Response, bool]:
        """The response, and whether it is worth a log line."""
        try:
            if arrival.request.method not in self._methods:
                arrival.headers["Allow"] = ", ".join(self._methods)
                raise PageFault(405, f"The method must be {' or '.join(self._methods)}.")
            return await self._answer(arrival), True
        except ShutOut as refusal:
            return self._failed(arrival, fault_of(refusal)), False
        except KNOWN as error:
            # Not its words, which may repeat what was asked for; of the store's they tell why.
            why = str(error) if isinstance(error, (StoreUnavailable, StoreRefused)) else None
            _log.debug("page failed because", kind=type(error).__name__, text=why)
            fault = fault_of(error)
            if arrival.is_acting and isinstance(error, UNSURE):
                fault = unsure(fault)
            return self._failed(arrival, fault), True
        except Exception:  # noqa: BLE001 (whatever fails, there is a page that says so)
            incident_id = secrets.token_hex(6)
            _log.exception("page broke", incident_id=incident_id, page=self._name)
            sentence = f"The gateway has failed to make this page: incident {incident_id}."
            fault = PageFault(500, sentence)
            return self._failed(arrival, unsure(fault) if arrival.is_acting else fault), True

    def _failed(self, arrival: Arrival, fault: PageFault) -> Response:
        if fault.status in _CUT_SHORT:
            arrival.headers["Connection"] = "close"
        if fault.retry_after_ms is not None:
            arrival.headers["Retry-After"] = str(max(1, math.ceil(fault.retry_after_ms / 1000)))
        may_repeat = fault.status == _UNAVAILABLE and not arrival.is_post
        context = {
            "visit": arrival.visit,
            "fault": fault,
            "again": arrival.url if may_repeat else None,
            "now_ms": self._now_ms(),
        }
        return html("error.html", context, fault.status)


def html(template: str, context: Mapping[str, object], status: int = 200) -> Response:
    """A page as a response."""
    return Response(render(template, context), status, media_type="text/html")


async def within(seconds: float, answer: Awaitable[Answer]) -> Answer:
    """The answer, if it comes in time; raises TimeoutError."""
    async with asyncio.timeout(seconds):
        return await answer
