"""Answers a visit to one page: whose it is, that a form is its own, and what the page says.

Must not: know what a page is about, or how one logs in. Called by `frame`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

from starlette.responses import Response
from structlog.contextvars import bind_contextvars

from gateway.contract import Unauthorized
from gateway.http.page import headers
from gateway.http.page.cookies import clear_cookie, session_id_in
from gateway.http.page.doors import html, within
from gateway.http.page.faults import PageFault
from gateway.http.page.fields import Fields, form_in, read_body, read_fields
from gateway.http.page.sessions import Session, name_of
from gateway.http.page.shapes import PREFIX, Redirect, Shown, Visit
from gateway.store.deeds import acting_as

if TYPE_CHECKING:
    from gateway.http.entrance import Entrance
    from gateway.http.page.doors import Arrival
    from gateway.http.page.parts import FrameParts
    from gateway.http.page.shapes import Page

LOGIN_PATH: Final = f"{PREFIX}/login"

_CROSS_SITE: Final = "The form was sent from another site, and nothing was done."
_OTHER_SESSION: Final = (
    "The form is from another session, and nothing was done: open the page again."
)
_SENT_ALREADY: Final = (
    "This form was sent already, and nothing was done a second time: look at what came of it, or"
    " open the page again."
)


class Answering:
    """Answers visits to pages."""

    def __init__(self, parts: FrameParts, entrance: Entrance, bound_seconds: float) -> None:
        self._parts = parts
        self._entrance = entrance
        self._bound_seconds = bound_seconds

    async def answer(self, arrival: Arrival, page: Page) -> Response:
        """One visit to a page; raises what `faults.KNOWN` has."""
        session_id = session_id_in(arrival)
        if arrival.is_post:
            demand_own_origin(arrival)
        if session_id is None:
            return to_login(arrival)
        name = name_of(session_id)
        await self._entrance.demand_known(arrival.remote, name)
        form = form_in(await read_body(arrival.request)) if arrival.is_post else None
        answer = self._answer_in_place(arrival, page, session_id, form)
        return await within(self._bound_seconds, answer)

    async def _answer_in_place(
        self, arrival: Arrival, page: Page, session_id: str, form: Fields | None
    ) -> Response:
        name = name_of(session_id)
        async with self._entrance.place(arrival.remote, name):
            visit = await self._visit(arrival, session_id)
            if visit is None:
                self._entrance.note(arrival.remote, None, name, Unauthorized())
                clear_cookie(arrival)  # shown once more, it would be counted once more
                return to_login(arrival)
            self._entrance.note(arrival.remote, None, name, None)
            arrival.visit = visit
            bind_contextvars(credential=visit.actor.name)
            if form is None:
                answer = await page.show(visit)
            else:
                answer = await self._act(visit, page, form)
            if isinstance(answer, Redirect):
                return await self._redirect(visit.session, answer)
            context = {"visit": visit, "now_ms": visit.now_ms, **answer.context}
            return html(answer.template or page.template, context, answer.status)

    async def _visit(self, arrival: Arrival, session_id: str) -> Visit | None:
        request = arrival.request
        is_poll = headers.is_poll(request.headers)
        sessions = self._parts.sessions
        session = await sessions.find(session_id, is_used=not is_poll)
        if session is None:
            return None
        is_shown = request.method == "GET" and not is_poll
        return Visit(
            path=request.scope["path"],
            params=dict(request.path_params),
            query=read_fields(arrival.query),
            session=session,
            remote=arrival.remote,
            request_id=arrival.request_id,
            now_ms=self._parts.now_ms(),
            is_poll=is_poll,
            notice=await sessions.take_notice(session) if is_shown else None,
        )

    async def _act(self, visit: Visit, page: Page, form: Fields) -> Shown | Redirect:
        if page.act is None:
            raise PageFault(405, "This page takes no form.")
        await demand_own_form(self._parts, visit.session, form)
        with acting_as(visit.actor):
            return await page.act(visit, form)

    async def _redirect(self, session: Session, answer: Redirect) -> Response:
        if answer.notice is not None:
            await self._parts.sessions.leave_notice(session, answer.notice)
        return see_other(answer.to)


def demand_own_origin(arrival: Arrival) -> None:
    """Raises PageFault (403) unless a form was sent by a page of this origin."""
    if not headers.is_from_here(arrival.request.headers, is_encrypted=arrival.is_encrypted):
        raise PageFault(403, _CROSS_SITE)


async def demand_own_form(parts: FrameParts, session: Session, form: Fields) -> None:
    """Raises PageFault unless a form is of this session and sent for the first time."""
    if not session.owns_form(form.raw("csrf")):
        raise PageFault(403, _OTHER_SESSION)
    if not await parts.sessions.take_form(session, form.raw("form")):
        raise PageFault(409, _SENT_ALREADY)


def to_login(arrival: Arrival) -> Response:
    """To the form that asks for the token, and back from there to what was wanted."""
    path = arrival.request.scope["raw_path"].decode("ascii", "replace")
    wanted = f"{path}?{arrival.query}" if arrival.query else path
    if wanted == PREFIX:
        return see_other(LOGIN_PATH)
    return see_other(f"{LOGIN_PATH}?{urlencode({'next': wanted})}")


def see_other(path: str) -> Response:
    """A redirect, for what follows by GET."""
    return Response(status_code=303, headers={"Location": path})
