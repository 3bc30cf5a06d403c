"""The files of the page that are the same for everybody: style, script and icon.

Read once; no session is needed for them, and no Redis. Called by `frame`.
"""

from __future__ import annotations

from functools import lru_cache
from importlib import resources
from typing import TYPE_CHECKING, Final

from starlette.responses import Response

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from gateway.http.page.doors import Arrival

_TYPES: Final = {
    "page.css": "text/css; charset=utf-8",
    "page.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}


def assets() -> Iterator[tuple[str, Callable[[Arrival], Awaitable[Response]]]]:
    """Each file's path below the page's own, and what answers it."""
    for name, content_type in _TYPES.items():
        yield f"/static/{name}", _answer_of(_read(name), content_type)


def _answer_of(body: bytes, content_type: str) -> Callable[[Arrival], Awaitable[Response]]:
    async def answer(_: Arrival) -> Response:
        return Response(body, headers={"Content-Type": content_type})

    return answer


@lru_cache
def _read(name: str) -> bytes:
    return resources.files("gateway.http.page").joinpath("static", name).read_bytes()
