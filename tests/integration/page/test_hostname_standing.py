"""What a hostname's page says of a holder that is gone, of a hold, and of who is refused."""

import asyncio
import json
import os

import pytest

from gateway.config import load_settings
from gateway.contract.names import Hostname
from gateway.wiring import open_gateway
from tests.integration.dns.hand import Hand
from tests.integration.page.browsing import Html, PlainBrowser
from tests.integration.page.planting import count_anew, fail, now_ms
from tests.integration.page.test_hostname import at_rest, path, rows
from tests.integration.service.calling import CONTEXT, PROVISION, Ownership, World
from tests.integration.service.inside import stored
from tests.lab.lab import Lab
from tests.lab.process import wait_until


@pytest.fixture
def mine(world: World) -> Ownership:
    return world.ownership()


@pytest.fixture
def hand(page_lab: Lab) -> Hand:
    return Hand.at(page_lab.bind)


def test_holder_that_is_revoked_is_told_and_nothing_is_promised_or_offered(
    page_lab: Lab, world: World, browser: PlainBrowser, mine: Ownership
) -> None:
    mine.certificate()
    wait_until(lambda: at_rest(page_lab, mine.hostname), "the certificate rests")
    client_id = mine.caller.call(CONTEXT)["context"]["clientId"]
    acts = {f"{path(mine)}/retry", f"{path(mine)}/renew"}
    assert acts & set(browser.page(path(mine)).links.values())
    world.admin.call(PROVISION, action="revoke", spec={"clientId": client_id})
    page = browser.page(path(mine))
    why = "since its client is revoked: it has no live token"
    assert rows(page)["Holder"] == (
        f"{client_id} for {mine.app_id} revokedNo new certificate is ordered for it, {why}."
    )
    assert f"no new certificate is ordered, {why}; looked at again" in rows(page)["Next"]
    assert not acts & set(page.links.values())
    asked = browser.page(path(mine, "/renew"), status=409)
    assert "its client is revoked" in asked.all("p", class_="fault")[0].text
    fail(page_lab, mine.hostname, "the one of a revoked client", renewal=True)
    page = browser.page(path(mine))
    assert f"Next: no new certificate is ordered, {why}; looked at again" in page.text
    assert not acts & set(page.links.values())
    (line,) = [
        each
        for each in browser.page(f"/operator/hostnames?prefix={mine.hostname}").all("td")
        if client_id in each.text
    ]
    assert "revoked" in line.text
    count_anew(page_lab)
    (told,) = [each for each in browser.page("/operator").all("li") if mine.hostname in each.text]
    assert "its client is revoked" in told.text


def test_what_its_authority_holds_says_until_when_and_is_not_offered_to_be_tried(
    page_lab: Lab, browser: PlainBrowser, mine: Ownership
) -> None:
    mine.certificate()
    until_ms = now_ms() + 3_600_000
    (url,) = {json.loads(stored(page_lab, mine.hostname)["certificate"])["directory_url"]}
    wait_until(lambda: at_rest(page_lab, mine.hostname), "the certificate rests")
    waits = {"state": "waiting", "resume": "requested", "reason": "rate-limited"}
    fail(page_lab, mine.hostname, "slowly", directory_url=url, told_until_ms=until_ms, **waits)
    assert path(mine, "/retry") in browser.page(path(mine)).links.values()
    asyncio.run(_hold(page_lab, Hostname(mine.hostname), url, until_ms))
    page = browser.page(path(mine))
    (trouble,) = page.all("section", class_="card trouble")
    told = " ".join(trouble.text.split())
    assert "Held until " in told
    assert "It can't be tried now: " in told
    assert "has been put off by its authority" in told
    assert path(mine, "/retry") not in page.links.values()
    assert browser.get(path(mine, "/retry")).status_code == 409


async def _hold(lab: Lab, hostname: Hostname, directory_url: str, until_ms: int) -> None:
    """What the authority's ledger has once it has put a hostname off."""
    settings = load_settings(lab.config.config_file, os.environ)
    async with open_gateway(settings, works=False) as gateway:
        (listed,) = [each for each in gateway.authorities if each.directory_url == directory_url]
        await listed.ledger.hold(hostname, until_ms, "slowly", ca_words=f"too many for {hostname}")


def refusals(page: Html) -> list[str]:
    """What is told of each client that is refused there, in its own box."""
    return [
        " ".join(each.text.split())
        for each in page.all("section")
        if "A client is refused here" in each.text
    ]


def test_client_that_is_refused_is_told_with_what_is_in_its_way_and_what_to_do(
    page_lab: Lab, browser: PlainBrowser, mine: Ownership, hand: Hand
) -> None:
    client_id = mine.caller.call(CONTEXT)["context"]["clientId"]
    assert refusals(browser.page(path(mine))) == []
    hand.add(f"{mine.hostname} 300 A 192.0.2.9")
    assert mine.publish("198.51.100.5")["status"] == "record-conflict"
    wait_until(lambda: refusals(browser.page(path(mine))) != [], "the refusal is told")
    (told,) = refusals(browser.page(path(mine)))
    assert f"{client_id} for relay asked for A 198.51.100.5" in told
    assert "and is answered record-conflict" in told
    assert "The zone has A 192.0.2.9 there, which the gateway did not publish" in told
    assert f"If {client_id} is to have it: take A 192.0.2.9 out of the zone by hand" in told
    assert "If what is there is to stay: take the hostname out of what" in told
    hand.update(f"delete {mine.hostname} A")
    assert mine.publish("198.51.100.5")["status"] == "managed-created"
    wait_until(lambda: refusals(browser.page(path(mine))) == [], "it is over")


def test_client_that_asks_for_anothers_hostname_is_told_with_its_holder(
    world: World, browser: PlainBrowser, mine: Ownership
) -> None:
    mine.publish("198.51.100.5")
    holder = mine.caller.call(CONTEXT)["context"]["clientId"]
    rival = world.rival(mine)
    asker = rival.caller.call(CONTEXT)["context"]["clientId"]
    assert rival.publish("198.51.100.6")["status"] == "record-conflict"
    wait_until(lambda: refusals(browser.page(path(mine))) != [], "the refusal is told")
    (told,) = refusals(browser.page(path(mine)))
    assert f"{asker} for relay asked for" in told
    assert f"{holder} for relay holds it." in told
    assert "gateway holdings hand-over" in told
