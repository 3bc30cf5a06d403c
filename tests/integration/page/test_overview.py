"""The overview: what needs a person, what there is, and what is said where a part is away."""

import json
import re
from collections.abc import Iterator

import pytest

from gateway.http.page.overview import CONFLICTS_SHOWN
from tests.integration.dns.hand import Hand
from tests.integration.page.browsing import Html, PlainBrowser
from tests.integration.page.conftest import Browse
from tests.integration.page.planting import MARKUP, count_anew, fail, now_ms, plant
from tests.integration.service.calling import Ownership, World
from tests.integration.service.inside import stored
from tests.integration.service.test_commands import gateway
from tests.integration.service.trailing import who
from tests.lab.lab import Lab, LabOptions, running_lab
from tests.lab.process import wait_until

HERE = "/operator"


@pytest.fixture
def mine(world: World) -> Ownership:
    return world.ownership()


@pytest.fixture
def own_lab() -> Iterator[Lab]:
    """A lab that a test may break, and in which nothing happens but what it does."""
    with running_lab(LabOptions(gateways=1)) as lab:
        yield lab


def matters(page: Html, hostname: str) -> list[str]:
    """What is told of a hostname, a text for each time."""
    lines = [item for item in page.all("li") if hostname in item.text]
    return [" ".join(line.text.split()) for line in lines]


def issued_today(browser: PlainBrowser) -> int:
    """How many first certificates the last day of the table has; 0 where there is no table."""
    page = browser.page(HERE)
    tables = page.all("div", aria_label="Issuances of the last 14 days.")
    if not tables:
        return 0
    below = page.elements[page.elements.index(tables[0]) :]
    cells = [each.text for each in below if each.tag in {"th", "td"}]
    days = [at for at, text in enumerate(cells) if re.fullmatch(r"\d{4}-\d\d-\d\d", text)]
    return int(cells[days[-1] + 1].replace(",", ""))


def test_failed_issuance_is_told_with_the_words_of_the_authority(
    page_lab: Lab, browser: PlainBrowser, mine: Ownership
) -> None:
    mine.certificate()
    fail(page_lab, mine.hostname, MARKUP, renewal=True)
    count_anew(page_lab)
    page = browser.page(HERE)
    (told,) = matters(page, mine.hostname)
    assert "a renewal failed" in told
    assert f"issuance-failed: {MARKUP}; next: try it all again" in told
    assert page.links[mine.hostname] == f"/operator/hostnames/{mine.hostname}"
    assert "Failed issuances" in page.text
    assert [each.attributes["src"] for each in page.all("script")] == ["/operator/static/page.js"]
    mine.release()
    assert matters(browser.page(HERE), mine.hostname) == []


def test_certificate_that_ends_and_is_not_renewed_is_told(
    page_lab: Lab, browser: PlainBrowser, mine: Ownership
) -> None:
    mine.certificate()
    fail(page_lab, mine.hostname, "no", renewal=True)
    certificate = json.loads(stored(page_lab, mine.hostname)["certificate"])
    hour_ms = 3_600_000
    certificate |= {
        "valid_from_ms": now_ms() - 100 * hour_ms,
        "valid_until_ms": now_ms() + 5 * hour_ms + 60_000,
        "renew_at_ms": now_ms() - hour_ms,
    }
    plant(page_lab, mine.hostname, "certificate", json.dumps(certificate))
    count_anew(page_lab)
    ends, failed = matters(browser.page(HERE), mine.hostname)
    assert "ends in 5 h due since" in ends
    assert "a renewal failed" in failed
    mine.release()


def test_conflict_made_by_hand_is_told(
    page_lab: Lab, browser: PlainBrowser, mine: Ownership
) -> None:
    hand = Hand.at(page_lab.bind)
    hand.add(f"{mine.hostname} 300 A 192.0.2.9")
    assert mine.publish("198.51.100.5")["status"] == "record-conflict"
    wait_until(lambda: matters(browser.page(HERE), mine.hostname) != [], "the conflict is told")
    (told,) = matters(browser.page(HERE), mine.hostname)
    assert "record-sync, wanted A 198.51.100.5, TTL 300 s, record-conflict: in the way:" in told
    assert "A 192.0.2.9" in told
    assert "last seen" in told
    hand.update(f"delete {mine.hostname} A")
    assert mine.publish("198.51.100.5")["status"] == "managed-created"
    wait_until(lambda: matters(browser.page(HERE), mine.hostname) == [], "it is over")


