"""The ASGI application: which path goes where, and what every response says.

It never redirects, but for the operator's page, below its own path. `RESPONSE_HEADERS` belong on
every response there is, the server's own refusals included, so whoever runs the application hands
them to the server: the ecosystem's client keeps the last body of a URL and, when a connection
fails, answers it to another call (one caller's private key to another) unless it is told not to
store.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from starlette.applications import Starlette
from starlette.responses import JSONResponse

from gateway.http.typedrequest import TypedRequestEndpoint

if TYPE_CHECKING:
    from collections.abc import Awaitable, Sequence

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route, Router
    from starlette.types import ASGIApp, Receive, Scope, Send

    from gateway.http.entrance import Entrance
    from gateway.http.health import HealthPages
    from gateway.http.typedrequest import Answers

RESPONSE_HEADERS: Final = (("Cache-Control", "no-store"),)

_CALLS_PATH: Final = "/typedrequest"


def build_app(
    calls: Answers, health: HealthPages, entrance: Entrance, page: Sequence[Route] = ()
) -> ASGIApp:
    """The application over its parts; `page` are the routes of the operator's page, if it is on."""
    endpoint = TypedRequestEndpoint(calls, entrance)
    pages = Starlette(
        routes=[
            *health.routes(),
            *page,
        ],
        exception_handlers={404: _not_found, 405: _not_allowed},
    )
    router: Router = pages.router
    router.redirect_slashes = False

    def app(scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        # Past Starlette's layers, which take a sixth of what a call costs; whatever its method is,
        # the endpoint refuses all but its own.
        return (endpoint if scope.get("path") == _CALLS_PATH else pages)(scope, receive, send)

    return app


async def _not_allowed(_: Request, __: Exception) -> Response:
    return JSONResponse({"text": "The method must be GET."}, 405, headers={"Allow": "GET"})


async def _not_found(request: Request, _: Exception) -> Response:
    return JSONResponse({"text": f"There is nothing at {request.url.path[:200]}."}, 404)
