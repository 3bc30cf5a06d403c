"""The audit trail on the page: filtered, and live."""

from playwright.sync_api import expect

from tests.lab.browser import Visit
from tests.moods.moodlab import MoodLab


def test_what_a_client_does_appears_while_one_looks(operator: Visit, page_lab: MoodLab) -> None:
    page, mine = operator.page, page_lab.world.ownership()
    page.goto(f"/operator/audit?hostname={mine.hostname}")
    page.evaluate("window.isTheSame = true")
    rows = page.get_by_role("main").get_by_role("row").filter(has_text=mine.hostname)
    expect(rows).to_have_count(0)
    mine.publish("198.51.100.9")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("managed-created")
    mine.withdraw()
    expect(rows).to_have_count(2)
    assert page.evaluate("window.isTheSame") is True


def test_the_trail_is_filtered_by_what_is_typed(operator: Visit, page_lab: MoodLab) -> None:
    page, mine, other = operator.page, page_lab.world.ownership(), page_lab.world.ownership()
    mine.publish("198.51.100.10")
    other.publish("198.51.100.11")
    page.goto("/operator/audit")
    page.get_by_label("Hostname").fill(mine.hostname)
    page.keyboard.press("Enter")
    main = page.get_by_role("main")
    expect(main).to_contain_text("198.51.100.10")
    expect(main).not_to_contain_text("198.51.100.11")
