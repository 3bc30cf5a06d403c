"""The audit trail on the page: the newest first, filtered, page by page, and as text."""

import json
import secrets
import time
from urllib.parse import parse_qs, quote, urlsplit

import pytest
import redis

from gateway.store.keys import AUDIT_KEY
from tests.integration.page.browsing import Html, PlainBrowser
from tests.integration.page.conftest import Browse
from tests.integration.service.calling import Ownership, World
from tests.integration.service.test_commands import gateway
from tests.integration.service.trailing import told_of, trail, who
from tests.lab.gateway import running_gateway
from tests.lab.lab import Lab
from tests.lab.ports import free_port
from tests.lab.process import wait_until

AUDIT = "/operator/audit"
ADDRESS = "198.51.100.5"
MARKUP = '<script>window.bad=1</script><img src=x onerror="bad()">\x1b[31m&amp;'


@pytest.fixture
def mine(world: World) -> Ownership:
    return world.ownership()


def places(page: Html) -> list[str]:
    """The entries of a page, by their places in the trail."""
    ids = [each.attributes.get("id", "") for each in page.all("details")]
    return [each.removeprefix("entry-") for each in ids]


def plant(lab: Lab, hostname: str, count: int, **fields: object) -> list[str]:
    """Entries as somebody else may have written them; their places, the oldest first."""
    with redis.Redis.from_url(lab.redis.url, decode_responses=True) as connection:
        entry = {"who": "admin", "what": "claim-add", "outcome": "claimed", "detail": "d", **fields}
        text = json.dumps({**entry, "at": int(time.time() * 1000), "hostname": hostname})
        return [
            connection.xadd(AUDIT_KEY, {"id": secrets.token_hex(8), "entry": text})
            for _ in range(count)
        ]


def test_entries_of_a_hostname_are_those_of_the_command_newest_first(
    page_lab: Lab, browser: PlainBrowser, mine: Ownership
) -> None:
    mine.publish(ADDRESS)
    mine.withdraw()
    told = told_of(
        page_lab,
        mine.hostname,
        ("record-sync", "managed-created"),
        ("record-sync", "managed-deleted"),
    )
    page = browser.page(f"{AUDIT}?hostname={mine.hostname.upper()}")
    assert places(page) == [each["place"] for each in reversed(told)]
    assert page.links[mine.hostname] == f"/operator/hostnames/{mine.hostname}"
    details = page.by_id(f"entry-{told[1]['place']}").text
    assert f"A {ADDRESS}, TTL 300 s" in details
    for name in ("requestId", "remote", "appId", "name", "clientId"):
        assert told[1][name] in details


def test_entries_of_a_client_and_since_a_time_are_found(
    page_lab: Lab, browser: PlainBrowser, mine: Ownership
) -> None:
    client_id, _ = who(mine.caller)
    mine.publish(ADDRESS)
    told_of(page_lab, mine.hostname, ("record-sync", "managed-created"))
    found = trail(page_lab, "--client", client_id)
    page = browser.page(f"{AUDIT}?client={client_id}&since=1h")
    assert places(page) == [each["place"] for each in reversed(found)]
    future = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 3_600))
    assert "nothing of that" in browser.page(f"{AUDIT}?client={client_id}&since={future}").text


def test_trail_is_read_back_page_by_page(
    page_lab: Lab, browser: PlainBrowser, mine: Ownership
) -> None:
    planted = plant(page_lab, mine.hostname, 120)
    page, found, pages = browser.page(f"{AUDIT}?hostname={mine.hostname}"), [], 1
    newest = page
    found += places(page)
    while "Older" in page.links:
        page = browser.page(page.links["Older"])
        found += places(page)
        pages += 1
        assert parse_qs(urlsplit(page.links["Newest"]).query) == {"hostname": [mine.hostname]}
    assert found == planted[::-1]
    assert pages == 3
    # Only the newest page follows what comes.
    assert newest.by_id("entries").attributes["data-live"] == "2000"
    assert "data-live" not in page.by_id("entries").attributes


