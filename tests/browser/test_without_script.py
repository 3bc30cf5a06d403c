"""Without script everything can be read, and done by links and forms."""

import secrets

import pytest
from playwright.sync_api import Page, expect

from tests.browser.acting import log_in
from tests.browser.conftest import Onlooking, Opened
from tests.browser.every_page import ALL, go
from tests.browser.test_clients import client_of, make_client
from tests.integration.service.calling import Caller
from tests.lab.browser import Look
from tests.moods.moodlab import MoodLab


@pytest.fixture
def page(opened: Opened, page_lab: MoodLab) -> Page:
    """An operator's tab in which no script runs."""
    visit = opened(Look(has_script=False))
    log_in(visit.page, page_lab.admin_token)
    return visit.page


def test_a_hostname_is_found_and_its_parts_are_read_by_links(page: Page, page_lab: MoodLab) -> None:
    mine = page_lab.world.ownership()
    mine.publish("198.51.100.40")
    page.get_by_role("link", name="Hostnames").click()
    page.get_by_label("how it begins").fill(mine.hostname[:8])
    page.get_by_role("button", name="Search").click()
    page.get_by_role("link", name=mine.hostname).click()
    page.get_by_role("link", name="Ask the zone's servers").click()
    expect(page.get_by_role("main")).to_contain_text("owner marker")
    page.get_by_role("link", name=mine.hostname).click()
    page.get_by_role("link", name="Try it without changing anything").click()
    expect(page.get_by_role("main")).to_contain_text("managed-unchanged")


def test_an_action_is_asked_about_and_done(page: Page, page_lab: MoodLab) -> None:
    mine = page_lab.world.ownership()
    mine.publish("198.51.100.41")
    page.goto(f"/operator/hostnames/{mine.hostname}")
    page.get_by_role("link", name="Withdraw the record").click()
    page.get_by_role("button", name="Withdraw the record").click()
    expect(page.locator("p.notice")).to_be_visible()
    assert page_lab.hand.records(mine.hostname) == set()


def test_a_client_is_made(page: Page, page_lab: MoodLab) -> None:
    name = f"plain-{secrets.token_hex(4)}"
    token = make_client(page, name, f"*.{name}.example.test")
    assert client_of(Caller(page_lab.world.url, token)) == name


def test_one_logs_out(page: Page) -> None:
    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_role("heading", name="Log in")).to_be_visible()


@pytest.mark.parametrize("kind", ALL)
def test_a_page_reads_without_script(onlooking: Onlooking, kind: str) -> None:
    visit = onlooking(Look(has_script=False))
    go(visit, kind)
    expect(visit.page.get_by_role("heading", level=1)).to_have_count(1)
    # What script loads into the page is a link without.
    for later in visit.page.locator("[data-load]").all():
        expect(later.get_by_role("link").first).to_be_visible()
