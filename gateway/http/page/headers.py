"""What each response of the page tells the browser to allow, and where a form may come from. Pure.

Called by `frame`, `login` and `assets`. (`Cache-Control: no-store` is on every response of the
listener.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

CONTENT_SECURITY_POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "style-src 'self'",
        "script-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
    )
)

HEADERS: Final = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # Not no-referrer: a browser would send `Origin: null` with the page's own forms.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}

TRANSPORT_SECURITY: Final = {"Strict-Transport-Security": "max-age=31536000"}
"""Where the listener itself has TLS: what is in front of it decides that for itself."""


def headers_for(*, has_own_tls: bool) -> dict[str, str]:
    """The headers of every response below `/operator`."""
    return HEADERS | TRANSPORT_SECURITY if has_own_tls else dict(HEADERS)


def is_from_here(headers: Mapping[str, str], *, is_encrypted: bool) -> bool:
    """Whether a form was sent by a page of this origin, by what the browser says of it.

    Browsers say `Sec-Fetch-Site` over TLS and on the same machine, and `Origin` everywhere; what
    says neither is no browser, or an old one. `headers` are by lower-case names.
    """
    site = headers.get("sec-fetch-site")
    if site is not None:
        return site == "same-origin"
    scheme, _, host = headers.get("origin", "").partition("://")
    if not host or host.lower() != headers.get("host", "").lower():
        return False
    # Without TLS as far as this listener knows, there may be some in front of it.
    return scheme == "https" or (scheme == "http" and not is_encrypted)


def is_poll(headers: Mapping[str, str]) -> bool:
    """Whether the page's script asks by itself, which is no sign of a person.

    Only what is asked for by GET is: a form is a person's, whatever it says.
    """
    return headers.get("x-page-poll") == "1"
