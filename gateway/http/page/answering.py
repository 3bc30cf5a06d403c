"""Answers a visit to one page: whose it is, that a form is its own, and what the page says.

Must not: know what a page is about, or how one logs in. Called by `frame`.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from starlette.responses import Response

from gateway.contract import Unauthorized
from gateway.http.page import headers
from gateway.http.page.cookies import session_ids_in
from gateway.http.page.doors import html, within
from gateway.http.page.faults import PageFault
from gateway.http.page.fields import Fields, form_in, read_body, read_fields
from gateway.http.page.resuming import login_page
from gateway.http.page.sessions import Session, name_of
from gateway.http.page.shapes import PREFIX, Redirect, Shown, Visit, path_to
from gateway.store.deeds import acting_as
from gateway.underway import underway

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gateway.http.entrance import Entrance
    from gateway.http.page.doors import Arrival
    from gateway.http.page.parts import FrameParts
    from gateway.http.page.shapes import Page

_CROSS_SITE: Final = "The form was sent from another site, and nothing was done."
_OTHER_SESSION: Final = (
    "The form is from another session or page, and nothing was done: open the page again."
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
        session_ids = session_ids_in(arrival)
        if arrival.is_post:
            demand_own_origin(arrival)
        if not session_ids:
            takes_along = arrival.is_post and page.kept is not None
            sent = form_in(await read_body(arrival.request)) if takes_along else None
            return self._logged_out(arrival, page, sent)
        names = [name_of(each) for each in session_ids]
        name = await self._entrance.demand_known(arrival.remote, names)
        form = form_in(await read_body(arrival.request)) if arrival.is_post else None
        answer = await within(
            self._bound_seconds, self._answer_in_place(arrival, page, session_ids, name, form)
        )
        if isinstance(answer, Response):
            return answer
        session, redirect = answer
        # Beyond the bound of the rest: what was done is not told as failed for its notice.
        if redirect.notice is not None:
            path = unquote(redirect.to.partition("?")[0])
            await self._parts.sessions.leave_notice(session, path, redirect.notice)
        return see_other(redirect.to)

    async def _answer_in_place(
        self,
        arrival: Arrival,
        page: Page,
        session_ids: Sequence[str],
        name: str,
        form: Fields | None,
    ) -> Response | tuple[Session, Redirect]:
        """A page, or where else to go in the session. `name` is by which the entrance knows it."""
        with self._entrance.place(arrival.remote, name) as place:
            await place.turn()
            visit = await self._visit(arrival, session_ids)
            if visit is None:
                self._entrance.note(arrival.remote, None, name, Unauthorized())
                return self._logged_out(arrival, page, form, ended="session")
            self._entrance.note(arrival.remote, None, visit.session.name, None)
            arrival.visit = visit
            call = underway()
            if call is not None:
                call.credential = visit.actor.name
            if form is None:
                answer = await page.show(visit)
            else:
                answer = await self._act(arrival, visit, page, form)
            if isinstance(answer, Redirect):
                return visit.session, answer
            context = {"visit": visit, "now_ms": visit.now_ms, **answer.context}
            return html(answer.template or page.template, context, answer.status)

    def _logged_out(
        self, arrival: Arrival, page: Page, form: Fields | None, ended: str = ""
    ) -> Response:
        """To the login, and back from there, with what was typed where the page keeps that."""
        if form is not None and page.kept is not None:
            return login_page(self._parts.now_ms(), arrival.url, typed=page.kept(form))
        told = {
            "next": "" if arrival.url == PREFIX else arrival.url,
            "ended": "form" if arrival.is_post else ended,
        }
        return see_other(path_to("login", **told))

    async def _visit(self, arrival: Arrival, session_ids: Sequence[str]) -> Visit | None:
        request, sessions = arrival.request, self._parts.sessions
        session = await sessions.find_among(session_ids, is_used=not arrival.is_poll)
        if session is None:
            return None
        path, why_no_writes = request.scope["path"], None
        notices: tuple[str, ...] = ()
        if request.method == "GET" and not arrival.is_poll:
            notices, why_no_writes = await asyncio.gather(
                sessions.take_notices(session, path), sessions.why_no_writes()
            )
        return Visit(
            path=path,
            params=dict(request.path_params),
            query=read_fields(arrival.query),
            session=session,
            remote=arrival.remote,
            now_ms=self._parts.now_ms(),
            is_poll=arrival.is_poll,
            notices=notices,
            why_no_writes=why_no_writes,
        )

    async def _act(
        self, arrival: Arrival, visit: Visit, page: Page, form: Fields
    ) -> Shown | Redirect:
        if page.act is None:
            raise PageFault(405, "This page takes no form.")
        await demand_own_form(self._parts, visit.session, visit.path, form, page.lost)
        arrival.is_acting = True
        with acting_as(visit.actor):
            return await page.act(visit, form)


def demand_own_origin(arrival: Arrival) -> None:
    """Raises PageFault (403) unless a form was sent by a page of this origin."""
    if not headers.is_from_here(arrival.request.headers, is_encrypted=arrival.is_encrypted):
        raise PageFault(403, _CROSS_SITE)


async def demand_own_form(
    parts: FrameParts, session: Session, path: str, form: Fields, lost: str = ""
) -> None:
    """Raises PageFault unless a form to a path is of this session and sent for the first time.

    `lost` is said besides where it is sent again.
    """
    if not session.owns_form(path, form.raw("csrf")):
        raise PageFault(403, _OTHER_SESSION)
    if not await parts.sessions.take_form(session, form.raw("form")):
        raise PageFault(409, f"{_SENT_ALREADY} {lost}".rstrip())


def see_other(path: str) -> Response:
    """A redirect, for what follows by GET."""
    return Response(status_code=303, headers={"Location": path})
