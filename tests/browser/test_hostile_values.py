"""Whatever others may write, the page shows as text: no element comes of it and no script runs."""

import json
import secrets
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from playwright.sync_api import Page, expect
from redis import Redis

from gateway.store import keys
from tests.browser.looking import settle
from tests.integration.service.calling import PROVISION, Caller, Ownership, spec
from tests.lab.acme_calls import Operation
from tests.lab.acme_moods import Refuse
from tests.lab.browser import Visit
from tests.lab.process import wait_until
from tests.moods.moodlab import MoodLab

# Each ends whatever it may stand in, and leaves an element that no page has. Identifiers have no
# space; the policy of the page would stop such scripts too, so what is looked for is the element.
BARE = "'\"></title></textarea><x-owned/onclick=window.owned=1><img/src=x/onerror=window.owned=1>"
SPACED = (
    f"{BARE} <script>window.owned = 1</script> {{{{ 7777 * 3 }}}} {{% raw %}} <!-- &lt;b&gt; &amp;"
)
CONTROLS = "\x1b[31mred\x07\u202egnp"


@dataclass(frozen=True)
class Evil:
    """Who wrote what: a client with such an id, holding a hostname for such an app."""

    client_id: str
    app_id: str
    mine: Ownership

    @property
    def hostname(self) -> str:
        return self.mine.hostname


@pytest.fixture(scope="module")
def evil(page_lab: MoodLab) -> Evil:
    label = f"t{secrets.token_hex(6)}"
    client_id = f"{label}{BARE}"
    made = page_lab.world.admin.call(
        PROVISION,
        action="ensure",
        spec=spec(client_id, f"*.{label}.example.test"),
    )
    app_id = f"app{BARE}"
    caller = Caller(page_lab.world.url, made["apiToken"])
    return Evil(client_id, app_id, Ownership(caller, f"www.{label}.example.test", app_id))


@pytest.fixture(scope="module")
def held(page_lab: MoodLab, evil: Evil) -> Evil:
    """With a record, foreign TXT beside it, and an issuance that a CA refused in such words."""
    evil.mine.publish("198.51.100.20")
    text = "".join(each if each.isalnum() else f"\\{ord(each):03}" for each in SPACED)
    page_lab.hand.add(f'{evil.hostname} 300 TXT "{text}"')
    page_lab.on(
        evil.mine, Operation.NEW_ORDER, Refuse(403, "rejectedIdentifier", SPACED), times=None
    )
    evil.mine.settled()
    return evil


@pytest.fixture
def planted(page_lab: MoodLab) -> Iterator[str]:
    """A hostname with markup, as nothing but another writer to Redis can bring it there."""
    hostname = f"0{secrets.token_hex(4)}<x-owned>.example.test"
    bucket = keys.bucket_of(hostname)
    document = {
        "version": "1",
        "holder": json.dumps({"clientId": BARE, "appId": BARE}),
        "claim": json.dumps({"sinceMs": 1, "note": SPACED}),
    }
    with Redis.from_url(page_lab.redis.url) as redis:
        for name, value in document.items():
            redis.hset(keys.host_key(hostname), name, value)
        redis.zadd(keys.names_key(bucket), {hostname: 0})
        yield hostname
        redis.delete(keys.host_key(hostname))
        redis.zrem(keys.names_key(bucket), hostname)


def demand_harmless(page: Page) -> None:
    """Nothing on the page came of what others wrote."""
    expect(page.locator("x-owned, main img, main script, body > script")).to_have_count(0)
    assert page.evaluate("window.owned") is None
    assert "23331" not in page.get_by_role("main").inner_text()


@pytest.mark.parametrize(
    "path", ["", "/zone", "/verdict", "/retry", "/release", "/withdraw"], ids=lambda path: path
)
def test_a_hostnames_pages_show_it_as_text(operator: Visit, held: Evil, path: str) -> None:
    operator.page.goto(f"/operator/hostnames/{held.hostname}{path}")
    settle(operator)
    expect(operator.page.get_by_role("main")).to_contain_text("</textarea><x-owned")
    demand_harmless(operator.page)


def test_the_words_of_a_ca_are_text(operator: Visit, held: Evil) -> None:
    operator.page.goto(f"/operator/hostnames/{held.hostname}")
    words = operator.page.get_by_role("blockquote")
    expect(words).to_contain_text("<script>window.owned = 1</script> {{ 7777 * 3 }} {% raw %} <!--")


def test_a_txt_value_in_the_zone_is_text(operator: Visit, held: Evil) -> None:
    operator.page.goto(f"/operator/hostnames/{held.hostname}/zone")
    expect(operator.page.get_by_role("main")).to_contain_text("<script>window.owned = 1</script>")


