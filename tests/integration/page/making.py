"""Clients as the page makes them, and as the command line shows them.

Used by the tests of this folder.
"""

import json
import re

from tests.integration.page.browsing import Html, PlainBrowser
from tests.integration.service.test_commands import gateway
from tests.lab.lab import Lab

NEW = "/operator/clients/new"
TOKEN = re.compile(r"gwc_[0-9a-f]{36}_[A-Za-z0-9_-]{43}")


def make(browser: PlainBrowser, client_id: str, **typed: str | list[str]) -> str:
    """A client made by the page; its token."""
    fields = {"client_id": client_id, "client_type": "cloudly", **typed}
    review = browser.submit(NEW, **fields)
    assert review.status_code == 200, review.text
    answer = browser.send(Html(review.text).form(), NEW, step="do")
    assert answer.status_code == 200, answer.text
    (token,) = TOKEN.findall(answer.text)
    return str(token)


def shown(lab: Lab, client_id: str) -> dict[str, object]:
    """A client as the command line shows it."""
    told: dict[str, object] = json.loads(
        gateway(lab, "clients", "show", client_id, "--json").stdout
    )
    return told


def notice_of(browser: PlainBrowser, path: str) -> str:
    (notice,) = browser.page(path).all("p", class_="notice")
    return notice.text
