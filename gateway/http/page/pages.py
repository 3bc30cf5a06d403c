"""All pages there are, each made by the module that knows what it is about.

Called by `gateway.operating`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway.http.page.audit import Audit
from gateway.http.page.client import OneClient
from gateway.http.page.client_actions import ClientActions
from gateway.http.page.clients import Clients
from gateway.http.page.hostname import OneHostname
from gateway.http.page.hostname_actions import HostnameActions
from gateway.http.page.hostname_outside import HostnameOutside
from gateway.http.page.hostnames import Hostnames
from gateway.http.page.overview import Overview
from gateway.http.page.policies import Policies

if TYPE_CHECKING:
    from gateway.http.page.frame import Page
    from gateway.http.page.parts import PageParts


def all_pages(parts: PageParts) -> list[Page]:
    """Every page, over the parts that it shows."""
    return [
        Overview(parts).page(),
        Hostnames(parts).page(),
        OneHostname(parts).page(),
        *HostnameOutside(parts).pages(),
        *HostnameActions(parts).pages(),
        *Clients(parts).pages(),
        # Before the page of a client, which takes any word for an id.
        *Policies(parts).pages(),
        *OneClient(parts).pages(),
        *ClientActions(parts).pages(),
        *Audit(parts).pages(),
    ]
