"""Clients on the page: listed, and each with its policy, tokens, limits and holdings."""

import json
import secrets
from urllib.parse import urlencode

import pytest
import redis

from gateway.http.page.client_paths import client_path
from gateway.store.keys import (
    CLIENTS_KEY,
    client_holdings_key,
    client_key,
    client_uses_key,
    fingerprint,
)
from tests.integration.page.browsing import PlainBrowser
from tests.integration.page.conftest import Browse
from tests.integration.page.making import make
from tests.integration.service.calling import CONTEXT, PROVISION, Caller, World, spec
from tests.integration.service.trailing import who
from tests.lab.gateway import running_gateway
from tests.lab.lab import Lab
from tests.lab.ports import free_port

ADDRESS = "198.51.100.5"


@pytest.fixture
def client_id() -> str:
    return f"page-{secrets.token_hex(6)}"


@pytest.mark.parametrize(
    "odd",
    ["<script>bad()</script>", "a/../b", "..", "new", 'x"onload="y', "%2e%2e", "a?b#c&d=e", "~"],
)
def test_client_with_any_id_has_its_page_and_actions(
    page_lab: Lab, browser: PlainBrowser, world: World, odd: str
) -> None:
    made = world.admin.call(PROVISION, action="ensure", spec=spec(odd, "*.example.test"))
    caller = Caller(page_lab.config.url, made["apiToken"])
    listed = browser.page(f"/operator/clients?{urlencode({'prefix': odd})}")
    path = listed.links[odd]
    page = browser.page(path)
    assert page.all("h1")[0].text == odd
    assert not [each for each in page.all("script") if each.text]
    assert not [each for each in page.elements if "onload" in each.attributes]
    for act in ("policy", "rotate", "revoke", "remove"):
        assert odd in browser.page(f"{path}/{act}").text
    assert browser.submit(f"{path}/revoke", typed=odd).status_code == 303
    assert caller.refused(CONTEXT)["code"] == "unauthorized"
    assert browser.submit(f"{path}/remove", typed=odd).headers["location"] == "/operator/clients"


def test_clients_are_listed_by_pages(page_lab: Lab, browser: PlainBrowser, client_id: str) -> None:
    wanted = [f"{client_id}-{number:02}" for number in range(51)]
    world = World(page_lab.config.url, page_lab.config.admin_token)
    for each in wanted:
        world.admin.call(PROVISION, action="ensure", spec=spec(each))
    first = browser.page(f"/operator/clients?prefix={client_id}")
    assert [each for each in first.links if each.startswith(client_id)] == wanted[:50]
    second = browser.page(first.links["Next page"])
    assert [each for each in second.links if each.startswith(client_id)] == wanted[50:]
    assert "Next page" not in second.links
    assert second.links["First page"] == f"/operator/clients?prefix={client_id}"


def test_client_that_cannot_be_read_hides_no_other(
    page_lab: Lab, browser: PlainBrowser, client_id: str
) -> None:
    broken = f"{client_id}-broken"
    make(browser, client_id)
    with redis.Redis.from_url(page_lab.redis.url) as connection:
        connection.sadd(CLIENTS_KEY, broken)
        connection.hset(client_key(fingerprint(broken)), mapping={"client": "{}", "version": "1"})
        try:
            page = browser.page(f"/operator/clients?prefix={client_id}")
            assert list(page.links).index(client_id) < list(page.links).index(broken)
            assert "not readable by this release" in page.text
            shown = browser.page(client_path(broken), status=500)
            assert "is not readable by this release" in shown.text
        finally:
            connection.srem(CLIENTS_KEY, broken)
            connection.delete(client_key(fingerprint(broken)))


def test_client_page_tells_credentials_limits_and_holdings(
    page_lab: Lab, browser: PlainBrowser, world: World
) -> None:
    mine = world.ownership()
    client_id, credential_id = who(mine.caller)
    mine.publish(ADDRESS)
    page = browser.page(client_path(client_id))
    assert credential_id in page.text
    assert page.links[mine.hostname] == f"/operator/hostnames/{mine.hostname}"
    assert "1 hostname." in page.text
    rows = {each.text for each in page.all("div", class_="row")}
    assert "Hostnames with a record1, no limit" in {"".join(row.split("\n")) for row in rows}
    assert (mine.caller.token or "").split("_", 2)[2] not in page.source


def test_part_that_cannot_be_read_is_a_sentence_in_its_place(
    page_lab: Lab, browser: PlainBrowser, client_id: str
) -> None:
    make(browser, client_id)
    mark = fingerprint(client_id)
    planted = (client_holdings_key(mark), client_uses_key(mark))
    with redis.Redis.from_url(page_lab.redis.url) as connection:
        for key in planted:
            connection.set(key, "something else")
        try:
            page = browser.page(client_path(client_id))
            listed = browser.page(f"/operator/clients?prefix={client_id}")
        finally:
            connection.delete(*planted)
    assert page.all("h1")[0].text == client_id
    faults = [each.text for each in page.all("p", class_="fault")]
    assert len(faults) == 2  # of what it holds; uses that are none are not known
    assert all("Redis refused a command: WRONGTYPE." in each for each in faults)
    assert "not known" in listed.text


def test_client_page_tells_how_much_of_its_limits_is_used(
    page_lab: Lab, browse: Browse, world: World
) -> None:
    mine = world.ownership()
    client_id, _ = who(mine.caller)
    limits = {client_id: {"calls_per_minute": 3, "records": 4, "certificates": 5}}
    environ = {"GATEWAY_LIMITS__CLIENTS": json.dumps(limits)}
    with running_gateway(page_lab.config, "limited", port=free_port(), environ=environ) as process:
        mine.at(process.url).publish(ADDRESS)
        browser = browse(process.base_url)
        browser.log_in(page_lab.config.admin_token)
        page = browser.page(client_path(client_id))
    rows = {"".join(each.text.split("\n")) for each in page.all("div", class_="row")}
    assert "Calls in a minute 1 of 3 used" in rows
    assert "Hostnames with a record1 of 4" in {row.replace(" 1 of", "1 of") for row in rows}
    bars = [each.attributes["aria-label"] for each in page.all("svg", role="img")]
    assert bars == ["1 of 3 used", "1 of 4", "0 of 5"]


@pytest.mark.parametrize("segment", ["nobody", "a~20b", "%20"])
def test_client_that_is_none_has_no_page(browser: PlainBrowser, segment: str) -> None:
    for path in (segment, f"{segment}/rotate", f"{segment}/policy"):
        browser.page(f"/operator/clients/{path}", status=404)


def test_client_that_is_gone_leads_to_what_was_done_to_it(
    browser: PlainBrowser, client_id: str
) -> None:
    page = browser.page(client_path(client_id), 404)
    assert page.links["What the audit trail has of it"] == f"/operator/audit?client={client_id}"
