"""What was typed in a form whose session had ended: kept through the login, by the browser alone.

Responsible for the login's form, which takes the fields along, for reading them back from it, and
for the page that offers to go on with them. Nothing is kept here between them, and what is offered
does nothing: it shows the form as it was typed. Must not: know what a field means, or who may log
in. Called by `answering` and `login`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from gateway.http.page.doors import html
from gateway.http.page.fields import Fields
from gateway.http.page.shapes import Visit

if TYPE_CHECKING:
    from starlette.responses import Response

    from gateway.http.page.sessions import Session
    from gateway.http.page.shapes import Pairs

_MARK: Final = "typed."
"""What the name of a field that is taken along begins with in the login's form."""

_NOTHING_DONE: Final = "You are not logged in any more, and nothing was done with the form you sent"
_KEPT: Final = f"{_NOTHING_DONE}. What you typed is kept: log in to go on with it."
_ENDED: Final = {
    "session": "Your session has ended: log in to go on.",
    "form": f"{_NOTHING_DONE}: log in, and send it again.",
}


def login_page(
    now_ms: int, wanted: str | None, *, ended: str = "", typed: Pairs = (), fault: str | None = None
) -> Response:
    """The form that asks for the token.

    `wanted` is the page to go to then, `ended` what a redirect says of the visit before, `typed`
    what is taken along, `fault` why the token just shown is none.
    """
    context = {
        "visit": None,
        "now_ms": now_ms,
        "wanted": wanted or "",
        "told": _KEPT if typed else _ENDED.get(ended),
        "typed": tuple((_MARK + name, value) for name, value in typed),
        "fault": fault,
    }
    return html("login.html", context, 403 if fault or typed else 200)


def typed_in(form: Fields) -> Pairs:
    """What the login's form has taken along."""
    return tuple(
        (name.removeprefix(_MARK), value) for name, value in form if name.startswith(_MARK)
    )


def resumed(session: Session, remote: str, now_ms: int, url: str, typed: Pairs) -> Response:
    """The page of somebody who has just logged in, with a form that brings what was typed there."""
    path = unquote(url.partition("?")[0])
    visit = Visit(path, {}, Fields(), session, remote, now_ms)
    context = {"visit": visit, "now_ms": now_ms, "url": url, "typed": typed}
    return html("resumed.html", context)
