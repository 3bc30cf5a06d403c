"""The session's cookie: written and read, the same for all pages.

Where there is TLS between the browser and here (the listener's own, or a trusted proxy's), the name
has the prefix `__Host-`, which browsers take only with `Secure`, for this host and all its paths:
what listens there without TLS can neither read nor plant it. Else it is a plain one, below
`/operator` only, and whatever else listens on this host, at any port, may plant more of its name:
all are looked at, and the one that is a session counts. Only a logout takes cookies away: an answer
to an older request may come when the browser has a newer one. Pure. Called by `answering` and
`login`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from gateway.http.page.shapes import PREFIX

if TYPE_CHECKING:
    from gateway.http.page.doors import Arrival

PLAIN_NAME: Final = "gateway-session"
SECURE_NAME: Final = f"__Host-{PLAIN_NAME}"

MOST_SHOWN: Final = 8
"""So many cookies of the name are looked at."""

_SESSION_ID: Final = re.compile(r"[A-Za-z0-9_-]{43}")


def session_ids_in(arrival: Arrival) -> list[str]:
    """What the browser shows that may be a session's id, each once, in its order."""
    name = SECURE_NAME if arrival.is_encrypted else PLAIN_NAME
    cookies = ";".join(arrival.request.headers.getlist("cookie")).split(";")
    pairs = (each.strip().partition("=") for each in cookies)
    shown = (value for each, _, value in pairs if each == name and _SESSION_ID.fullmatch(value))
    return list(dict.fromkeys(shown))[:MOST_SHOWN]


def set_cookie(arrival: Arrival, session_id: str) -> None:
    """Have the answer give the browser its session's id, until the browser is closed."""
    *others, own = _paths(arrival)
    arrival.cookies = [_ended(arrival, path) for path in others]
    arrival.cookies.append(_cookie(arrival, session_id, own))


def clear_cookies(arrival: Arrival) -> None:
    """Have the answer take the browser's cookie away, and one that was planted for all paths."""
    arrival.cookies = [_ended(arrival, path) for path in _paths(arrival)]


def _paths(arrival: Arrival) -> tuple[str, ...]:
    """Where a cookie of the name may be, the session's own the last."""
    return ("/",) if arrival.is_encrypted else ("/", PREFIX)


def _ended(arrival: Arrival, path: str) -> str:
    return f"{_cookie(arrival, '', path)}; Max-Age=0"


def _cookie(arrival: Arrival, value: str, path: str) -> str:
    name, secure = (SECURE_NAME, "; Secure") if arrival.is_encrypted else (PLAIN_NAME, "")
    return f"{name}={value}; Path={path}{secure}; HttpOnly; SameSite=Strict"
