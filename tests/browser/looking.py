"""What must hold of every page, however it is looked at.

Used by the tests of this folder.
"""

from playwright.sync_api import expect

from tests.lab.browser import Look, Visit

NARROW = 360
"""CSS pixels: as narrow as phones are."""

LOOKS = (Look(), Look(NARROW, 740, scheme="dark"))
"""Each colour and each width once: contrast is not up to the width, nor is room to the colour."""


def objections(visit: Visit) -> list[str]:
    """What axe has against the page as it is, and whether it or a table is too wide, by look."""
    page, found = visit.page, []
    for look in LOOKS:
        page.set_viewport_size({"width": look.width, "height": look.height})
        page.emulate_media(color_scheme=look.scheme, reduced_motion="reduce")
        told = [*visit.axe(), *_too_wide(visit)]
        found += [f"{look.width} px, {look.scheme}: {each}" for each in told]
    return found


def settle(visit: Visit) -> None:
    """Wait until the page has loaded into itself what it loads."""
    expect(visit.page.locator("[data-load]:not([aria-busy=false])")).to_have_count(0)


def _too_wide(visit: Visit) -> list[str]:
    wide = visit.page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
    cut = visit.page.evaluate(
        "[...document.querySelectorAll('.scroll')].filter(each => each.scrollWidth >"
        " each.clientWidth).map(each => each.getAttribute('aria-label'))"
    )
    told = [f"the page is {wide} px wider than the window"] if wide > 0 else []
    return told + [f"the table {each} is wider than its place" for each in cut]
