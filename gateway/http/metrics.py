"""The pages of the metrics listener: `/metrics`, and health beside it.

Responsible for the formats: Prometheus' own text, or OpenMetrics for whoever accepts it. The page
is made from what is in memory, so a Redis that hangs delays no scrape. Must not: gather figures;
`measures` has them, and `gateway.figures` looks after those that have to be read. Called by
`gateway.metering`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client.exposition import choose_encoder
from starlette.applications import Starlette
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, Router

from gateway import measures
from gateway.http.health import HealthPages

if TYPE_CHECKING:
    from collections.abc import Callable

    from prometheus_client import CollectorRegistry
    from starlette.requests import Request

    from gateway.http.health import Monitor


def build_metrics_app(monitor: Callable[[], Monitor]) -> Starlette:
    """The application; `monitor` answers the one that watches the parts of now."""

    async def metrics(request: Request) -> Response:
        watching = monitor()
        # Of name servers that nobody can tell of there is no figure: another part is to blame.
        parts = [
            (part.name, part.kind, state == "up")
            for part, state in watching.states()
            if (part.kind, state) != ("name-servers", "unknown")
        ]
        measures.health_seen(parts, ready=watching.is_ready)
        encode, content_type = _encoder(request.headers.get("accept", ""))
        return Response(
            encode(measures.REGISTRY), media_type=None, headers={"Content-Type": content_type}
        )

    app = Starlette(
        routes=[
            Route("/metrics", metrics, methods=["GET"]),
            *HealthPages(monitor).routes(),
        ],
        exception_handlers={404: _not_found, 405: _not_allowed},
    )
    router: Router = app.router
    router.redirect_slashes = False
    return app


def _encoder(accept: str) -> tuple[Callable[[CollectorRegistry], bytes], str]:
    """How to write the figures; as plain text too for whoever sends what can't be understood."""
    try:
        return choose_encoder(accept)
    except (TypeError, ValueError):  # prometheus_client 0.26 compares versions that are none
        return choose_encoder("")


async def _not_found(_: Request, __: Exception) -> Response:
    return JSONResponse({"text": "There are /metrics, /healthz and /readyz here."}, 404)


async def _not_allowed(_: Request, __: Exception) -> Response:
    return JSONResponse({"text": "The method must be GET."}, 405, headers={"Allow": "GET"})
