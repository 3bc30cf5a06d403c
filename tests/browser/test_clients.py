"""Clients on the page: made, given another credential, revoked, removed."""

import re
import secrets

from playwright.sync_api import Page, expect

from tests.browser.looking import objections
from tests.integration.service.calling import CONTEXT, Caller
from tests.lab.browser import Visit
from tests.moods.moodlab import MoodLab

_TOKEN = re.compile(r"gwc_[\w-]+")


def shown_token(page: Page) -> str:
    """The token that the page shows."""
    found = _TOKEN.search(page.get_by_role("main").inner_text())
    assert found is not None
    return found[0]


def client_of(caller: Caller) -> str:
    """Whose token that is."""
    client_id: str = caller.call(CONTEXT)["context"]["clientId"]
    return client_id


def make_client(page: Page, client_id: str, pattern: str) -> str:
    """Make a client by the form; its token."""
    page.goto("/operator/clients")
    page.get_by_role("link", name="New client").click()
    page.get_by_label("Id", exact=True).fill(client_id)
    page.get_by_label("Type", exact=True).fill("cloudly")
    page.get_by_label("Hostname patterns").fill(pattern)
    page.get_by_label("Allowed addresses").fill("198.51.100.0/24")
    for box in page.get_by_role("checkbox").all():
        box.check()
    page.get_by_role("button", name="Review").click()
    expect(page.get_by_role("main")).to_contain_text(pattern)
    page.get_by_role("button", name="Make the client").click()
    expect(page.get_by_role("main")).to_contain_text("gwc_")
    return shown_token(page)


def test_a_client_is_made_and_its_token_shown_once(operator: Visit, page_lab: MoodLab) -> None:
    page, name = operator.page, f"made-{secrets.token_hex(4)}"
    token = make_client(page, name, f"*.{name}.example.test")
    assert objections(operator) == []
    assert client_of(Caller(page_lab.world.url, token)) == name
    for path in (f"/clients/{name}", "/clients", f"/audit?client={name}"):
        page.goto(f"/operator{path}")
        assert token not in page.content()


def test_what_is_wrong_with_a_form_stands_at_its_field(operator: Visit) -> None:
    page = operator.page
    page.goto("/operator/clients/new")
    page.get_by_label("Id", exact=True).fill("wrong one")
    page.get_by_label("Type", exact=True).fill("cloudly")
    page.get_by_label("Hostname patterns").fill("good.example.test\n-bad-.example.test")
    page.get_by_role("button", name="Review").click()
    patterns = page.get_by_label("Hostname patterns")
    expect(patterns).to_have_attribute("aria-invalid", "true")
    expect(patterns).to_have_value(re.compile("-bad-"))
    expect(patterns).to_have_accessible_description(re.compile("Line 2"))
    assert objections(operator) == []


def test_a_revoked_client_is_refused_at_its_next_call(operator: Visit, page_lab: MoodLab) -> None:
    page, mine = operator.page, page_lab.world.ownership()
    client_id = client_of(mine.caller)
    page.goto(f"/operator/clients/{client_id}")
    page.get_by_role("link", name="Revoke").click()
    page.get_by_label("The client's id").fill(client_id)
    page.get_by_role("button", name="Revoke every token").click()
    expect(page.locator("p.notice")).to_be_visible()
    assert mine.caller.refused(CONTEXT)["code"] == "unauthorized"


def test_revoking_asks_for_the_clients_id(operator: Visit, page_lab: MoodLab) -> None:
    page, mine = operator.page, page_lab.world.ownership()
    client_id = client_of(mine.caller)
    page.goto(f"/operator/clients/{client_id}/revoke")
    page.get_by_label("The client's id").fill("somebody-else")
    page.get_by_role("button", name="Revoke every token").click()
    expect(page.locator("[aria-invalid=true]")).to_be_visible()
    assert objections(operator) == []
    assert client_of(mine.caller) == client_id


def test_a_client_gets_another_token_by_rotation(operator: Visit, page_lab: MoodLab) -> None:
    page, mine = operator.page, page_lab.world.ownership()
    client_id = client_of(mine.caller)
    page.goto(f"/operator/clients/{client_id}/rotate")
    page.get_by_role("button", name="Make a new token").click()
    token = shown_token(page)
    assert token != mine.caller.token
    assert client_of(Caller(page_lab.world.url, token)) == client_id


def test_a_client_that_holds_nothing_is_removed(operator: Visit, page_lab: MoodLab) -> None:
    page, caller = operator.page, page_lab.world.client("*.removed.example.test")
    client_id = client_of(caller)
    page.goto(f"/operator/clients/{client_id}")
    page.get_by_role("link", name="Remove").click()
    page.get_by_label("The client's id").fill(client_id)
    page.get_by_role("button", name="Remove the client").click()
    expect(page.locator("p.notice")).to_be_visible()
    assert caller.refused(CONTEXT)["code"] == "unauthorized"


def test_a_policy_is_changed_after_its_difference_was_shown(
    operator: Visit, page_lab: MoodLab
) -> None:
    page, mine = operator.page, page_lab.world.ownership()
    client_id = client_of(mine.caller)
    page.goto(f"/operator/clients/{client_id}")
    page.get_by_role("link", name="Change the policy").click()
    page.get_by_label("Allowed addresses").fill("203.0.113.0/24")
    page.get_by_role("button", name="Review").click()
    difference = page.get_by_role("table", name="What changes")
    expect(difference.get_by_role("deletion").first).to_have_text("198.51.100.0/24")
    expect(difference.get_by_role("insertion")).to_have_text("203.0.113.0/24")
    assert objections(operator) == []
    page.get_by_role("button", name="Change the policy").click()
    expect(page.locator("p.notice")).to_be_visible()
    assert mine.publish("203.0.113.1")["status"] == "managed-created"


def test_a_second_click_does_not_lose_a_token(operator: Visit, page_lab: MoodLab) -> None:
    page, name = operator.page, f"twice-{secrets.token_hex(4)}"
    make_client(page, name, f"*.{name}.example.test")
    page.goto(f"/operator/clients/{name}/rotate")
    box = page.get_by_role("button", name="Make a new token").bounding_box()
    assert box is not None
    x, y = box["x"] + 20, box["y"] + 10
    process = page_lab.gateway.process
    process.pause()
    try:
        page.mouse.click(x, y)
        page.mouse.click(x, y)
        page.keyboard.press("Enter")
    finally:
        process.resume()
    expect(page.get_by_role("main")).to_contain_text("gwc_")
    assert client_of(Caller(page_lab.world.url, shown_token(page))) == name


def test_a_form_that_is_shown_anew_can_be_sent(operator: Visit) -> None:
    """As by the back button, where a browser keeps the page as it was left."""
    page = operator.page
    page.goto("/operator/clients/new")
    button = page.get_by_role("button", name="Review")
    # As by something else on the page that holds the sending up.
    page.evaluate("addEventListener('submit', (event) => event.preventDefault())")
    page.get_by_label("Id", exact=True).fill("a")
    page.get_by_label("Type", exact=True).fill("a")
    button.click()
    expect(button).to_be_disabled()
    page.evaluate("dispatchEvent(new Event('pageshow'))")
    expect(button).to_be_enabled()


def test_the_longest_id_fits_a_phone(operator: Visit, page_lab: MoodLab) -> None:
    name = f"{secrets.token_hex(4):V<128}"
    page_lab.world.client("*.example.test", clientId=name)
    for path in ("", "/policy", "/rotate", "/revoke", "/remove"):
        operator.page.goto(f"/operator/clients/{name}{path}")
        assert objections(operator) == [], path