@pytest.mark.parametrize(
    "path", ["/hostnames", "/clients", "/audit"], ids=["hostnames", "clients", "audit"]
)
def test_lists_show_it_as_text(operator: Visit, held: Evil, path: str) -> None:
    page = operator.page
    page.goto(f"/operator{path}?prefix={held.hostname if path == '/hostnames' else ''}")
    expect(page.get_by_role("main")).to_contain_text("</textarea><x-owned")
    demand_harmless(page)


def test_a_clients_pages_show_it_as_text_and_are_reached(operator: Visit, held: Evil) -> None:
    page = operator.page
    page.goto(f"/operator/hostnames/{held.hostname}")
    page.get_by_role("link", name=held.client_id).first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text(held.client_id)
    demand_harmless(page)
    for link in ("Change the policy", "Make a new token", "Revoke", "Remove"):
        page.get_by_role("main").get_by_role("link", name=link, exact=True).click()
        expect(page.get_by_role("heading", level=1)).to_contain_text(held.client_id)
        demand_harmless(page)
        page.get_by_role("link", name="Cancel").click()
    page.get_by_role("link", name="What it did").click()
    expect(page.get_by_label("Client")).to_have_value(held.client_id)
    demand_harmless(page)


def test_the_overview_shows_it_as_text(operator: Visit, page_lab: MoodLab, held: Evil) -> None:
    rival = f"wwx.{held.hostname.split('.', 1)[1]}"
    page_lab.hand.add(f"{rival} 300 A 192.0.2.67")
    Ownership(held.mine.caller, rival, held.app_id).publish("198.51.100.21")
    page = operator.page

    def is_told() -> bool:
        page.goto("/operator")
        return "x-owned" in page.get_by_role("region", name="Needs you now").inner_text()

    wait_until(is_told, "the overview tells of the conflict")
    demand_harmless(page)


def test_a_claims_note_is_text(operator: Visit, evil: Evil) -> None:
    page, hostname = operator.page, f"note.{evil.hostname.split('.', 1)[1]}"
    page.goto(f"/operator/hostnames/{hostname}/claim")
    page.get_by_label("Note").fill(f"{SPACED} {CONTROLS}")
    page.get_by_role("button", name="Claim the hostname").click()
    expect(page.locator("p.notice")).to_be_visible()
    expect(page.get_by_role("main")).to_contain_text(SPACED)
    demand_harmless(page)
    # What could turn a line around, or speak to a terminal, is made visible.
    assert not {"\x1b", "\x07", "\u202e"} & set(page.get_by_role("main").inner_text())
    page.goto(f"/operator/hostnames/{hostname}/unclaim")
    demand_harmless(page)
    page.goto(f"/operator/audit?hostname={hostname}")
    demand_harmless(page)


def test_a_planted_hostname_is_text(operator: Visit, planted: str) -> None:
    page = operator.page
    page.goto("/operator/hostnames")
    expect(page.get_by_role("main")).to_contain_text(planted)
    demand_harmless(page)
    page.get_by_role("link", name=planted).click()
    demand_harmless(page)


def test_what_was_typed_into_a_form_comes_back_as_text(operator: Visit) -> None:
    page = operator.page
    page.goto("/operator/clients/new")
    for label in ("Id", "Type"):
        page.get_by_label(label, exact=True).fill(SPACED)
    for label in ("Hostname patterns", "Allowed addresses"):
        page.get_by_label(label).fill(f"{SPACED}\n{CONTROLS}")
    page.get_by_role("button", name="Review").click()
    expect(page.get_by_role("alert").first).to_be_visible()
    expect(page.get_by_label("Id", exact=True)).to_have_value(SPACED)
    demand_harmless(page)


@pytest.mark.parametrize(
    "path",
    [
        "/hostnames?prefix={}",
        "/hostnames?client={}",
        "/clients?prefix={}",
        "/audit?hostname={}",
        "/audit?client={}",
        "/audit?since={}",
        "/audit?before={}",
        "/hostnames?after={}",
        "/hostnames/{}",
        "/clients/{}",
        "/{}",
    ],
)
def test_what_stands_in_the_url_is_text(operator: Visit, path: str) -> None:
    written = "%22%27%3E%3C%2Ftitle%3E%3Cx-owned%3E%3Cscript%3Ewindow.owned%3D1%3C%2Fscript%3E"
    operator.page.goto(f"/operator{path.format(written)}")
    expect(operator.page.get_by_role("heading", level=1)).to_be_visible()
    demand_harmless(operator.page)