def test_conflict_over_an_edited_address_is_over_once_it_is_restored_and_synced(
    page_lab: Lab, browser: PlainBrowser, mine: Ownership
) -> None:
    hand = Hand.at(page_lab.bind)
    mine.publish("198.51.100.5")
    name = mine.hostname
    hand.update(f"delete {name} A", f"add {name} 300 A 192.0.2.9")
    assert mine.publish("198.51.100.5")["status"] == "record-conflict"
    wait_until(lambda: matters(browser.page(HERE), name) != [], "the conflict is told")
    hand.update(f"delete {name} A", f"add {name} 300 A 198.51.100.5")
    assert mine.publish("198.51.100.5")["status"] == "managed-unchanged"
    wait_until(lambda: matters(browser.page(HERE), name) == [], "it is over")


def test_conflict_is_told_behind_many_that_are_over_or_claims(own_lab: Lab, browse: Browse) -> None:
    """In a lab where nothing else is the matter: as it stands, the page is not quiet."""
    world = World(own_lab.config.url, own_lab.config.admin_token)
    browser = browse(own_lab.gateways[0].base_url)
    browser.log_in(own_lab.config.admin_token)
    mine = world.ownership()
    mine.publish("198.51.100.5")
    rival = world.rival(mine)
    assert rival.publish("198.51.100.6")["status"] == "record-conflict"
    client_id, _ = who(rival.caller)
    wait_until(lambda: matters(browser.page(HERE), client_id) != [], "the conflict is told")
    others = [world.ownership() for _ in range(CONFLICTS_SHOWN + 1)]
    for other in others:
        claim(browser, other.hostname)
        assert other.publish("198.51.100.5")["status"] == "record-conflict"
    told = "Claimed by an operator, and asked for by a client (21)"
    wait_until(lambda: told in browser.page(HERE).text, "all claims are told")
    assert "and 1 more: the audit trail has each" in browser.page(HERE).text
    for other in others:
        claim(browser, other.hostname, "unclaim")
    wait_until(lambda: "Claimed by an operator" not in browser.page(HERE).text, "they are over")
    page = browser.page(HERE)
    assert "Conflicts seen in the last 24 hours (1)" in page.text
    (matter,) = matters(page, client_id)
    assert mine.hostname in matter
    assert "Nothing needs you." not in page.text


def claim(browser: PlainBrowser, hostname: str, act: str = "claim") -> None:
    """By the page, which is quicker than a command."""
    assert browser.submit(f"{HERE}/hostnames/{hostname}/{act}").status_code == 303


def test_claimed_hostname_that_a_client_asks_for_is_told_as_a_claim(
    page_lab: Lab, browser: PlainBrowser, mine: Ownership
) -> None:
    gateway(page_lab, "claims", "add", mine.hostname)
    assert mine.publish("198.51.100.5")["status"] == "record-conflict"
    wait_until(lambda: matters(browser.page(HERE), mine.hostname) != [], "the claim is told")
    (told,) = matters(browser.page(HERE), mine.hostname)
    assert "claimed" in told
    assert "asked for it" in told
    gateway(page_lab, "claims", "remove", mine.hostname)
    wait_until(lambda: matters(browser.page(HERE), mine.hostname) == [], "it is over")


def test_issuances_are_counted_by_day(
    page_lab: Lab, browser: PlainBrowser, mine: Ownership
) -> None:
    before = issued_today(browser)
    mine.certificate()
    wait_until(lambda: issued_today(browser) > before, "the issuance is counted")


def test_each_picture_says_what_it_shows_and_has_its_figures_as_a_table(
    page_lab: Lab, browser: PlainBrowser, mine: Ownership
) -> None:
    before = issued_today(browser)
    mine.certificate()
    wait_until(lambda: issued_today(browser) > before, "the issuance is counted")
    wait_until(lambda: "lease" not in stored(page_lab, mine.hostname), "nobody works on it")
    certificate = json.loads(stored(page_lab, mine.hostname)["certificate"])
    soon = {"valid_until_ms": now_ms() + 10 * 86_400_000, "renew_at_ms": now_ms() + 86_400_000}
    plant(page_lab, mine.hostname, "certificate", json.dumps(certificate | soon))
    count_anew(page_lab)
    page = browser.page(HERE)
    pictures = [svg for svg in page.all("svg") if svg.attributes.get("role") == "img"]
    assert len(pictures) >= 4
    for svg in pictures:
        labelled = svg.attributes.get("aria-labelledby", "").split()
        words = [page.by_id(name).text for name in labelled]
        assert svg.attributes.get("aria-label") or (words and all(words))
    summaries = [each.text for each in page.all("summary")]
    assert summaries.count("The same as a table") == 2


