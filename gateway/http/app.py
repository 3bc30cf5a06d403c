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
from starlette.routing import Route, Router

from gateway.http.typedrequest import TypedRequestEndpoint

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.requests import Request
    from starlette.responses import Response

    from gateway.http.entrance import Entrance
    from gateway.http.health import HealthPages
    from gateway.http.typedrequest import Answers

RESPONSE_HEADERS: Final = (("Cache-Control", "no-store"),)

_CALLS_PATH: Final = "/typedrequest"


def build_app(
    calls: Answers, health: HealthPages, entrance: Entrance, page: Sequence[Route] = ()
) -> Starlette:
    """The application over its parts; `page` are the routes of the operator's page, if it is on."""
    endpoint = TypedRequestEndpoint(calls, entrance)

    async def typedrequest(request: Request) -> Response:
        return await endpoint(request)

    async def not_allowed(request: Request, _: Exception) -> Response:
        # Not by listing methods, of which HTTP has dozens: the endpoint refuses all but its own.
        if request.url.path == _CALLS_PATH:
            return await endpoint(request)
        return JSONResponse({"text": "The method must be GET."}, 405, headers={"Allow": "GET"})

    app = Starlette(
        routes=[
            Route(_CALLS_PATH, typedrequest, methods=["POST"]),
            *health.routes(),
            *page,
        ],
        exception_handlers={404: _not_found, 405: not_allowed},
    )
    router: Router = app.router
    router.redirect_slashes = False
    return app


async def _not_found(request: Request, _: Exception) -> Response:
    return JSONResponse({"text": f"There is nothing at {request.url.path[:200]}."}, 404)
