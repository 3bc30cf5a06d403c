"""Every page of a gateway that has something to show: for every eye, hand and window."""

import pytest
from playwright.sync_api import StorageState, expect
from redis import Redis

from gateway.store import keys
from tests.browser.acting import log_in
from tests.browser.conftest import Onlooking, Opened
from tests.browser.every_page import ALL, go
from tests.browser.looking import objections, settle
from tests.lab.browser import DESKTOP, Visit
from tests.lab.lab import Lab
from tests.screenshots.scene import AWAY, Scene


@pytest.fixture
def visitor(opened: Opened, played: Scene, scene_state: StorageState) -> Visit:
    return opened(state=scene_state, origin=played.gateway.base_url)


@pytest.mark.parametrize("kind", ALL)
def test_axe_has_nothing_against_a_page_and_it_fits_a_phone(
    onlooking: Onlooking, kind: str
) -> None:
    visitor = onlooking(DESKTOP)
    go(visitor, kind)
    settle(visitor)
    assert objections(visitor) == []


def test_verdict_repeats_what_is_in_its_way(visitor: Visit) -> None:
    """What the command line's words point at is folded away here."""
    visitor.page.goto(f"/operator/hostnames/{AWAY}/verdict")
    main = visitor.page.get_by_role("main")
    expect(main).to_contain_text("zone-unavailable")
    expect(main.locator("[data-part] > dl")).not_to_contain_text("(see ")
    expect(main.locator("details")).to_contain_text("(see ")


def test_charts_fit_a_phone_as_tables_too(visitor: Visit) -> None:
    go(visitor, "overview")
    for each in visitor.page.get_by_text("The same as a table").all():
        each.click()
    assert objections(visitor) == []


@pytest.mark.parametrize("path", ["", "/hostnames", "/clients", "/audit"])
def test_axe_has_nothing_against_a_gateway_that_has_nothing_yet(
    opened: Opened, lab: Lab, path: str
) -> None:
    visit = opened(origin=lab.gateways[0].base_url)
    log_in(visit.page, lab.config.admin_token)
    visit.page.goto(f"/operator{path}")
    assert objections(visit) == []


def test_axe_has_nothing_against_a_hostname_that_cannot_be_read(
    visitor: Visit, played: Scene
) -> None:
    key = keys.host_key("broken.example.com")
    with Redis.from_url(played.redis.url) as redis:
        redis.hset(key, "issuance", "{")
        answer = visitor.page.goto("/operator/hostnames/broken.example.com")
        settle(visitor)
        redis.delete(key)
    assert answer is not None
    assert answer.ok
    expect(visitor.page.get_by_role("main")).to_contain_text("not readable by this release")
    assert objections(visitor) == []


def test_axe_has_nothing_against_the_login(opened: Opened, played: Scene) -> None:
    visit = opened(origin=played.gateway.base_url)
    visit.page.goto("/operator/login")
    assert objections(visit) == []
    visit.page.get_by_label("Admin token").fill("gwa_wrong")
    visit.page.keyboard.press("Enter")
    expect(visit.page.get_by_role("alert")).to_be_visible()
    assert objections(visit) == []


@pytest.mark.parametrize("is_dark", [False, True])
def test_pages_are_as_dark_as_the_reader_wants_them(visitor: Visit, is_dark: bool) -> None:
    visitor.page.emulate_media(color_scheme="dark" if is_dark else "light")
    visitor.page.goto("/operator")
    shade = visitor.page.evaluate(
        "getComputedStyle(document.body).backgroundColor.match(/[0-9.]+/g).slice(0, 3).map(Number)"
    )
    assert (max(shade) < 80) is is_dark, shade


def test_a_store_that_hangs_is_a_page_too(visitor: Visit, played: Scene) -> None:
    visitor.page.goto("/operator")
    played.redis.process.pause()
    try:
        answer = visitor.page.goto("/operator")
        assert answer is not None
        assert answer.status == 503
        expect(visitor.page.get_by_role("alert")).to_be_visible()
        assert objections(visitor) == []
    finally:
        played.redis.process.resume()
