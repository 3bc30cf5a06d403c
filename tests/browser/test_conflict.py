"""A record that somebody made by hand: the operator sees it in the way."""

from playwright.sync_api import expect

from tests.browser.looking import objections
from tests.lab.browser import Visit
from tests.moods.moodlab import MoodLab


def test_a_hand_made_record_in_the_way_is_seen(operator: Visit, page_lab: MoodLab) -> None:
    page, mine = operator.page, page_lab.world.ownership()
    page_lab.hand.add(f"{mine.hostname} 300 A 192.0.2.66")
    assert mine.publish("198.51.100.8")["status"] == "record-conflict"
    page.goto("/operator")
    needs = page.get_by_role("region", name="Needs you now")
    row = needs.get_by_role("listitem").filter(has_text=mine.hostname)
    expect(row).to_contain_text("192.0.2.66")
    row.get_by_role("link", name=mine.hostname).click()
    expect(page.get_by_role("heading", name=mine.hostname, level=1)).to_be_visible()
    # Both parts load by themselves: what each server answers, and what the next call would get.
    main = page.get_by_role("main")
    expect(main).to_contain_text("192.0.2.66")
    expect(main).to_contain_text("record-conflict")
    box = page.get_by_role("region", name="A client is refused here")
    expect(box).to_contain_text("The zone has A 192.0.2.66 there")
    expect(box.get_by_role("listitem")).to_have_count(2)
    assert objections(operator) == []
