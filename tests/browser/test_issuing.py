"""A certificate comes into being before the operator's eyes, without a reload."""

import json

from playwright.sync_api import expect

from tests.lab.acme_calls import Operation
from tests.lab.acme_moods import Pause
from tests.lab.browser import Visit
from tests.moods.moodlab import MoodLab


def test_a_certificate_goes_from_requested_to_issued_live(
    operator: Visit, page_lab: MoodLab
) -> None:
    page, mine = operator.page, page_lab.world.ownership()
    order = page_lab.on(mine, Operation.NEW_ORDER, Pause())
    validation = page_lab.on(mine, Operation.CHALLENGE, Pause())
    finalizing = page_lab.on(mine, Operation.FINALIZE, Pause())
    page.goto(f"/operator/hostnames/{mine.hostname}")
    expect(page.get_by_role("main")).to_contain_text("nobody")
    mine.publish("198.51.100.7")
    mine.get()
    page.goto(f"/operator/hostnames/{mine.hostname}")
    # From here on the page is not asked for again: what changes is the page's own doing.
    page.evaluate("window.isTheSame = true")
    now = page.locator("[aria-current=step]")
    expect(now).to_contain_text("ordered at the authority")
    order.end()
    # All that has to be done before the authority is told to look is behind.
    expect(now).to_contain_text("authority told to validate")
    validation.end()
    expect(now).to_contain_text("CSR sent")
    finalizing.end()
    certificate = page.get_by_role("region", name="Certificate")
    expect(certificate).to_contain_text("Valid until")
    serial = json.loads(page_lab.stored(mine.hostname)["certificate"])["serial"]
    expect(certificate).to_contain_text(serial)
    expect(now).to_have_count(0)
    assert page.evaluate("window.isTheSame") is True
