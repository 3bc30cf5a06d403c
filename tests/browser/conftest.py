"""Fixtures: Chromium for the tests of one file, and one lab whose CA is behind the scripted proxy.

A test is failed by whatever a page did that it must not (`Visit.faults`), also when all it was
about went well. One that fails tells where a picture of each page is.
"""

from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Error, StorageState

from tests.browser.acting import log_in
from tests.lab.bind import BindPair
from tests.lab.browser import DESKTOP, Look, Visit, running_chromium, visiting
from tests.moods.moodlab import MoodLab, mood_lab
from tests.screenshots import scene
from tests.screenshots.scene import Scene

Opened = Callable[..., Visit]
Onlooking = Callable[[Look], Visit]

_VISITS: pytest.StashKey[list[tuple[Visit, Path]]] = pytest.StashKey()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One for each file, not for the session: a loop runs with it, and other files have theirs."""
    with running_chromium() as running:
        yield running


@pytest.fixture(scope="package")
def page_lab(tmp_path_factory: pytest.TempPathFactory, bind: BindPair) -> Iterator[MoodLab]:
    """A gateway with its page on, as it is on loopback."""
    with mood_lab(tmp_path_factory.mktemp("page"), bind) as lab:
        yield lab


@pytest.fixture(scope="module")
def logged_in(browser: Browser, page_lab: MoodLab) -> StorageState:
    """The cookies of an operator."""
    with visiting(browser, page_lab.gateway.base_url) as visit:
        log_in(visit.page, page_lab.admin_token)
        return visit.context.storage_state()


@pytest.fixture(scope="package")
def played(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with scene.playing(tmp_path_factory.mktemp("scene")) as told:
        yield told


@pytest.fixture(scope="module")
def scene_state(browser: Browser, played: Scene) -> StorageState:
    with visiting(browser, played.gateway.base_url) as visit:
        log_in(visit.page, played.config.admin_token)
        return visit.context.storage_state()


@pytest.fixture(scope="module")
def _tabs(browser: Browser, played: Scene, scene_state: StorageState) -> Iterator[Onlooking]:
    with ExitStack() as stack:
        at = played.gateway.base_url
        yield cache(lambda look: stack.enter_context(visiting(browser, at, look, scene_state)))


@pytest.fixture
def onlooking(
    request: pytest.FixtureRequest, _tabs: Onlooking, tmp_path: Path
) -> Iterator[Onlooking]:
    """For an operator who goes from page to page of the scene in one tab: `onlooking(look)`.

    A tab of its own would cost each test more than many a page does.
    """
    visits: list[tuple[Visit, Path]] = []
    request.node.stash[_VISITS] = visits

    def look_on(look: Look) -> Visit:
        visit = _tabs(look)
        visit.page.set_viewport_size({"width": look.width, "height": look.height})
        visit.page.emulate_media(color_scheme=look.scheme)
        visits.append((visit, tmp_path / "page.png"))
        return visit

    yield look_on
    faults = [fault for visit, _ in visits for fault in visit.faults]
    for visit, _ in visits:
        visit.noted.clear()
    assert not faults, faults


@pytest.fixture
def opened(
    request: pytest.FixtureRequest, browser: Browser, page_lab: MoodLab, tmp_path: Path
) -> Iterator[Opened]:
    """Opens visits to the lab's page: `opened(look, state)`; they end with the test."""
    with ExitStack() as stack:
        visits: list[tuple[Visit, Path]] = []
        request.node.stash[_VISITS] = visits

        def open_visit(
            look: Look = DESKTOP, state: StorageState | None = None, origin: str | None = None
        ) -> Visit:
            at = origin or page_lab.gateway.base_url
            visit = stack.enter_context(visiting(browser, at, look, state))
            visits.append((visit, tmp_path / f"page-{len(visits)}.png"))
            return visit

        yield open_visit
        faults = [fault for visit, _ in visits for fault in visit.faults]
    assert not faults, faults


@pytest.fixture
def stranger(opened: Opened) -> Visit:
    """Somebody who has not logged in."""
    return opened()


@pytest.fixture
def operator(opened: Opened, logged_in: StorageState) -> Visit:
    """Somebody who has."""
    return opened(state=logged_in)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.when == "call" and report.failed:
        for visit, file in item.stash.get(_VISITS, []):
            report.sections.append(("the page as it was", _picture(visit, file)))
    return report


def _picture(visit: Visit, file: Path) -> str:
    try:
        visit.page.screenshot(path=file, full_page=True)
    except Error as error:
        return f"{visit.page.url}: no picture: {error}"
    return f"{visit.page.url}: {file}"
