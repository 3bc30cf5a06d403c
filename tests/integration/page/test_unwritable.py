"""A real gateway whose Redis takes no writes: every page can be read, and nothing is done."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import redis

from tests.integration.page.browsing import Html, PlainBrowser
from tests.integration.page.conftest import Browse
from tests.integration.page.making import make
from tests.integration.service.calling import World
from tests.lab.lab import Lab

REFUSING = {"replicas": ("min-replicas-to-write", 1), "memory": ("maxmemory", 1)}


@contextmanager
def without_writes(lab: Lab, kind: str) -> Iterator[None]:
    name, value = REFUSING[kind]
    with redis.Redis.from_url(lab.redis.url) as connection:
        connection.config_set(name, value)
        try:
            yield
        finally:
            connection.config_set(name, 0)


@pytest.mark.parametrize("kind", REFUSING)
def test_every_page_is_shown_and_says_why_nothing_can_be_done(
    page_lab: Lab, world: World, browser: PlainBrowser, kind: str
) -> None:
    ownership, client_id = world.ownership(), f"kept-{secrets.token_hex(6)}"
    ownership.publish("198.51.100.7")
    make(browser, client_id)
    host, client = f"/operator/hostnames/{ownership.hostname}", f"/operator/clients/{client_id}"
    lists = ["", "/hostnames", "/clients", "/audit", "/clients/new"]
    asked = [f"{host}/withdraw"]
    asked += [f"{client}/{each}" for each in ("policy", "rotate", "revoke", "remove")]
    paths = [*(f"/operator{each}" for each in lists), host, client, *asked]
    with without_writes(page_lab, kind):
        for path in paths:
            told = [each.text for each in browser.page(path).all("p", class_="fault")]
            assert any(each.startswith("Redis takes no writes now") for each in told), path


def test_login_and_deeds_are_refused_in_words(
    page_lab: Lab, browser: PlainBrowser, browse: Browse
) -> None:
    client_id = f"kept-{secrets.token_hex(6)}"
    make(browser, client_id)
    path = f"/operator/clients/{client_id}/revoke"
    form, other = browser.page(path).form(), browse(browser.base_url)
    with without_writes(page_lab, "replicas"):
        answer = browser.send(form, path, typed=client_id)
        login = other.submit("/operator/login", token=page_lab.config.admin_token)
    for each in (answer, login):
        assert each.status_code == 503
        assert "Redis takes no writes now" in Html(each.text).text
    assert "Revoke every token" in browser.page(path).text
