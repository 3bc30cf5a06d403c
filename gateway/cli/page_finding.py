"""What `gateway check` finds of the operator's page: whether it is on, where, and who may hear it.

Called by `cli.listener_finding`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gateway.cli.finding import Finding, State
from gateway.config import is_loopback
from gateway.http.page.shapes import PREFIX

if TYPE_CHECKING:
    from gateway.config import Settings

_PART: Final = "page"


def page_finding(settings: Settings) -> Finding:
    """What there is to say."""
    http = settings.http
    if not settings.page_is_on:
        more = "" if settings.page.enabled is False else ": page.enabled = true turns it on"
        return Finding(_PART, State.OK, f"The operator's page is off{more}.")
    scheme = "http" if http.tls == "off" else "https"
    host = http.tls_hostname or http.host
    said = f"The operator's page is on, at {scheme}://{_in_url(host)}:{http.port}{PREFIX}."
    if http.tls != "off" or is_loopback(http.host):
        return Finding(_PART, State.OK, said)
    if http.trusted_proxies:
        said = f"The operator's page is on, at {PREFIX} behind the proxies of http.trusted_proxies."
        return Finding(_PART, State.OK, said)
    return Finding(
        _PART,
        State.WARNING,
        f"{said} Other machines reach it, and no TLS is known: the admin token passes here.",
        "Set http.tls, name a proxy with TLS in http.trusted_proxies, or set page.enabled = false.",
    )


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host
