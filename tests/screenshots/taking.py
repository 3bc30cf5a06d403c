"""Takes the pictures: which page, how it is looked at, and into which file.

Responsible for: one file for each page and look, no larger than documentation should carry.
Must not: change anything on the page but where it is scrolled to.
Called by: `__main__`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from playwright.sync_api import Browser, Page, expect

from tests.browser.acting import log_in
from tests.lab.browser import DESKTOP, PHONE, Visit, visiting
from tests.lab.process import LabFault
from tests.screenshots import scene
from tests.screenshots.shrinking import shrunk

MOST_BYTES = 200_000

_LOOKS = {
    "desktop": DESKTOP,
    "dark": replace(DESKTOP, scheme="dark"),
    "phone": PHONE,
    "phone-dark": replace(PHONE, scheme="dark"),
}
_TALLEST = {"desktop": 1400, "dark": 1400, "phone": 1600, "phone-dark": 1600}
"""In CSS pixels; pages may be longer."""


@dataclass(frozen=True)
class Picture:
    """A page by the name of its file and its path, and the looks that it is taken in."""

    name: str
    path: str
    looks: Sequence[str] = ("desktop", "phone")


PICTURES = (
    Picture("overview", "/operator", ("desktop", "dark", "phone", "phone-dark")),
    Picture("hostnames", "/operator/hostnames"),
    Picture("hostname", f"/operator/hostnames/{scene.ISSUED}"),
    Picture("hostname-under-way", f"/operator/hostnames/{scene.UNDER_WAY}"),
    Picture("hostname-conflict", f"/operator/hostnames/{scene.CONFLICT}"),
    Picture("release", f"/operator/hostnames/{scene.ISSUED}/release"),
    Picture("clients", "/operator/clients"),
    Picture("client", "/operator/clients/platform"),
    Picture("client-new", "/operator/clients/new"),
    Picture("audit", "/operator/audit"),
)


def take(
    browser: Browser, played: scene.Scene, folder: Path, pictures: Sequence[Picture] = PICTURES
) -> Iterator[Path]:
    """Take them one by one into `folder`; answers each file as it is there.

    Raises: LabFault for a page that is not shown, does what it must not, or is too large a file.
    """
    folder.mkdir(parents=True, exist_ok=True)
    origin = played.gateway.base_url
    with visiting(browser, origin) as first:
        log_in(first.page, played.config.admin_token)
        state = first.context.storage_state()
    for name, look in _LOOKS.items():
        with visiting(browser, origin, look, state) as visit, browser.new_page() as empty:
            for picture in pictures:
                if name in picture.looks:
                    file = folder / f"{picture.name}-{name}.png"
                    _take_one(visit, empty, picture.path, file, _TALLEST[name])
                    yield file


def _take_one(visit: Visit, empty: Page, path: str, file: Path, tallest: int) -> None:
    answer = visit.page.goto(path)
    if answer is None or not answer.ok:
        raise LabFault(f"{path} was answered with {answer and answer.status}")
    _settle(visit.page)
    if visit.faults:
        raise LabFault(f"{path}: {'; '.join(visit.faults)}")
    size = visit.page.viewport_size or {"width": 0}
    height = visit.page.evaluate("document.documentElement.scrollHeight")
    clip = {"x": 0, "y": 0, "width": size["width"], "height": min(height, tallest)}
    picture = visit.page.screenshot(full_page=True, clip=clip)  # type: ignore[arg-type]
    file.write_bytes(shrunk(empty, picture))
    if file.stat().st_size > MOST_BYTES:
        raise LabFault(f"{file.name} has {file.stat().st_size} bytes, of {MOST_BYTES} allowed")


def _settle(page: Page) -> None:
    """Wait for what the page loads into itself."""
    expect(page.locator("[data-load]:not([aria-busy=false])")).to_have_count(0)
