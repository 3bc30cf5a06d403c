"""A page that follows what happens: what the reader has in hand stays, and faults are told."""

import os
import signal

from playwright.sync_api import expect

from tests.browser.acting import log_in
from tests.browser.conftest import Opened
from tests.lab.browser import Visit
from tests.moods.moodlab import MoodLab


def test_what_was_opened_and_focused_stays_so_when_more_comes(
    operator: Visit, page_lab: MoodLab
) -> None:
    page, mine = operator.page, page_lab.world.ownership()
    mine.publish("198.51.100.30")
    page.goto(f"/operator/audit?hostname={mine.hostname}")
    rows = page.get_by_role("main").get_by_role("row").filter(has_text=mine.hostname)
    row = rows.filter(has_text="managed-created")
    summary = row.locator("summary")
    summary.click()
    expect(row.get_by_role("group")).to_have_attribute("open", "")
    expect(summary).to_be_focused()
    mine.withdraw()
    expect(rows).to_have_count(2)
    expect(row.get_by_role("group")).to_have_attribute("open", "")
    expect(summary).to_be_focused()


def test_a_page_that_cannot_be_asked_again_says_so_and_recovers(
    operator: Visit, page_lab: MoodLab
) -> None:
    page, mine = operator.page, page_lab.world.ownership()
    operator.expected.append("net::ERR_FAILED")
    page.goto(f"/operator/audit?hostname={mine.hostname}")
    banner = page.locator("#behind")
    # Between the browser and the gateway, as when a network is away: nothing else must fail.
    page.route("**/operator/**", lambda route: route.abort())
    expect(banner).to_contain_text("The gateway does not answer")
    expect(banner).to_be_in_viewport()
    mine.publish("198.51.100.31")
    page.unroute_all()
    expect(page.get_by_role("main")).to_contain_text("managed-created")
    expect(banner).to_be_empty()


def test_a_page_whose_session_has_ended_says_so(opened: Opened, page_lab: MoodLab) -> None:
    here = opened()
    log_in(here.page, page_lab.admin_token)
    here.page.goto("/operator/audit")
    there = opened(state=here.context.storage_state())
    there.page.goto("/operator/hostnames")
    there.page.get_by_role("button", name="Log out").click()
    expect(here.page.locator("#behind")).to_contain_text("The session has ended")


def test_what_is_away_is_named_on_top_until_it_is_back(operator: Visit, page_lab: MoodLab) -> None:
    page = operator.page
    operator.expected.append("503")
    page.goto("/operator")
    os.kill(page_lab.redis.pid, signal.SIGSTOP)
    try:
        expect(page.locator("#behind")).to_contain_text("Redis", timeout=30_000)
        expect(page.locator("#behind")).to_contain_text("as of 20")
        expect(page.locator("#behind")).to_be_in_viewport()
    finally:
        os.kill(page_lab.redis.pid, signal.SIGCONT)
    expect(page.locator("#behind")).to_be_empty(timeout=20_000)


def test_panels_are_asked_again_when_their_hostname_changes(
    operator: Visit, page_lab: MoodLab
) -> None:
    page, mine = operator.page, page_lab.world.ownership()
    mine.publish("198.51.100.32")
    page.goto(f"/operator/hostnames/{mine.hostname}")
    panel = page.locator("[data-load$='/zone']")
    expect(panel).to_contain_text("198.51.100.32")
    mine.publish("198.51.100.33")
    expect(panel).to_contain_text("198.51.100.33")
    expect(panel).not_to_contain_text("198.51.100.32")
