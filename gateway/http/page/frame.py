"""The frame that every page stands in: who may see it, in what time, and how it ends.

A page says where it is, which template it has, what it shows and, where it has a form, what it
does; the frame does the rest, the same for all: the session, the listener's bounds, where a form
came from, forms that are sent twice, faults as pages, one log line and the headers. It is where the
pages begin:

    Page("/hostnames/{hostname}", "hostname.html", show)

    async def show(visit: Visit) -> Shown | Redirect:
        return Shown({"view": ...})

A template extends `base.html` and imports `macros.html` with context; it has `visit`, `now_ms` and
what `Shown.context` holds. A form is `<form method="post">` with `{{ ui.form_keys() }}` in it: by
the time `act` is called it is known to be this session's own, from this origin, and sent for the
first time. What `faults.KNOWN` has may be raised by `show` and `act`; it becomes a page.

Must not: know what a page is about. Built by `gateway.operating`.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from starlette.routing import Route

from gateway.http.page.answering import Answering, see_other
from gateway.http.page.assets import assets
from gateway.http.page.doors import BOUND_SECONDS, Door
from gateway.http.page.faults import KNOWN, PageFault, fault_of
from gateway.http.page.fields import Fields
from gateway.http.page.login import Login
from gateway.http.page.shapes import PREFIX, Page, Redirect, Shown, Visit, path_to

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from starlette.responses import Response

    from gateway.http.entrance import Entrance
    from gateway.http.page.doors import Arrival
    from gateway.http.page.parts import FrameParts

__all__ = [
    "KNOWN",
    "PREFIX",
    "Fields",
    "Frame",
    "Page",
    "PageFault",
    "Redirect",
    "Shown",
    "Visit",
    "fault_of",
    "path_to",
]


class Frame:
    """The frame of a process's pages; `entrance` is its listener's.

    `bound_seconds`: how long a page may take, once what was sent has arrived.
    """

    def __init__(
        self, parts: FrameParts, entrance: Entrance, *, bound_seconds: float = BOUND_SECONDS
    ) -> None:
        self._entrance = entrance
        self._now_ms = parts.now_ms
        self._answering = Answering(parts, entrance, bound_seconds)
        self._login = Login(parts, entrance)

    def routes(self, pages: Iterable[Page]) -> list[Route]:
        """All that is at `/operator` and below it; what is no page there is one that says so."""
        return [
            *(self._door(path, answer, is_told=False) for path, answer in assets()),
            self._door("/login", self._login.log_in, takes_forms=True),
            self._door("/logout", self._login.log_out, takes_forms=True),
            *(self._door(page.path, self._answer_of(page), takes_forms=True) for page in pages),
            self._door("/{rest:path}", _nothing_there),
        ]

    def _answer_of(self, page: Page) -> Callable[[Arrival], Awaitable[Response]]:
        return partial(self._answering.answer, page=page)

    def _door(
        self,
        path: str,
        answer: Callable[[Arrival], Awaitable[Response]],
        *,
        takes_forms: bool = False,
        is_told: bool = True,
    ) -> Route:
        door = Door(
            PREFIX + path,
            self._entrance,
            self._now_ms,
            answer,
            takes_forms=takes_forms,
            is_told=is_told,
        )
        return Route(PREFIX + path, door)


async def _nothing_there(arrival: Arrival) -> Response:
    if arrival.request.path_params["rest"] == "":
        return see_other(PREFIX)
    raise PageFault(404, "There is no such page.")