def test_newest_page_has_what_has_come_since(
    page_lab: Lab, browser: PlainBrowser, mine: Ownership
) -> None:
    url = f"{AUDIT}?hostname={mine.hostname}"
    assert places(browser.page(url)) == []
    assert "data-live" in browser.page(url).by_id("entries").attributes
    assert browser.submit(f"/operator/hostnames/{mine.hostname}/claim").status_code == 303
    wait_until(lambda: len(places(browser.page(url))) == 1, "the deed is on the page")


def test_trail_that_has_nothing_for_a_long_while_is_looked_through_by_parts(
    page_lab: Lab, browser: PlainBrowser, mine: Ownership
) -> None:
    sought = plant(page_lab, mine.hostname, 1)
    with redis.Redis.from_url(page_lab.redis.url) as connection:
        pipeline = connection.pipeline()
        for number in range(5_100):
            pipeline.xadd(AUDIT_KEY, {"id": f"{mine.hostname}-{number}", "entry": "{}"})
        pipeline.execute()
    page = browser.page(f"{AUDIT}?hostname={mine.hostname}")
    assert places(page) == []
    assert "more to look through" in page.text
    assert places(browser.page(page.links["Older"])) == sought
    # What cannot be read is told as such where everything is shown.
    assert "an entry that this release can't read" in browser.page(AUDIT).text


def test_whatever_was_written_is_text(page_lab: Lab, browser: PlainBrowser) -> None:
    names = ("name", "remote", "requestId", "clientId", "appId", "before", "after", "detail")
    plant(page_lab, MARKUP, 1, who=MARKUP, outcome=MARKUP, **dict.fromkeys(names, MARKUP))
    page = browser.page(AUDIT)
    assert "<script>window.bad=1</script>" in page.text
    assert not [each for each in page.all("script") if each.text]
    assert not page.all("img")
    assert not [each for each in page.elements if "onerror" in each.attributes]
    assert "\x1b" not in page.source


@pytest.mark.parametrize("place", ["x", "1", "-", "+", "1-0-0", "99999999999999999999-0", "(1-0"])
def test_place_that_is_none_is_refused_in_words(browser: PlainBrowser, place: str) -> None:
    page = browser.page(f"{AUDIT}?before={quote(place)}", status=400)
    assert "place in the audit trail" in page.all("p", class_="fault")[0].text


def test_faults_of_the_filter_stand_at_their_fields(browser: PlainBrowser) -> None:
    page = browser.page(f"{AUDIT}?hostname=a..b&client=two%20words&since=soon", status=400)
    assert "has an empty label" in page.by_id("hostname-error").text
    assert "without a space" in page.by_id("client-error").text
    assert page.by_id("since-error").text.startswith("It must be a time such as 2h, 7d, ")
    (hostname,) = [each for each in page.all("input") if each.attributes.get("name") == "hostname"]
    assert hostname.attributes["value"] == "a..b"


def test_gateway_without_a_trail_says_so(page_lab: Lab, browse: Browse) -> None:
    quiet = {"GATEWAY_AUDIT__ENTRIES": "0"}
    with running_gateway(page_lab.config, "quiet", port=free_port(), environ=quiet) as process:
        browser = browse(process.base_url)
        browser.log_in(page_lab.config.admin_token)
        assert "No trail is kept: audit.entries is 0." in browser.page(AUDIT).text


def test_what_is_gone_is_told_as_by_the_command(page_lab: Lab, browser: PlainBrowser) -> None:
    with redis.Redis.from_url(page_lab.redis.url) as connection:
        plant(page_lab, "gone.example.test", 3)
        connection.xtrim(AUDIT_KEY, maxlen=2, approximate=False)
    page = browser.page(AUDIT)
    told = gateway(page_lab, "audit", "--limit", "1000").stderr
    assert "older entries are gone" in told
    assert told.partition(" It begins")[0].split()[0] in page.text
    assert (
        "older entries are gone (trimmed by audit.entries, or deleted). It begins at" in page.text
    )