def test_counts_authorities_and_parts_are_shown(
    page_lab: Lab, browser: PlainBrowser, mine: Ownership
) -> None:
    mine.publish("198.51.100.5")
    count_anew(page_lab)
    text = browser.page(HERE).text
    assert "Certificates by what they have left" in text
    assert "All hostnames were counted" in text
    for part in ("redis", "worker", "zone example.test"):
        assert part in text


@pytest.fixture
def own_world(own_lab: Lab) -> World:
    return World(own_lab.config.url, own_lab.config.admin_token)


@pytest.fixture
def own_browser(own_lab: Lab, browse: Browse) -> PlainBrowser:
    browser = browse(own_lab.gateways[0].base_url)
    browser.log_in(own_lab.config.admin_token)
    return browser


def test_document_that_cannot_be_read_is_told(
    own_lab: Lab, own_world: World, own_browser: PlainBrowser
) -> None:
    mine = own_world.ownership()
    mine.publish("198.51.100.5")
    plant(own_lab, mine.hostname, "claim", "[]")
    count_anew(own_lab)
    (told,) = matters(own_browser.page(HERE), mine.hostname)
    assert f"What Redis has of {mine.hostname} is not readable by this release" in told


def test_silent_name_server_is_told_with_what_waits_for_it(
    own_lab: Lab, own_world: World, own_browser: PlainBrowser
) -> None:
    mine, bind = own_world.ownership(), own_lab.bind
    bind.secondary_process.pause()
    try:
        mine.get()

        def told() -> str:
            return " ".join(matters(own_browser.page(HERE), "name servers example.test"))

        wait_until(lambda: "does not answer" in told(), "the server's silence is told", 60.0)
        assert f"127.0.0.2:{bind.secondary_as_ns2[1]}" in told() or "ns2." in told()
        wait_until(
            lambda: "published" in stored(own_lab, mine.hostname).get("issuance", ""),
            "the challenge is published",
        )
        count_anew(own_lab)
        wait_until(lambda: "1 certificate waits for this zone" in told(), "the wait is told")
        assert "GatewayNameServerSilent" in told()
        assert matters(own_browser.page(HERE), mine.hostname) == []
        issuance = json.loads(stored(own_lab, mine.hostname)["issuance"])
        hour_ago = {"wanted_since_ms": issuance["wanted_since_ms"] - 3_600_000}
        plant(own_lab, mine.hostname, "issuance", json.dumps(issuance | hour_ago))
        count_anew(own_lab)
        (waits,) = matters(own_browser.page(HERE), mine.hostname)
        assert "60 min ago" in waits
        assert "the challenge record is not yet answered by" in waits
    finally:
        bind.secondary_process.resume()


def test_gateway_without_a_client_says_what_to_do_first(
    own_world: World, own_browser: PlainBrowser
) -> None:
    page = own_browser.page(HERE)
    assert "Redis holds no client: every token is answered unauthorized." in page.text
    assert page.links["Create a client"] == "/operator/clients/new"
    assert "Nothing needs you." not in page.text
    own_world.client("*.example.test")
    assert "Redis holds no client" not in own_browser.page(HERE).text


def test_nothing_needs_anybody_until_a_zone_is_away(
    own_lab: Lab, own_world: World, own_browser: PlainBrowser
) -> None:
    browser = own_browser
    own_world.client("*.example.test")
    wait_until(lambda: "Nothing needs you." in browser.page(HERE).text, "all is well")
    own_lab.bind.stop()
    wait_until(lambda: "Parts that are down" in browser.page(HERE).text, "the zone is seen away")
    page = browser.page(HERE)
    assert "Nothing needs you." not in page.text
    told = [item.text for item in page.all("li") if "zone example.test" in item.text]
    assert "down" in told[0]
