"""What an operator does to a hostname: asked first, then done, then told."""

from playwright.sync_api import Page, expect

from tests.browser.looking import objections
from tests.integration.service.calling import Ownership
from tests.lab.acme_calls import Operation
from tests.lab.acme_moods import Refuse
from tests.lab.browser import Visit
from tests.lab.process import wait_until
from tests.moods.moodlab import MoodLab


def open_action(page: Page, mine: Ownership, link: str) -> None:
    """Go to what asks whether to do it, from the hostname's page."""
    page.goto(f"/operator/hostnames/{mine.hostname}")
    page.get_by_role("main").get_by_role("link", name=link, exact=True).click()
    expect(page.get_by_role("link", name="Cancel")).to_be_visible()


def do(page: Page, button: str) -> None:
    """Do what the page asks about, and be told what came of it."""
    page.get_by_role("button", name=button).click()
    expect(page.locator("p.notice")).to_be_visible()


def test_a_hostname_is_claimed_with_a_note_and_given_back(
    operator: Visit, page_lab: MoodLab
) -> None:
    page, mine = operator.page, page_lab.world.ownership()
    open_action(page, mine, "Claim the hostname")
    page.get_by_label("Note").fill("kept for the new mail server")
    do(page, "Claim the hostname")
    assert objections(operator) == []
    expect(page.get_by_role("main")).to_contain_text("kept for the new mail server")
    assert mine.publish("198.51.100.1")["status"] == "record-conflict"
    open_action(page, mine, "Take the claim back")
    do(page, "Take the claim back")
    assert mine.publish("198.51.100.1")["status"] == "managed-created"


def test_an_action_that_is_cancelled_changes_nothing(operator: Visit, page_lab: MoodLab) -> None:
    page, mine = operator.page, page_lab.world.ownership()
    mine.publish("198.51.100.2")
    open_action(page, mine, "Withdraw the record")
    page.get_by_role("link", name="Cancel").click()
    expect(page.get_by_role("heading", name=mine.hostname, level=1)).to_be_visible()
    assert mine.publish("198.51.100.2")["status"] == "managed-unchanged"


def test_a_record_is_withdrawn(operator: Visit, page_lab: MoodLab) -> None:
    page, mine = operator.page, page_lab.world.ownership()
    mine.publish("198.51.100.3")
    open_action(page, mine, "Withdraw the record")
    expect(page.get_by_role("main")).to_contain_text("198.51.100.3")
    do(page, "Withdraw the record")
    assert page_lab.hand.records(mine.hostname) == set()


def test_a_certificate_is_released(operator: Visit, page_lab: MoodLab) -> None:
    page, mine = operator.page, page_lab.world.ownership()
    mine.certificate()
    open_action(page, mine, "Release the certificate")
    do(page, "Release the certificate")
    assert "certificate" not in page_lab.stored(mine.hostname)


def test_a_certificate_is_renewed_before_its_time(operator: Visit, page_lab: MoodLab) -> None:
    page, mine = operator.page, page_lab.world.ownership()
    former = mine.certificate()["chainPem"]
    open_action(page, mine, "Renew now")
    do(page, "Renew now")
    wait_until(lambda: mine.certificate()["chainPem"] != former, "another certificate")


def test_an_issuance_that_failed_is_retried(operator: Visit, page_lab: MoodLab) -> None:
    page, mine = operator.page, page_lab.world.ownership()
    refusal = Refuse(403, "rejectedIdentifier", "not today")
    with page_lab.on(mine, Operation.NEW_ORDER, refusal, times=None):
        mine.settled()
        page.goto(f"/operator/hostnames/{mine.hostname}")
        expect(page.get_by_role("main")).to_contain_text("not today")
    open_action(page, mine, "Retry now")
    do(page, "Retry now")
    expect(page.get_by_role("region", name="Certificate")).to_contain_text("Valid until")


def test_a_form_that_is_sent_twice_does_nothing_again(operator: Visit, page_lab: MoodLab) -> None:
    page, mine = operator.page, page_lab.world.ownership()
    mine.publish("198.51.100.4")
    open_action(page, mine, "Withdraw the record")
    # As a second click would, before the browser has shown what came of the first.
    inputs = page.locator("form.confirm input[type=hidden]").all()
    form: dict[str, str | float | bool] = {
        str(each.get_attribute("name")): each.input_value() for each in inputs
    }
    first = page.request.post(page.url, form=form, headers={"Origin": operator.origin})
    assert first.ok
    mine.publish("198.51.100.4")
    page.get_by_role("button", name="Withdraw the record").click()
    expect(page.get_by_role("alert")).to_contain_text("nothing was done a second time")
    assert mine.publish("198.51.100.4")["status"] == "managed-unchanged"


def test_what_changed_since_it_was_seen_is_not_touched(operator: Visit, page_lab: MoodLab) -> None:
    page, mine = operator.page, page_lab.world.ownership()
    mine.publish("198.51.100.5")
    open_action(page, mine, "Withdraw the record")
    mine.publish("198.51.100.6")
    page.get_by_role("button", name="Withdraw the record").click()
    expect(page.get_by_role("alert")).to_be_visible()
    assert objections(operator) == []
    assert mine.publish("198.51.100.6")["status"] == "managed-unchanged"
