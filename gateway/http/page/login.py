"""Logging in by the admin token, and out again.

Responsible for the form that asks for the token, for the session that a right one begins, and for
telling both, and every wrong one, to the log and the audit trail. A wrong token is counted as a
refused call is, so whoever guesses is shut out as at `/typedrequest`; the token itself is compared
and forgotten. Called by `frame`.
"""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

import structlog

from gateway.access.tokens import digest_of, parse_admin_token
from gateway.contract import Unauthorized
from gateway.http.page.answering import demand_own_form, demand_own_origin, see_other
from gateway.http.page.cookies import clear_cookies, session_ids_in, set_cookie
from gateway.http.page.doors import BOUND_SECONDS, within
from gateway.http.page.fields import form_in, read_body, read_fields
from gateway.http.page.resuming import login_page, resumed, typed_in
from gateway.http.page.sessions import name_of
from gateway.http.page.shapes import LOGIN_PATH, LOGOUT_PATH, PREFIX, actor_of
from gateway.http.remote import subscriber_of
from gateway.store.deeds import Action, Actor, Deed, Role, acting_as

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.responses import Response

    from gateway.http.entrance import Entrance
    from gateway.http.page.doors import Arrival
    from gateway.http.page.fields import Fields
    from gateway.http.page.parts import FrameParts

_WRONG: Final = "This is not the admin token of this gateway."
_LONGEST_NEXT: Final = 1_024

_log = structlog.get_logger(__name__)


class Login:
    """Answers `/operator/login` and `/operator/logout`."""

    def __init__(self, parts: FrameParts, entrance: Entrance) -> None:
        self._parts = parts
        self._entrance = entrance

    async def log_in(self, arrival: Arrival) -> Response:
        """The form, and what comes of it."""
        if not arrival.is_post:
            query = read_fields(arrival.query)
            ended = query.text("ended")
            return login_page(self._parts.now_ms(), _page_in(query), ended=ended)
        demand_own_origin(arrival)
        body = await read_body(arrival.request)
        voucher = await self._entrance.demand_calm(arrival.remote, body)
        form = form_in(body)
        token = form.text("token")
        digest = digest_of(token) if token.isascii() else None
        if voucher is not None:
            await self._entrance.demand_own(arrival.remote, digest, voucher)
        with self._entrance.place(arrival.remote, digest) as place:
            await place.turn()
            is_right = self._is_admins(token)
            refusal = None if is_right else Unauthorized()
            self._entrance.note(arrival.remote, voucher, digest, refusal)
            if not is_right:
                return self._refuse(arrival, form)
            return await within(BOUND_SECONDS, self._open(arrival, form))

    async def log_out(self, arrival: Arrival) -> Response:
        """End the session, if it is one still."""
        if not arrival.is_post:
            return see_other(PREFIX)
        demand_own_origin(arrival)
        form = form_in(await read_body(arrival.request))
        session_ids = session_ids_in(arrival)
        if not session_ids:
            return see_other(LOGIN_PATH)
        names = [name_of(each) for each in session_ids]
        name = await self._entrance.demand_known(arrival.remote, names)
        return await within(BOUND_SECONDS, self._close(arrival, session_ids, name, form))

    async def _open(self, arrival: Arrival, form: Fields) -> Response:
        sessions = self._parts.sessions
        former = await sessions.find_among(session_ids_in(arrival))
        if former is not None:
            await sessions.close(former)
        session_id, session = await sessions.open(arrival.remote)
        set_cookie(arrival, session_id)
        self._entrance.note(arrival.remote, None, session.name, None)
        with acting_as(actor_of(session, arrival.remote)):
            self._parts.trail.note(Deed(Action.PAGE_LOGIN, "opened"))
        _log.info("logged in to the page")
        wanted, typed = _page_in(form), typed_in(form)
        if wanted and typed:
            return resumed(session, arrival.remote, self._parts.now_ms(), wanted, typed)
        return see_other(wanted or PREFIX)

    async def _close(
        self, arrival: Arrival, session_ids: Sequence[str], name: str, form: Fields
    ) -> Response:
        with self._entrance.place(arrival.remote, name) as place:
            await place.turn()
            session = await self._parts.sessions.find_among(session_ids)
            if session is None:
                self._entrance.note(arrival.remote, None, name, Unauthorized())
            else:
                await demand_own_form(self._parts, session, LOGOUT_PATH, form)
                await self._parts.sessions.close(session)
                with acting_as(actor_of(session, arrival.remote)):
                    self._parts.trail.note(Deed(Action.PAGE_LOGOUT, "closed"))
                _log.info("logged out of the page")
        clear_cookies(arrival)
        return see_other(LOGIN_PATH)

    def _is_admins(self, token: str) -> bool:
        shown = parse_admin_token(token) or ""
        return hmac.compare_digest(self._parts.admin_digest, shown)

    def _refuse(self, arrival: Arrival, form: Fields) -> Response:
        # As limits count it: from a network of 64 bits, each address would be another visitor, and
        # whoever has one could push all else out of the trail. The entry has the address itself.
        with acting_as(Actor(Role.VISITOR, remote=subscriber_of(arrival.remote))):
            self._parts.trail.note(Deed(Action.PAGE_LOGIN, "refused", changed=False))
        _log.warning("a wrong token was shown at the page")
        now_ms, wanted = self._parts.now_ms(), _page_in(form)
        return login_page(now_ms, wanted, typed=typed_in(form), fault=_WRONG)


def _page_in(fields: Fields) -> str | None:
    """The page to go to after the login, where what was sent is one; never another site's."""
    wanted = fields.raw("next")
    if len(wanted) > _LONGEST_NEXT or not wanted.isascii() or not wanted.isprintable():
        return None
    path = unquote(wanted.partition("?")[0])
    is_below = path == PREFIX or path.startswith(f"{PREFIX}/")
    if path in {LOGIN_PATH, LOGOUT_PATH}:
        return None
    # A browser reads "\" as "/" and leaves ".." out: neither is in a path of these pages.
    if not is_below or "\\" in path or "//" in path or ".." in path.split("/"):
        return None
    return wanted
