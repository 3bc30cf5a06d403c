"""The shapes between the frame and its pages: a visit, and what comes of it. See `frame`.

Values only. Used by `frame` and by every page.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, urlencode

from gateway.store.deeds import Actor, Role

if TYPE_CHECKING:
    from gateway.http.page.fields import Fields
    from gateway.http.page.sessions import Session

PREFIX: Final = "/operator"
"""Where the page is."""

LOGIN_PATH: Final = f"{PREFIX}/login"
LOGOUT_PATH: Final = f"{PREFIX}/logout"


class Whole(str):
    """A text that a template shows whole, however long: it comes back from there."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Visit:
    """One request of somebody who is logged in.

    `path` is as it was asked for, decoded; `params` are those of the page's path. `remote` is the
    browser's address, `now_ms` when the request came. `is_poll`: the page's own script asks for it
    again.
    """

    path: str
    params: Mapping[str, str]
    query: Fields
    session: Session = field(repr=False)
    remote: str
    now_ms: int
    is_poll: bool = False
    notices: tuple[str, ...] = ()
    """The sentences that redirects have left for this page."""

    why_no_writes: str | None = None
    """Why Redis takes no writes now, though it can be read."""

    @property
    def csrf(self) -> str:
        """What a form of this page shows as its own; `ui.form_keys()` writes it."""
        return self.session.form_key(self.path)

    @property
    def logout_csrf(self) -> str:
        """The same of the form that ends the session."""
        return self.session.form_key(LOGOUT_PATH)

    @property
    def actor(self) -> Actor:
        """Who acts in the audit trail when something is done here; bound while `act` runs."""
        return actor_of(self.session, self.remote)


@dataclass(frozen=True, slots=True)
class Shown:
    """A page to show: what its template is given, and the HTTP status.

    `template`: another one than the page's own.
    """

    context: Mapping[str, object]
    status: int = 200
    template: str | None = None


@dataclass(frozen=True, slots=True)
class Redirect:
    """Another page to go to (303): a path as `path_to` makes it.

    `notice`: what that page tells at its top, once; kept for a minute, in this session only, if
    Redis takes it.
    """

    to: str
    notice: str | None = None


Shows = Callable[[Visit], Awaitable[Shown | Redirect]]
Acts = Callable[[Visit, "Fields"], Awaitable[Shown | Redirect]]
Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Page:
    """One URL: `path` below `PREFIX`, in Starlette's form, "" for the prefix itself.

    `show` answers GET; `act` a form that was sent, once it is known to be one of this session.
    """

    path: str
    template: str
    show: Shows
    act: Acts | None = None
    lost: str = ""
    """What is said besides where its form is sent again: what nobody saw of the first answer."""

    kept: Callable[[Fields], Pairs] | None = None
    """What of a form is taken along through a login, where the session had ended: fields of a form
    that shows what was typed, and does nothing. Never a secret."""


def actor_of(session: Session, remote: str) -> Actor:
    """Who acts in a session: the admin, from a browser's address."""
    return Actor(Role.ADMIN, f"page session {session.name[:8]}", remote=remote)


def path_to(*parts: str, **query: str) -> Whole:
    """The URL of a page: `path_to("hostnames", hostname, prefix="a")`, everything quoted.

    Values of the query that are empty are left out.
    """
    # What is no text at all, as others may have stored it, is nobody's page.
    path = "/".join([PREFIX, *(quote(part, safe="", errors="replace") for part in parts)])
    told = urlencode({name: value for name, value in query.items() if value}, errors="replace")
    return Whole(f"{path}?{told}" if told else path)
