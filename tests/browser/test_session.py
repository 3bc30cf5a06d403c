"""Logging in and out, as a person does it."""

import pytest
from playwright.sync_api import expect

from tests.browser.acting import log_in, tab_to
from tests.browser.conftest import Opened
from tests.lab.browser import Look, Visit
from tests.moods.moodlab import MoodLab


def test_one_logs_in_and_out_by_keyboard_alone(stranger: Visit, page_lab: MoodLab) -> None:
    page = stranger.page
    page.goto("/operator")
    expect(page.get_by_label("Admin token")).to_be_focused()
    page.keyboard.type(page_lab.admin_token)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Overview", level=1)).to_be_visible()
    out = page.get_by_role("button", name="Log out")
    tab_to(page, out)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Log in")).to_be_visible()
    page.goto("/operator")
    expect(page.get_by_label("Admin token")).to_be_visible()


def test_the_first_stop_of_the_keyboard_leads_past_the_header(operator: Visit) -> None:
    page = operator.page
    page.goto("/operator")
    page.keyboard.press("Tab")
    skip = page.get_by_role("link", name="Skip to content")
    expect(skip).to_be_focused()
    expect(skip).to_be_in_viewport()
    page.keyboard.press("Enter")
    expect(page.get_by_role("main")).to_be_focused()


def test_a_wrong_token_is_told_and_not_shown_again(stranger: Visit) -> None:
    page = stranger.page
    page.goto("/operator/login")
    page.get_by_label("Admin token").fill("gwa_this-is-not-it")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_have_text("This is not the admin token of this gateway.")
    expect(page.get_by_label("Admin token")).to_have_value("")
    assert "this-is-not-it" not in page.content()


def test_a_login_leads_to_the_page_that_was_wanted(stranger: Visit, page_lab: MoodLab) -> None:
    page = stranger.page
    page.goto("/operator/audit?client=nobody-yet")
    page.get_by_label("Admin token").fill(page_lab.admin_token)
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("heading", name="Audit", level=1)).to_be_visible()
    assert page.url.endswith("/operator/audit?client=nobody-yet")


def test_a_session_that_was_ended_elsewhere_asks_for_the_token(
    opened: Opened, page_lab: MoodLab
) -> None:
    here = opened()
    log_in(here.page, page_lab.admin_token)
    there = opened(state=here.context.storage_state())
    there.page.goto("/operator")
    there.page.get_by_role("button", name="Log out").click()
    here.page.get_by_role("link", name="Hostnames").click()
    expect(here.page.get_by_label("Admin token")).to_be_visible()


@pytest.mark.parametrize("has_script", [True, False])
def test_no_script_can_read_the_sessions_cookie(
    opened: Opened, page_lab: MoodLab, has_script: bool
) -> None:
    visit = opened(Look(has_script=has_script))
    log_in(visit.page, page_lab.admin_token)
    (cookie,) = visit.context.cookies()
    assert cookie["httpOnly"]
    assert cookie["sameSite"] == "Strict"
    if has_script:
        assert visit.page.evaluate("document.cookie") == ""
