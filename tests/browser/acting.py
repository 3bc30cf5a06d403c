"""What an operator does on the page, by what they see of it: labels, headings and buttons.

Used by the tests of this folder and by `tests.screenshots`.
"""

from playwright.sync_api import Locator, Page, expect

_MOST_TABS = 80


def log_in(page: Page, token: str) -> None:
    """Log in, from wherever a visitor without a session is sent."""
    page.goto("/operator")
    page.get_by_label("Admin token").fill(token)
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("button", name="Log out")).to_be_visible()


def tab_to(page: Page, wanted: Locator) -> None:
    """Press Tab until the focus is there."""
    for _ in range(_MOST_TABS):
        if wanted.evaluate("element => element === document.activeElement"):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"{wanted} is not reached by Tab")
