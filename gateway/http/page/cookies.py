"""The session's cookie: written and read, the same for all pages.

Where there is TLS between the browser and here (the listener's own, or a trusted proxy's), the name
has the prefix `__Host-`, which browsers take only with `Secure`, for this host and all its paths:
what listens there without TLS can neither read nor plant it. Else it is a plain one, below
`/operator` only. Pure. Called by `answering` and `login`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from gateway.http.page.shapes import PREFIX

if TYPE_CHECKING:
    from gateway.http.page.doors import Arrival

PLAIN_NAME: Final = "gateway-session"
SECURE_NAME: Final = f"__Host-{PLAIN_NAME}"

_SESSION_ID: Final = re.compile(r"[A-Za-z0-9_-]{43}")


def session_id_in(arrival: Arrival) -> str | None:
    """The id that the browser shows; None where it shows none, or what can be none."""
    name = SECURE_NAME if arrival.is_encrypted else PLAIN_NAME
    shown = arrival.request.cookies.get(name, "")
    return shown if _SESSION_ID.fullmatch(shown) else None


def set_cookie(arrival: Arrival, session_id: str) -> None:
    """Have the answer give the browser its session's id, until the browser is closed."""
    arrival.headers["Set-Cookie"] = f"{_named(arrival, session_id)}; HttpOnly; SameSite=Strict"


def clear_cookie(arrival: Arrival) -> None:
    """Have the answer take the browser's cookie away."""
    named = _named(arrival, "")
    arrival.headers["Set-Cookie"] = f"{named}; Max-Age=0; HttpOnly; SameSite=Strict"


def _named(arrival: Arrival, value: str) -> str:
    if arrival.is_encrypted:
        return f"{SECURE_NAME}={value}; Path=/; Secure"
    return f"{PLAIN_NAME}={value}; Path={PREFIX}"
